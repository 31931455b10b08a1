//! The form that every reply has: headers, media types, the body of a refusal (protocol section 1).

use super::context::INVOKE;
use super::declared::{Declared, Place};
use super::wire::{Reply, Request};
use oap_identity::RequestId;

/// What documents are written in.
const JSON: [&str; 2] = ["application/oap+json", "application/json"];

/// The statuses of refusals, and the codes that each may have.
const CODES: [(u16, &[&str]); 11] = [
    (400, &["invalid_input"]),
    (401, &["auth_required"]),
    (403, &["policy_block"]),
    (404, &["not_found"]),
    (405, &["method_not_allowed"]),
    (408, &["invalid_input"]),
    (409, &["conflict"]),
    (413, &["too_large"]),
    (429, &["rate_limited", "budget_exhausted"]),
    (431, &["invalid_input"]),
    (503, &["maintenance"]),
];

/// What a reply to a request lacks, each with what was asked and without anything that was sent.
pub(super) fn deviations(declared: &Declared, request: &Request, reply: &Reply) -> Vec<String> {
    let path = request.path.split('?').next().unwrap_or_default();
    let header = |name: &str| reply.header(name).unwrap_or_default();
    let well_known = path.starts_with("/.well-known/");
    let media = header("content-type").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let wanted: &[&str] = match reply.status {
        400.. => &JSON,
        // It has no body.
        304 => &[],
        _ if path == declared.at(Place::Export) => &["application/jsonl"],
        _ if path == declared.at(Place::Status) => &["application/statuslist+jwt"],
        _ if path.starts_with("/oap/memory/subscribe/") && path.ends_with("/events") => {
            &["text/event-stream"]
        }
        // C2SP tlog-checkpoint and tlog-witness.
        _ if declared.checkpoint() == Some(path) => &["text/plain"],
        _ if declared.witness().is_some_and(|prefix| path.starts_with(prefix)) => &["text/plain"],
        // Vectors are bytes; a document of a DID has a media type of its own.
        _ if path.starts_with("/oap/memory/vec/") || path.ends_with("/did.json") => &[],
        _ => &JSON,
    };
    // What caches read of it: names of directives have no case, and others may stand beside.
    let cache = header("cache-control").to_ascii_lowercase();
    let says = |directive: &str| cache.split(',').any(|one| one.trim() == directive);
    let mut wrong = Vec::new();
    if !header("x-content-type-options").eq_ignore_ascii_case("nosniff") {
        wrong.push("no X-Content-Type-Options: nosniff".to_owned());
    }
    // A refusal may end at any moment: nobody keeps it.
    let may_be_kept = well_known && reply.status < 400;
    let is_kept_so = says("no-store") || (may_be_kept && says("max-age=60"));
    if !is_kept_so {
        wrong.push(format!("Cache-Control is {cache:?}"));
    }
    if !wanted.is_empty() && !wanted.contains(&media.as_str()) {
        wrong.push(format!("Content-Type is {media:?}, must be {}", wanted.join(" or ")));
    }
    // It may stand beside another one.
    let mut challenges = reply.headers.iter().filter(|(name, _)| name == "www-authenticate");
    let names = |challenge: &str| challenge.starts_with("DPoP ") && challenge.contains(r#"algs="EdDSA""#);
    if reply.status == 401 && !challenges.any(|(_, challenge)| names(challenge)) {
        wrong.push(r#"no WWW-Authenticate: DPoP algs="EdDSA""#.to_owned());
    }
    if reply.header("dpop-nonce").is_some() {
        wrong.push("a DPoP-Nonce, which nobody asks for".to_owned());
    }
    if reply.status == 405 && header("allow").is_empty() {
        wrong.push("no Allow".to_owned());
    }
    match reply.status {
        // Of replies that nobody waited for, too.
        501.. | 500 if reply.status != 503 => wrong.push("a fault of the gateway".to_owned()),
        400.. => wrong.extend(refusal(request, reply)),
        _ => {}
    }
    let asked = if well_known { path } else { route(path) };
    wrong
        .into_iter()
        .map(|why| format!("{} {asked}, status {}: {why}", request.method, reply.status))
        .collect()
}

/// What the body of a refusal lacks.
fn refusal(request: &Request, reply: &Reply) -> Vec<String> {
    let body = reply.json();
    // What was refused after it was read is an envelope there (protocol section 12).
    let enveloped = request.path == INVOKE && body["error"].is_object();
    let members: &[&str] = match enveloped {
        true => &[
            "/oap_version",
            "/request_id",
            "/response_id",
            "/timestamp",
            "/error/code",
            "/error/message",
            "/signature/value",
        ],
        false => &["/error", "/message", "/request_id"],
    };
    let lacks = |member: &&&str| !body.pointer(member).is_some_and(serde_json::Value::is_string);
    let mut wrong: Vec<String> =
        members.iter().filter(lacks).map(|member| format!("the body has no {}", &member[1..])).collect();
    let code = if enveloped { &body["error"]["code"] } else { &body["error"] };
    let code = code.as_str().unwrap_or_default();
    if code == "rate_limited" && reply.retry_after().is_none() {
        wrong.push("no Retry-After in whole seconds".to_owned());
    }
    let known = CODES.iter().find(|(status, _)| *status == reply.status);
    if known.is_none_or(|(_, codes)| !codes.contains(&code)) {
        wrong.push(format!("the code is {code:?}"));
    }
    let named = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("oap-request-id"));
    // A name of another form is replaced. An envelope has its own, and one that says something else is refused under that.
    let is_name = |name: &str| name.parse::<RequestId>().is_ok();
    let sent = || -> Option<serde_json::Value> { serde_json::from_slice(request.body.as_deref()?).ok() };
    let of_envelope = enveloped && sent().is_some_and(|sent| body["request_id"] == sent["request_id"]);
    if !of_envelope && named.is_some_and(|(_, name)| is_name(name) && body["request_id"] != name.as_str()) {
        wrong.push("request_id is not that of OAP-Request-Id".to_owned());
    }
    wrong
}

/// A path without ids and made-up words, so that one deviation is one.
fn route(path: &str) -> &str {
    let known = ["/oap/memory/grant/", "/oap/memory/vec/", "/oap/memory/"];
    let end = known.iter().find(|prefix| path.starts_with(**prefix) && path.len() > prefix.len() + 12);
    end.map_or(path, |prefix| *prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Reply { status, headers, bytes: body.as_bytes().to_vec() }
    }

    const GOOD: [(&str, &str); 3] = [
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("content-type", "application/oap+json"),
    ];

    fn of(request: &Request, reply: &Reply) -> usize {
        deviations(&Declared::default(), request, reply).len()
    }

    #[test]
    fn each_thing_that_is_missing_is_told() {
        let ask = Request { method: "GET", path: "/oap/memory/query".to_owned(), ..Request::default() };
        assert_eq!(of(&ask, &reply(200, &GOOD, "{}")), 0);
        assert_eq!(of(&ask, &reply(200, &[], "{}")), 3);
        let refused = r#"{"error":"auth_required","message":"","request_id":"x"}"#;
        assert_eq!(of(&ask, &reply(401, &GOOD, refused)), 1);
        assert_eq!(of(&ask, &reply(403, &GOOD, refused)), 1);
        assert_eq!(of(&ask, &reply(405, &GOOD, "{}")), 5);
        let fault = r#"{"error":"internal_error","message":"","request_id":"x"}"#;
        assert_eq!((of(&ask, &reply(500, &GOOD, fault)), of(&ask, &reply(507, &GOOD, fault))), (1, 1));
        let limited = r#"{"error":"rate_limited","message":"","request_id":"x"}"#;
        assert_eq!(of(&ask, &reply(429, &GOOD, limited)), 1);
        let waits = [GOOD[0], GOOD[1], GOOD[2], ("retry-after", "7")];
        assert_eq!(of(&ask, &reply(429, &waits, limited)), 0);
        for (algorithms, lacks) in [("EdDSA", 0), ("RS256", 1)] {
            let challenge = format!("DPoP algs=\"{algorithms}\"");
            let headers = [GOOD[0], GOOD[1], GOOD[2], ("www-authenticate", challenge.as_str())];
            assert_eq!(of(&ask, &reply(401, &headers, refused)), lacks, "{algorithms}");
        }
        let published = Request { path: "/.well-known/did.json".to_owned(), ..ask.clone() };
        let kept = [GOOD[0], ("cache-control", "max-age=60")];
        assert_eq!(of(&published, &reply(304, &kept, "")), 0);
        let kept = [kept[0], kept[1], GOOD[2]];
        let missing = r#"{"error":"not_found","message":"","request_id":"x"}"#;
        assert_eq!(of(&published, &reply(404, &kept, missing)), 1);
        for (name, lacks) in [("01J9V8B7H1ZK4D2A0M9R8F0KQX", 1), ("01J9V8B7H1ZK4D2A0M9R8F0KQU", 0), ("y", 0)]
        {
            let named =
                Request { headers: vec![("OAP-Request-Id".to_owned(), name.to_owned())], ..ask.clone() };
            assert_eq!(of(&named, &reply(404, &GOOD, missing)), lacks, "{name}");
        }
        let events = Request { path: "/oap/memory/subscribe/sub_1/events".to_owned(), ..ask.clone() };
        assert_eq!(of(&events, &reply(200, &GOOD, "")), 1);
        let export = Request { path: "/oap/memory/export".to_owned(), ..ask };
        assert_eq!(of(&export, &reply(200, &GOOD, "")), 1);
    }

    #[test]
    fn what_a_header_says_counts_and_not_how_it_is_written() {
        let ask = Request { method: "GET", path: "/oap/memory/query".to_owned(), ..Request::default() };
        for (cache, lacks) in
            [("private, No-Store", 0), ("private", 1), ("no-storefront", 1), ("max-age=60", 1)]
        {
            let headers = [
                ("x-content-type-options", "NoSniff"),
                ("cache-control", cache),
                ("content-type", "Application/OAP+json"),
            ];
            assert_eq!(of(&ask, &reply(200, &headers, "{}")), lacks, "{cache}");
        }
    }

    #[test]
    fn a_refused_envelope_is_named_as_it_was_sent() {
        let [sent, header, another] =
            ["01J9V8B7H1ZK4D2A0M9R8F0KQX", "01J9V8B7H1ZK4D2A0M9R8F0KQY", "01J9V8B7H1ZK4D2A0M9R8F0KQZ"];
        let ask = Request {
            method: "POST",
            path: INVOKE.to_owned(),
            headers: vec![("OAP-Request-Id".to_owned(), header.to_owned())],
            body: Some(format!(r#"{{"request_id":"{sent}"}}"#).into_bytes()),
        };
        for (name, lacks) in [(sent, 0), (header, 0), (another, 1)] {
            let refused = format!(
                r#"{{"oap_version":"1.0","request_id":"{name}","response_id":"","timestamp":"","error":{{"code":"invalid_input","message":""}},"signature":{{"value":""}}}}"#
            );
            assert_eq!(of(&ask, &reply(400, &GOOD, &refused)), lacks, "{name}");
        }
    }
}
