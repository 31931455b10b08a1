//! What a client asks the owner for: the parameters of `/oauth/authorize` (OAuth 2.1 section 4.1.1).

use super::{Challenge, ClientId, OAuthError, RedirectUri, permission};
use oap_client::Permission;
use url::Url;

/// Longest `state`, in bytes.
pub const MAX_STATE: usize = 1024;
/// Longest `resource`, in bytes.
pub const MAX_RESOURCE: usize = 512;
/// Most parameters of a request; those that are not known are passed over.
pub const MAX_PARAMETERS: usize = 32;

/// Parameters, each once.
#[derive(Debug)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Parameters as they came.
    #[must_use]
    pub const fn new(parameters: Vec<(String, String)>) -> Self {
        Self(parameters)
    }

    /// The value of one; an empty one counts as absent (RFC 6749 section 3.1).
    ///
    /// # Errors
    /// [`OAuthError::Twice`].
    pub fn get(&self, name: &'static str) -> Result<Option<&str>, OAuthError> {
        if self.0.len() > MAX_PARAMETERS {
            return Err(OAuthError::TooLong("the parameters", MAX_PARAMETERS));
        }
        let mut found = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(OAuthError::Twice(name)),
            (value, None) => Ok(value.filter(|value| !value.is_empty())),
        }
    }

    /// The value of one that has to be there.
    ///
    /// # Errors
    /// [`OAuthError::Missing`], [`OAuthError::Twice`].
    pub fn need(&self, name: &'static str) -> Result<&str, OAuthError> {
        self.get(name)?.ok_or(OAuthError::Missing(name))
    }

    /// That `resource` (RFC 8707), where it is there, is this one.
    ///
    /// # Errors
    /// [`OAuthError::Target`].
    pub fn is_for(&self, resource: &str) -> Result<(), OAuthError> {
        let Some(given) = self.get("resource")? else { return Ok(()) };
        let of = |text: &str| text.parse::<Url>().ok().filter(|url| url.fragment().is_none());
        let is_ours = given.len() <= MAX_RESOURCE && of(given).is_some_and(|url| Some(url) == of(resource));
        if is_ours { Ok(()) } else { Err(OAuthError::Target) }
    }
}

/// A request for the owner's consent. Whether the client is who it says, and the address one of its own, is not judged yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Who asks.
    pub client: ClientId,
    /// Where the answer goes.
    pub redirect: RedirectUri,
    /// What it asks to do.
    pub permission: Permission,
    /// What it wants back with the answer.
    pub state: Option<String>,
    /// To what its code is bound.
    pub challenge: Challenge,
    /// The thumbprint of the key that its tokens are to be bound to, where it says so already (RFC 9449 section 10).
    pub jkt: Option<String>,
}

impl Asked {
    /// Reads the parameters of a request for a resource.
    ///
    /// # Errors
    /// [`OAuthError`].
    pub fn read(parameters: &Parameters, resource: &str) -> Result<Self, OAuthError> {
        let client = parameters.need("client_id")?.parse()?;
        let redirect = parameters.need("redirect_uri")?.parse()?;
        if parameters.need("response_type")? != "code" {
            return Err(OAuthError::ResponseType);
        }
        if parameters.get("code_challenge_method")? != Some("S256") {
            return Err(OAuthError::Challenge);
        }
        let challenge =
            parameters.get("code_challenge")?.and_then(Challenge::read).ok_or(OAuthError::Challenge)?;
        parameters.is_for(resource)?;
        let state = parameters.get("state")?;
        if state.is_some_and(|state| state.len() > MAX_STATE) {
            return Err(OAuthError::TooLong("state", MAX_STATE));
        }
        let jkt = parameters.get("dpop_jkt")?;
        if jkt.is_some_and(|jkt| Challenge::read(jkt).is_none()) {
            return Err(OAuthError::Thumbprint);
        }
        let scope = parameters.get("scope")?;
        Ok(Self {
            client,
            redirect,
            // Whoever does not say gets the least.
            permission: scope.map_or(Ok(Permission::Read), permission)?,
            state: state.map(ToOwned::to_owned),
            challenge,
            jkt: jkt.map(ToOwned::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MCP: &str = "https://user.example/mcp";

    fn read(change: &[(&str, &str)]) -> Result<Asked, OAuthError> {
        let mut pairs = vec![
            ("client_id", "desk"),
            ("redirect_uri", "http://localhost:1/cb"),
            ("response_type", "code"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
            ("resource", MCP),
            ("prompt", "consent"),
        ];
        for (name, value) in change {
            pairs.retain(|(known, _)| known != name);
            pairs.push((name, value));
        }
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Asked::read(&Parameters::new(pairs), MCP)
    }

    #[test]
    fn a_request_is_read_whole() {
        let asked = read(&[("state", "x"), ("scope", "memory.read memory.write")]).unwrap();
        assert_eq!((asked.permission, asked.state.as_deref()), (Permission::Write, Some("x")));
        assert_eq!(read(&[]).unwrap().permission, Permission::Read);
        assert!(read(&[("resource", "https://USER.example:443/mcp")]).is_ok());
        for (change, error) in [
            (("client_id", ""), OAuthError::Missing("client_id")),
            (("redirect_uri", ""), OAuthError::Missing("redirect_uri")),
            (("response_type", "token"), OAuthError::ResponseType),
            (("code_challenge_method", "plain"), OAuthError::Challenge),
            (("code_challenge_method", ""), OAuthError::Challenge),
            (("code_challenge", ""), OAuthError::Challenge),
            (("code_challenge", "short"), OAuthError::Challenge),
            (("resource", "https://user.example"), OAuthError::Target),
            (("resource", "https://other.example/mcp"), OAuthError::Target),
            (("resource", "https://user.example/mcp#x"), OAuthError::Target),
            (("resource", "https://user.example/mcp/../mcp/x"), OAuthError::Target),
            (("scope", "openid"), OAuthError::Scope),
            (("dpop_jkt", "x"), OAuthError::Thumbprint),
        ] {
            assert_eq!(read(&[change]), Err(error), "{change:?}");
        }
        assert!(matches!(
            read(&[("state", &"x".repeat(MAX_STATE + 1))]),
            Err(OAuthError::TooLong("state", _))
        ));
    }

    #[test]
    fn a_parameter_stands_there_once() {
        let pair = |value: &str| ("state".to_owned(), value.to_owned());
        let twice = Parameters::new(vec![pair("a"), pair("b")]);
        assert_eq!(twice.get("state"), Err(OAuthError::Twice("state")));
        let many = Parameters::new(vec![pair("a"); MAX_PARAMETERS + 1]);
        assert!(many.get("x").is_err());
    }
}
