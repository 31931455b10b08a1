//! Client ID metadata documents: a client whose `client_id` is the https address of a document that says who it is
//! (draft-ietf-oauth-client-id-metadata-document-00).

use super::client::{Client, ClientId, MAX_CLIENT_ID, MAX_REDIRECTS, ShownName};
use super::{OAuthError, RedirectUri};
use oap_identity::json;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use url::Url;

/// Largest document, in bytes.
pub const MAX_DOCUMENT: usize = 16 << 10;

/// The address of a client metadata document: https, with a path, without fragment and user, written in its normal form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentUrl(String);

impl FromStr for DocumentUrl {
    type Err = OAuthError;

    fn from_str(text: &str) -> Result<Self, OAuthError> {
        let url: Url = text.parse().map_err(|_| OAuthError::ClientId)?;
        // In normal form there are no dot segments, no default port and no capitals in the host: one client has one id.
        let fits = text.len() <= MAX_CLIENT_ID
            && url.as_str() == text
            && url.scheme() == "https"
            && url.path().len() > 1
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if fits { Ok(Self(text.to_owned())) } else { Err(OAuthError::ClientId) }
    }
}

impl DocumentUrl {
    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocumentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a document does not say who a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Nobody answered, or somebody that strangers may not lead us to. Which of them is not told: it would map the gateway's network.
    #[error("its document is not reached over https at a public address, or does not answer in time")]
    Unreachable,
    /// It answers with something else, such as a redirect.
    #[error("its document is not there: the address must answer 200 itself, without a redirect")]
    Status,
    /// Larger than is read.
    #[error("its document is larger than {MAX_DOCUMENT} bytes")]
    TooLarge,
    /// Not what a document is.
    #[error("its document is not a JSON object served as application/json")]
    Json,
    /// The document of another client.
    #[error("its document has another client_id than its own address")]
    OtherClient,
    /// It does not say what it is called.
    #[error("its document has no client_name")]
    Name,
    /// Nowhere to go back to.
    #[error(
        "its document must have 1 to {MAX_REDIRECTS} redirect_uris, one at least https or http on loopback"
    )]
    Redirects,
    /// A client that proves itself in a way that is not known here.
    #[error("its document must have no token_endpoint_auth_method but none: clients are public here")]
    Method,
}

/// Reads the document at an address.
///
/// # Errors
/// [`DocumentError`].
pub fn read(url: &DocumentUrl, body: &[u8]) -> Result<Client, DocumentError> {
    let Ok(Value::Object(document)) = json::parse(body) else { return Err(DocumentError::Json) };
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    if text("client_id") != Some(url.as_str()) {
        return Err(DocumentError::OtherClient);
    }
    let name = text("client_name").filter(|name| !name.trim().is_empty()).ok_or(DocumentError::Name)?;
    let is_public = document.get("token_endpoint_auth_method").is_none_or(|method| method == "none");
    if !is_public || document.contains_key("client_secret") {
        return Err(DocumentError::Method);
    }
    let redirects =
        document.get("redirect_uris").and_then(Value::as_array).ok_or(DocumentError::Redirects)?;
    if !(1..=MAX_REDIRECTS).contains(&redirects.len()) {
        return Err(DocumentError::Redirects);
    }
    // One that nobody is sent to here, such as of a private scheme, is no reason to refuse the others.
    let redirects: Vec<RedirectUri> = redirects.iter().filter_map(|uri| uri.as_str()?.parse().ok()).collect();
    if redirects.is_empty() {
        return Err(DocumentError::Redirects);
    }
    Ok(Client { id: ClientId::Document(url.clone()), name: ShownName::from(name.to_owned()), redirects })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_have_one_form() {
        for text in ["https://app.example/client.json", "https://app.example:8443/a/b?v=1"] {
            assert_eq!(text.parse::<DocumentUrl>().map(|url| url.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "http://app.example/c",
            "https://app.example",
            "https://app.example/",
            "https://APP.example/c",
            "https://app.example:443/c",
            "https://app.example/a/../c",
            "https://app.example/%2e%2e/c",
            "https://app.example/c#x",
            "https://u@app.example/c",
            "https://u:p@app.example/c",
            "https:/app.example/c",
        ] {
            assert_eq!(text.parse::<DocumentUrl>(), Err(OAuthError::ClientId), "{text}");
        }
    }

    #[test]
    fn a_document_says_who_a_client_is() {
        let url: DocumentUrl = "https://app.example/client.json".parse().unwrap();
        let good = json!({
            "client_id": url.as_str(), "client_name": "App", "redirect_uris": ["http://localhost/cb", "https://app.example/cb"],
            "grant_types": ["authorization_code"], "token_endpoint_auth_method": "none", "logo_uri": "https://x.example/",
        });
        let read = |value: &Value| read(&url, value.to_string().as_bytes());
        let client = read(&good).unwrap();
        assert_eq!((client.name.to_string().as_str(), client.redirects.len()), ("App", 2));
        let with = |name: &str, value: Value| {
            let mut document = good.clone();
            document[name] = value;
            read(&document)
        };
        assert_eq!(
            with("client_id", json!("https://app.example/other.json")),
            Err(DocumentError::OtherClient)
        );
        assert_eq!(with("client_id", json!(null)), Err(DocumentError::OtherClient));
        for name in [json!(null), json!(" "), json!(1)] {
            assert_eq!(with("client_name", name), Err(DocumentError::Name));
        }
        for uris in [
            json!([]),
            json!("x"),
            json!([1]),
            json!(["http://evil.example/"]),
            json!(vec!["http://localhost/"; 17]),
        ] {
            assert_eq!(with("redirect_uris", uris), Err(DocumentError::Redirects));
        }
        let mixed = with("redirect_uris", json!(["cursor://cb", "http://localhost/cb"])).unwrap();
        assert_eq!(mixed.redirects, ["http://localhost/cb".parse::<RedirectUri>().unwrap()]);
        assert_eq!(with("token_endpoint_auth_method", json!("private_key_jwt")), Err(DocumentError::Method));
        assert_eq!(with("client_secret", json!("x")), Err(DocumentError::Method));
        for body in ["", "[]", "null", "{", "<html>"] {
            assert_eq!(super::read(&url, body.as_bytes()), Err(DocumentError::Json), "{body}");
        }
    }
}
