//! What an owner may not say of its scopes: contexts that are none of `oap-ccc.schema.json`, and bridges that are none. Each beside one that is.

use super::super::context::{Context, Session, expect};
use super::super::{Failed, Probe, Severity};
use super::{items, note, owned, probe};
use oap_identity::{ScopeId, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("refused-contexts", &["CO-18"], Major, probe!(contexts)),
        owned("refused-bridges", &["PS-03", "PS-04"], Critical, probe!(bridges)),
    ]
}

/// What is changed in a document that may be, and what it is then.
pub(super) type Case = (&'static str, fn(&mut Value));

pub(super) fn without(document: &mut Value, name: &str) {
    document.as_object_mut().map(|members| members.remove(name));
}

/// Adds an element to a list.
pub(super) fn add(list: &mut Value, element: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(element);
    }
}

/// What a promise must have, by its list.
const REQUIRED: [(&str, &[&str]); 3] = [
    (
        "active_ndas",
        &["id", "counterparties", "type", "valid_from", "valid_until", "jurisdiction", "document_hash"],
    ),
    ("non_competes", &["ex_employer", "valid_until", "scope"]),
    ("chinese_walls", &["between", "reason"]),
];

/// Contexts that the schema does not have.
const BAD_CONTEXTS: &[Case] = &[
    ("no ccc_version", |c| without(c, "ccc_version")),
    ("another ccc_version", |c| c["ccc_version"] = json!("2.0")),
    ("a ccc_version that is a number", |c| c["ccc_version"] = json!(1)),
    ("no scope_id", |c| without(c, "scope_id")),
    ("a scope_id that is no scope", |c| c["scope_id"] = json!("two words")),
    ("a member that the schema does not have", |c| c["embargoes"] = json!([])),
    ("a list around it", |c| *c = json!([c.clone()])),
    ("active_ndas that are no list", |c| c["active_ndas"] = json!({})),
    ("an NDA of no type", |c| c["active_ndas"][0]["type"] = json!("one_way")),
    ("counterparties that are no list", |c| {
        c["active_ndas"][0]["counterparties"] = json!("did:web:a.example")
    }),
    ("a counterparty that is no text", |c| c["active_ndas"][0]["counterparties"] = json!([1])),
    ("covered_categories that are no list", |c| c["active_ndas"][0]["covered_categories"] = json!("fact")),
    ("covered_categories that are null", |c| c["active_ndas"][0]["covered_categories"] = Value::Null),
    ("a day that there is not", |c| c["active_ndas"][0]["valid_from"] = json!("2026-02-30")),
    ("a day of short numbers", |c| c["active_ndas"][0]["valid_from"] = json!("2026-5-1")),
    ("a time in place of a day", |c| c["active_ndas"][0]["valid_until"] = json!("2099-05-01T00:00:00Z")),
    ("a word in place of a day", |c| c["active_ndas"][0]["valid_until"] = json!("never")),
    ("a jurisdiction in small letters", |c| c["active_ndas"][0]["jurisdiction"] = json!("de")),
    ("a jurisdiction of one capital", |c| c["active_ndas"][0]["jurisdiction"] = json!("De")),
    ("a jurisdiction of three letters", |c| c["active_ndas"][0]["jurisdiction"] = json!("DEU")),
    ("a short document_hash", |c| {
        c["active_ndas"][0]["document_hash"] = json!(format!("sha256:{}", "0".repeat(63)));
    }),
    ("a document_hash in capitals", |c| {
        c["active_ndas"][0]["document_hash"] = json!(format!("sha256:{}", "A".repeat(64)));
    }),
    ("a second NDA that is none", |c| add(&mut c["active_ndas"], json!({"id": "n"}))),
    ("covered_industries that are null", |c| c["non_competes"][0]["covered_industries"] = Value::Null),
    ("covered_industries that are no list", |c| c["non_competes"][0]["covered_industries"] = json!(true)),
    ("a non-compete until no day", |c| c["non_competes"][0]["valid_until"] = json!("2099")),
    ("a subject_did that is no text", |c| c["non_solicits"][0]["subject_did"] = json!(1)),
    ("a subject_did that is null", |c| c["non_solicits"][0]["subject_did"] = Value::Null),
    ("applies_to of nobody", |c| c["non_solicits"][0]["applies_to"] = json!("nobody")),
    ("a non-solicit until no day", |c| c["non_solicits"][0]["valid_until"] = json!("soon")),
    ("a non-solicit until null", |c| c["non_solicits"][0]["valid_until"] = Value::Null),
    ("an embargo_list that is text", |c| c["embargo_list"] = json!("did:web:a.example")),
    ("an embargo_list that is null", |c| c["embargo_list"] = Value::Null),
    ("an embargo on a number", |c| c["embargo_list"] = json!([1])),
    ("a wall with one side", |c| c["chinese_walls"][0]["between"] = json!(["probe-one"])),
    ("a wall with one side beside another", |c| {
        add(&mut c["chinese_walls"], json!({"between": ["probe-one"], "reason": "x"}));
    }),
    ("a wall between letters", |c| c["chinese_walls"][0]["between"] = json!("probe-one")),
    ("a professional code that is no text", |c| c["professional_codes"] = json!([1])),
    ("fiduciary_duties that are no list", |c| c["fiduciary_duties"] = json!("trust")),
    ("a classification that there is not", |c| c["regulatory_classification"] = json!("top_secret")),
    ("a classification in capitals", |c| c["regulatory_classification"] = json!("TRADE_SECRET")),
    ("a classification that is null", |c| c["regulatory_classification"] = Value::Null),
    ("an issuer that is no text", |c| c["insider_lists"][0]["issuer"] = json!(1)),
    ("an issuer that is null", |c| c["insider_lists"][0]["issuer"] = Value::Null),
    ("an insider since no time", |c| c["insider_lists"][0]["added_on"] = json!("lately")),
    ("a sanctions list that there is not", |c| c["sanctions_screening"] = json!(["ofac", "mars"])),
    ("a sanctions list in capitals", |c| c["sanctions_screening"] = json!(["OFAC"])),
    ("an export control that is a number", |c| c["export_control_classification"] = json!(5)),
    ("a security_clearance that is null", |c| c["security_clearance"] = Value::Null),
    ("a security_clearance that is text", |c| c["security_clearance"] = json!("fact")),
    ("a clearance for a number", |c| c["security_clearance"] = json!([1])),
];

/// Contexts that it has.
const GOOD_CONTEXTS: &[Case] = &[
    ("an NDA that covers everything", |c| without(&mut c["active_ndas"][0], "covered_categories")),
    ("an NDA that covers nothing", |c| c["active_ndas"][0]["covered_categories"] = json!([])),
    ("a leap day", |c| c["active_ndas"][0]["valid_from"] = json!("2024-02-29")),
    ("a promise that says more", |c| c["non_competes"][0]["note"] = json!("said by mouth")),
    ("promises that say nothing", |c| {
        (c["non_solicits"], c["insider_lists"]) = (json!([{}]), json!([{}]));
    }),
    ("a wall of three sides", |c| add(&mut c["chinese_walls"][0]["between"], json!("did:web:a.example"))),
    ("no export control", |c| c["export_control_classification"] = Value::Null),
    ("no clearance at all", |c| without(c, "security_clearance")),
];

/// A context that has every member of the schema.
fn whole(scope: &str, label: &str, embargoed: &str) -> Value {
    json!({
        "ccc_version": "1.0", "scope_id": scope,
        "active_ndas": [{
            "id": "nda", "counterparties": ["did:web:a.example"], "type": "mutual", "covered_categories": [label],
            "valid_from": "2020-01-01", "valid_until": "2099-12-31", "jurisdiction": "DE",
            "document_hash": format!("sha256:{}", "0".repeat(64)),
        }],
        "non_competes": [{
            "ex_employer": "did:web:a.example", "valid_until": "2099-12-31", "scope": "all", "covered_industries": [label],
        }],
        "non_solicits": [{"subject_did": "did:web:a.example", "applies_to": "both", "valid_until": "2099-12-31"}],
        "embargo_list": [embargoed],
        "chinese_walls": [{"between": [scope, format!("{scope}-other")], "reason": "a deal"}],
        "professional_codes": ["bar:de"], "fiduciary_duties": ["trustee"],
        "regulatory_classification": "trade_secret",
        "insider_lists": [{"issuer": label, "instrument": label, "added_on": "2026-01-01T00:00:00Z"}],
        "sanctions_screening": ["ofac", "eu", "un", "uk_ofsi"],
        "export_control_classification": "EAR99", "security_clearance": [label],
    })
}

/// An item in a scope of its own.
async fn captured(context: &Context<'_>, scope: &str, label: &str) -> Result<(), Failed> {
    let mut item = note("a note", &[label]);
    item["scope_id"] = json!(scope);
    context.capture(&[item]).await.map(drop)
}

async fn shows(context: &Context<'_>, session: &Session) -> Result<usize, Failed> {
    Ok(items(&context.answer(session, &json!({"query": ""})).await?).len())
}

fn set(document: &Value) -> Value {
    json!({"do": "context", "context": document})
}

async fn is_refused(context: &Context<'_>, what: &str, document: &Value) -> Result<(), Failed> {
    let done = context.try_owner(set(document)).await?;
    expect(done.is_err(), || format!("a context with {what} was taken (protocol 7, oap-ccc.schema.json)"))
}

/// A context of another form is refused, and the one before it counts on (protocol section 7).
async fn contexts(context: &Context<'_>) -> Result<(), Failed> {
    let (label, scope) = (context.word(), format!("probe-{}", context.word()));
    captured(context, &scope, &label).await?;
    let grantee = context.stranger();
    let whole = whole(&scope, &label, grantee.did().as_str());
    let mut draft = context.draft(&grantee, &label, 2);
    draft["scope"] = json!(scope);
    let session = context.session(grantee, draft).await?;
    context.owner(set(&whole)).await?;
    for (what, change) in BAD_CONTEXTS {
        let mut bad = whole.clone();
        change(&mut bad);
        is_refused(context, what, &bad).await?;
    }
    for (list, members) in REQUIRED {
        for member in members {
            let mut bad = whole.clone();
            without(&mut bad[list][0], member);
            is_refused(context, &format!("{list} without {member}"), &bad).await?;
        }
    }
    // With no word of the embargo: it would show.
    let other = json!({"ccc_version": "1.1", "scope_id": scope});
    is_refused(context, "another version and nothing else", &other).await?;
    expect(shows(context, &session).await? == 0, || {
        "a context that was refused took the place of the one before it".to_owned()
    })?;
    let good = GOOD_CONTEXTS.iter().map(|(what, change)| {
        let mut good = whole.clone();
        change(&mut good);
        (*what, good)
    });
    let empty = ("nothing in it", json!({"ccc_version": "1.0", "scope_id": scope}));
    for (what, document) in good.chain([empty]) {
        let done = context.try_owner(set(&document)).await?;
        expect(done.is_ok(), || format!("a context with {what} was refused (oap-ccc.schema.json)"))?;
    }
    expect(shows(context, &session).await? == 1, || {
        "a context with nothing in it stops an item of its scope".to_owned()
    })
}

/// Drafts of bridges over which nothing may pass. Each may be refused, or signed and carry nothing.
const BAD_BRIDGES: &[Case] = &[
    ("no from_scope", |d| without(d, "from_scope")),
    ("no to_scope", |d| without(d, "to_scope")),
    ("no valid_until", |d| without(d, "valid_until")),
    ("a from_scope that is no text", |d| d["from_scope"] = json!([d["from_scope"]])),
    ("a to_scope that is no text", |d| d["to_scope"] = json!([d["to_scope"]])),
    ("a from_scope that is a key's name", |d| d["from_scope"] = json!("key-1")),
    ("a to_scope that is a key's name", |d| d["to_scope"] = json!("key-1")),
    ("a to_scope of two words", |d| d["to_scope"] = json!("two words")),
    ("an empty from_scope", |d| d["from_scope"] = json!("")),
    ("a scope of 65 letters", |d| d["to_scope"] = json!("a".repeat(65))),
    ("both scopes the same, the first", |d| d["to_scope"] = d["from_scope"].clone()),
    ("both scopes the same, the second", |d| d["from_scope"] = d["to_scope"].clone()),
    ("the scopes turned round", |d| {
        (d["from_scope"], d["to_scope"]) = (d["to_scope"].clone(), d["from_scope"].clone());
    }),
    ("no category in its list", |d| d["data_categories"] = json!([])),
    ("data_categories that are text", |d| d["data_categories"] = d["data_categories"][0].clone()),
    ("a category that is a number", |d| d["data_categories"] = json!([1])),
    ("a category in capitals", |d| {
        d["data_categories"] = json!([d["data_categories"][0].as_str().unwrap_or_default().to_uppercase()]);
    }),
    ("a category for everything", |d| d["data_categories"] = json!(["*"])),
    ("an end that was long ago", |d| d["valid_until"] = json!("2020-01-01T00:00:00Z")),
    ("an end that is a day", |d| d["valid_until"] = json!("2099-01-01")),
    ("an end that is a word", |d| d["valid_until"] = json!("never")),
    ("an end that is a number", |d| d["valid_until"] = json!(4_102_444_800_u64)),
    ("an end that is null", |d| d["valid_until"] = Value::Null),
    ("an end that is empty", |d| d["valid_until"] = json!("")),
];

/// Drafts over which the item passes.
const GOOD_BRIDGES: &[Case] = &[
    ("a label", |_| {}),
    ("its kind", |d| d["data_categories"] = json!(["fact"])),
    ("one of two categories", |d| add(&mut d["data_categories"], json!("another"))),
];

/// How long a bridge of these holds.
const LIFE: Duration = Duration::from_secs(86_400);

/// Whether a signed bridge has the form that is published (`schemas/bridge.schema.json`).
fn has_its_form(bridge: &Value) -> bool {
    let scope = |name: &str| bridge[name].as_str().is_some_and(|text| text.parse::<ScopeId>().is_ok());
    let time = |name: &str| bridge[name].as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok());
    let categories = bridge["data_categories"].as_array();
    let named = categories.is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string));
    named
        && scope("from_scope")
        && scope("to_scope")
        && time("issued_at")
        && time("valid_until")
        && bridge["revocable"] == true
}

async fn unbridge(context: &Context<'_>, bridge: &Value) -> Result<(), Failed> {
    context.owner(json!({"do": "unbridge", "bridge_id": bridge["bridge_id"]})).await.map(drop)
}

/// Nothing passes over what is no bridge, has ended, or leads elsewhere (protocol section 7).
async fn bridges(context: &Context<'_>) -> Result<(), Failed> {
    let (label, from, to) =
        (context.word(), format!("probe-{}", context.word()), format!("probe-{}", context.word()));
    captured(context, &from, &label).await?;
    let draft = json!({
        "from_scope": from, "to_scope": to, "data_categories": [label], "valid_until": context.now().plus(LIFE),
    });
    let sign = |draft: &Value| json!({"do": "bridge", "draft": draft});
    // A grant that names the scope is issued where a bridge leads out of it.
    let first = context.owner(sign(&draft)).await?;
    let grantee = context.stranger();
    let mut grant = context.draft(&grantee, &label, 2);
    (grant["scope"], grant["filter"]["scopes"]) = (json!(to), json!([from]));
    let session = context.session(grantee, grant).await?;
    unbridge(context, &first["bridge"]).await?;
    for (what, change) in BAD_BRIDGES {
        let mut bad = draft.clone();
        change(&mut bad);
        let Ok(signed) = context.try_owner(sign(&bad)).await? else { continue };
        let bridge = &signed["bridge"];
        expect(has_its_form(bridge), || {
            format!("a bridge with {what} was signed, and has not the form of one (bridge.schema.json)")
        })?;
        // What a draft lacks the owner's side may have added.
        let end: Option<Timestamp> = bridge["valid_until"].as_str().and_then(|end| end.parse().ok());
        let is_right =
            ["from_scope", "to_scope", "data_categories"].iter().all(|name| bridge[*name] == draft[*name]);
        if is_right && end.is_some_and(|end| end > context.now()) {
            unbridge(context, bridge).await?;
            continue;
        }
        expect(shows(context, &session).await? == 0, || {
            format!("an item passes over a bridge with {what} (protocol 7)")
        })?;
        unbridge(context, bridge).await?;
    }
    for (what, change) in GOOD_BRIDGES {
        let mut good = draft.clone();
        change(&mut good);
        let signed = context.try_owner(sign(&good)).await?;
        let signed =
            signed.map_err(|why| Failed::Wrong(format!("a bridge for {what} was refused: {}", why.0)))?;
        expect(shows(context, &session).await? == 1, || {
            format!("an item does not pass over a bridge for {what} (protocol 7)")
        })?;
        unbridge(context, &signed["bridge"]).await?;
        expect(shows(context, &session).await? == 0, || {
            "an item passes over a bridge that was taken back".to_owned()
        })?;
    }
    Ok(())
}
