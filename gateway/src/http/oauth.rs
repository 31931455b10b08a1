//! OAuth for `/mcp` (docs/oauth.md): what the gateway publishes of itself, the pages that ask the owner, and the endpoints of tokens.

use super::App;
use super::request::Incoming;
use super::resource::comes_by_its_name;
use crate::Error;
use crate::oauth::asked::Parameters;
use crate::oauth::token::MAX_FORM;
use crate::oauth::{AUTHORIZE, OAuthError, metadata, pages, scopes};
use crate::service::Clients;
use crate::service::oauth::Refused;
use crate::state::waiting::{Page, WAITS};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oap_grants::dpop::{self, Proof};
use serde_json::json;

/// By what a page knows the browser that opened it: no account and no session, and of that one page.
const COOKIE: &str = "oap_oauth";

/// `GET /.well-known/oauth-protected-resource`, and the same with `/mcp` behind it (RFC 9728).
pub async fn resource(State(app): State<App>) -> Response {
    Json(metadata::resource(app.gateway.origin())).into_response()
}

/// `GET /.well-known/oauth-authorization-server` (RFC 8414).
pub async fn server(State(app): State<App>) -> Response {
    Json(metadata::server(app.gateway.origin())).into_response()
}

/// `GET /oauth/authorize`: a client asks for the owner's yes. The browser goes to a page of its own, which waits.
pub async fn authorize(State(app): State<App>, request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    comes_by_its_name(&request)?;
    if let Err(error) = seen_by_a_person(&request) {
        return Ok(html(status(error), pages::refused(error)));
    }
    let (parameters, network) = (Parameters::new(request.parameters()?), request.network());
    match Clients(&app.gateway).authorize(&parameters, network).await {
        Ok(begun) => {
            let page = format!("{AUTHORIZE}/{}", *begun.page.text);
            let mut response = goes_to(&page)?;
            // Of this page alone, so that two that wait do not break each other. `Lax`: the browser comes here from the client's page.
            let secure = if app.gateway.origin().starts_with("https:") { "; Secure" } else { "" };
            let (browser, seconds) = (&*begun.browser.text, WAITS.as_secs());
            let cookie =
                format!("{COOKIE}={browser}; Path={page}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
            let cookie = HeaderValue::from_str(&cookie).map_err(|_| Error::NotFound)?;
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            Ok(response)
        }
        Err(Refused::OAuth(error)) => Ok(html(status(error), pages::refused(error))),
        Err(Refused::Gateway(error)) => Err(error),
    }
}

/// `GET /oauth/authorize/{request}`: the page of a request. It waits for the owner, and then goes back to the client.
pub async fn authorizing(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    comes_by_its_name(&request)?;
    if let Err(error) = seen_by_a_person(&request) {
        return Ok(html(status(error), pages::refused(error)));
    }
    let place = request.place().await?;
    let (issuer, cookies) = (app.gateway.origin(), request.header("cookie"));
    let pairs =
        cookies.iter().flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let known: Vec<&str> = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value).collect();
    match Clients(&app.gateway).look(&place, &known) {
        Page::Waits { asked, name, code } => {
            let shown = pages::Shown {
                name: &name.to_string(),
                client: &asked.client.to_string(),
                host: &asked.redirect.host(),
                is_loopback: asked.redirect.is_loopback(),
                scopes: &scopes(asked.permission),
                code: &code.to_string(),
            };
            Ok(html(StatusCode::OK, pages::waiting(&shown)))
        }
        Page::Yes { asked, code } => {
            let mut answer = vec![("code", code.text.as_str())];
            answer.extend(asked.state.as_deref().map(|state| ("state", state)));
            answer.push(("iss", issuer));
            goes_to(&asked.redirect.with(&answer))
        }
        Page::No(asked) => {
            let mut answer = vec![("error", "access_denied")];
            answer.extend(asked.state.as_deref().map(|state| ("state", state)));
            answer.push(("iss", issuer));
            let address = asked.redirect.with(&answer);
            Ok(html(StatusCode::OK, pages::declined(&asked.redirect.host(), &address)))
        }
        Page::Over => Ok(html(StatusCode::NOT_FOUND, pages::over())),
    }
}

/// `POST /oauth/token`.
pub async fn token(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    comes_by_its_name(&request)?;
    let given = async {
        let form = form(&mut request).await?;
        let proof = proof(&app, &request)?;
        Clients(&app.gateway).token(&form, proof).await
    };
    match given.await {
        Ok(tokens) => Ok(Json(tokens).into_response()),
        Err(refused) => refusal(&request, refused),
    }
}

/// `POST /oauth/revoke` (RFC 7009).
pub async fn revoke(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    comes_by_its_name(&request)?;
    let done = async {
        let form = form(&mut request).await?;
        Clients(&app.gateway).revoke(&form).await
    };
    match done.await {
        Ok(()) => Ok(Json(json!({})).into_response()),
        Err(refused) => refusal(&request, refused),
    }
}

/// That a browser opens a page as a page: no picture, frame or script of another site makes requests wait here.
fn seen_by_a_person(request: &Incoming) -> Result<(), OAuthError> {
    // `HEAD` shows nothing to anybody, and so uses nothing up.
    let opened =
        request.target().0 == "GET" && request.header("sec-fetch-dest").iter().all(|dest| dest == "document");
    // Nor one that a browser loads in case somebody will want it.
    if opened && request.header("sec-purpose").is_empty() { Ok(()) } else { Err(OAuthError::Embedded) }
}

/// The form of a client, which proves itself by nothing but what it sends in it.
async fn form(request: &mut Incoming) -> Result<Parameters, Refused> {
    if !request.header("authorization").is_empty() {
        return Err(OAuthError::ClientSecret.into());
    }
    match request.form(MAX_FORM).await? {
        Some(pairs) => Ok(Parameters::new(pairs)),
        None => Err(OAuthError::Form(MAX_FORM).into()),
    }
}

/// The client's proof of possession, where it sends one, checked but for its use.
fn proof(app: &App, request: &Incoming) -> Result<Option<Proof>, OAuthError> {
    let headers = request.header("dpop");
    if headers.is_empty() {
        return Ok(None);
    }
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let (method, url) = request.target();
    let target = dpop::Request { method: &method, url: &url };
    dpop::check_without_token(&headers, target, app.gateway.clock.now())
        .map(Some)
        .map_err(|_| OAuthError::Proof)
}

const fn status(error: OAuthError) -> StatusCode {
    if error.is_for_now() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::BAD_REQUEST }
}

/// A refusal as RFC 6749 section 5.2 has it.
fn refusal(request: &Incoming, refused: Refused) -> Result<Response, Error> {
    let error = match refused {
        Refused::OAuth(error) => error,
        Refused::Gateway(error) => return Err(error),
    };
    let body = json!({
        "error": error.code(), "error_description": error.to_string(), "message": error.to_string(),
        "request_id": request.name(),
    });
    let mut response = (status(error), Json(body)).into_response();
    // Who proves itself in the header is told so in the header.
    if matches!(error, OAuthError::ClientSecret) && !request.header("authorization").is_empty() {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        let none = HeaderValue::from_static("Basic realm=\"clients are public here\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, none);
    }
    Ok(response)
}

/// A page, which may load and do nothing, and which nobody shows inside another.
fn html(status: StatusCode, page: String) -> Response {
    let headers: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, pages::POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, page).into_response()
}

/// Sends the browser on.
fn goes_to(address: &str) -> Result<Response, Error> {
    // Its parts are ASCII by construction.
    let address = HeaderValue::from_str(address).map_err(|_| Error::NotFound)?;
    let headers =
        [(header::LOCATION, address), (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"))];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// What a request to `/mcp` is answered whose credential does not count: how to get one that does.
pub(super) fn unauthorized(app: &App, error: Error, request: &Incoming) -> Response {
    let presented = ["authorization", "x-api-key"].iter().any(|name| !request.header(name).is_empty());
    let by_key = request
        .header("authorization")
        .iter()
        .any(|value| value.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("dpop ")));
    // A client whose clock stands wrong makes another proof; it does not throw its token away.
    let is_proof = matches!(error, Error::Unauthenticated(_) | Error::Proof(_));
    let mut response = error.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        let (origin, needed) = (app.gateway.origin(), crate::oauth::USUAL);
        let challenges = if by_key {
            let code = if is_proof { "invalid_dpop_proof" } else { "invalid_token" };
            let dpop = metadata::challenge("DPoP", origin, Some(code), needed);
            [format!("{dpop}, algs=\"EdDSA\""), metadata::challenge("Bearer", origin, None, needed)]
        } else {
            let code = presented.then_some("invalid_token");
            [metadata::challenge("Bearer", origin, code, needed), "DPoP algs=\"EdDSA\"".to_owned()]
        };
        response.headers_mut().remove(header::WWW_AUTHENTICATE);
        for challenge in challenges.iter().filter_map(|text| HeaderValue::from_str(text).ok()) {
            response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
        }
    }
    response
}
