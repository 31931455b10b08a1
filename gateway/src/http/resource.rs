//! Who calls `/mcp`, and from where: an agent by its API key or by an access token of OAuth, and never a page that was led here. The token of
//! a grant is told apart before ([`mcp_grant`](super::mcp_grant)).

use super::App;
use super::mcp;
use super::request::{Incoming, Sender};
use crate::Error;
use crate::api::Permission;
use crate::error::{MemberError, Unproved};
use crate::oauth::metadata;
use crate::oauth::secret::ACCESS_PREFIX;
use crate::state::agents::Agent;
use crate::state::approvals::Granted;
use crate::state::gateway::Gateway;
use crate::state::owner::mark::Read;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use oap_agents::Tool;
use oap_grants::dpop;
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use url::Url;

/// Who calls.
pub(super) struct Who {
    pub(super) agent: Agent<Read>,
    /// By an access token: what the agent itself may do.
    whole: Option<Permission>,
    /// By an access token that is bound to a key.
    is_bound: bool,
}

/// That no page in a browser calls that the owner did not list, under no name that somebody else made lead here (DNS rebinding), and
/// that no token stands in the address.
pub(super) fn comes_from_a_program(request: &Incoming) -> Result<(), Error> {
    let config = &request.app().gateway.config;
    let origins = request.header("origin");
    if !origins.iter().all(|origin| config.mcp_origins.iter().any(|known| known.as_str() == origin)) {
        return Err(Error::Origin);
    }
    comes_by_its_name(request)?;
    if request.parameters()?.iter().any(|(name, _)| name == "access_token") {
        return Err(Error::Member("access_token", MemberError::TokenInAddress));
    }
    Ok(())
}

/// That a request comes under a name of the gateway's: a page that was led here by another (DNS rebinding) would read what it is answered.
///
/// # Errors
/// [`Error::Host`].
pub(super) fn comes_by_its_name(request: &Incoming) -> Result<(), Error> {
    let config = &request.app().gateway.config;
    let is_proxys =
        request.peer().is_some_and(|peer| config.trusted_proxies.iter().any(|p| p.contains(peer)));
    let origin = request.app().gateway.origin();
    let is_own = request.header("host").iter().all(|host| is_own(host, origin, &config.mcp_hosts));
    if is_proxys || is_own { Ok(()) } else { Err(Error::Host) }
}

/// Whether a `Host` is the gateway's: the name of its origin, one that the owner listed, or what no name service decides on.
fn is_own(host: &str, origin: &str, listed: &[String]) -> bool {
    let of = |text: &str| {
        let url: Url = text.parse().ok()?;
        let is_bare = url.username().is_empty() && url.password().is_none() && url.path() == "/";
        let plain = is_bare && url.query().is_none() && url.fragment().is_none();
        url.host_str().filter(|_| plain).map(ToOwned::to_owned)
    };
    let Some(name) = of(&format!("https://{host}")) else { return false };
    let figures = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    figures
        || name == "localhost"
        || listed.iter().any(|known| known.eq_ignore_ascii_case(&name))
        || of(origin) == Some(name)
}

/// Which agent a request is from.
///
/// # Errors
/// [`Error::Owner`], [`Error::Unauthenticated`], [`Error::RateLimited`].
pub(super) async fn who(request: &mut Incoming) -> Result<Who, Error> {
    let Some((scheme, token)) = access_token(request) else {
        return mcp::agent(request).await.map(|agent| Who { agent, whole: None, is_bound: false });
    };
    let gateway = request.app().gateway.clone();
    match granted(&gateway, request.header("dpop"), request.target(), &scheme, &token).await {
        Ok(Granted { agent, whole, jkt }) => {
            request.sent_by(Sender::Agent);
            Ok(Who { agent, whole: Some(whole), is_bound: jkt.is_some() })
        }
        // A client that was known, and asks too often.
        Err(error @ Error::RateLimited(_)) => Err(error),
        Err(error) => {
            // Whoever tries tokens is nobody.
            request.rate_limit()?;
            Err(error)
        }
    }
}

/// The access token that a request has, and its scheme in small letters.
fn access_token(request: &Incoming) -> Option<(String, String)> {
    let (authorization, key) = (request.header("authorization"), request.header("x-api-key"));
    let ([one], []) = (authorization.as_slice(), key.as_slice()) else { return None };
    let (scheme, token) = one.split_once(' ')?;
    let token = token.trim();
    token.starts_with(ACCESS_PREFIX).then(|| (scheme.to_ascii_lowercase(), token.to_owned()))
}

/// Whose token it is, with the proof of the key that it is bound to, and with room for one more request of its agent.
async fn granted(
    gateway: &Arc<Gateway>,
    proofs: Vec<String>,
    (method, url): (String, String),
    scheme: &str,
    token: &str,
) -> Result<Granted, Error> {
    let granted = gateway.agent_by_token(token)?;
    match (scheme, &granted.jkt) {
        ("bearer", None) => mcp::has_room(gateway, &granted.agent)?,
        ("dpop", Some(jkt)) => {
            let headers: Vec<&str> = proofs.iter().map(String::as_str).collect();
            let target = dpop::Request { method: &method, url: &url };
            let proof = dpop::check(&headers, target, token, gateway.clock.now())
                .map_err(|error| Error::Unauthenticated(error.into()))?;
            if proof.jkt != *jkt {
                return Err(Error::Owner(Unproved::OtherKey));
            }
            // Before the proof is written: what is beyond the bound leaves nothing.
            mcp::has_room(gateway, &granted.agent)?;
            gateway.use_proof(proof.replay_key).await?;
        }
        ("bearer", Some(_)) => return Err(Error::Owner(Unproved::TokenBound)),
        ("dpop", None) => return Err(Error::Owner(Unproved::TokenUnbound)),
        _ => return Err(Error::Owner(Unproved::NoKey)),
    }
    Ok(granted)
}

/// The answer to a call that the token does not permit and the agent would: the client may ask the owner for more (RFC 6750 section 3.1).
pub(super) fn asks_for_more(app: &App, who: &Who, message: &Value) -> Option<Response> {
    let called = message.get("method").and_then(Value::as_str) == Some("tools/call");
    let tool =
        message.pointer("/params/name").and_then(Value::as_str).filter(|_| called).and_then(Tool::of)?;
    let needed = match tool {
        Tool::Compact => Permission::Admin,
        tool if tool.is_read_only() => Permission::Read,
        _ => Permission::Write,
    };
    let agent_may = who.whole.is_some_and(|whole| whole >= needed);
    if who.agent.permission() >= needed || !agent_may {
        return None;
    }
    let mut response = Error::Permission(needed.as_str()).into_response();
    let scheme = if who.is_bound { "DPoP" } else { "Bearer" };
    let says = metadata::challenge(scheme, app.gateway.origin(), Some("insufficient_scope"), needed);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_str(&says).ok()?);
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_here() {
        let own = |host: &str| is_own(host, "https://user.example:8443", &[]);
        for host in [
            "user.example",
            "user.example:8443",
            "USER.example",
            "127.0.0.1:8443",
            "[::1]:1",
            "localhost:80",
            "192.0.2.7",
        ] {
            assert!(own(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8443",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "a@user.example",
            "user.example/x",
            "user.example?x",
            "user.example#x\\",
        ] {
            assert!(!own(host), "{host}");
        }
    }
}
