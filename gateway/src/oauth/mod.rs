//! OAuth 2.1 for MCP over HTTP (docs/oauth.md) in values: what a client says of itself, what it asks for, the secrets that it is given, and
//! the pages that a person reads. Nothing here has state, reads a clock or goes over a network.

pub mod asked;
pub mod client;
pub mod document;
pub mod error;
pub mod metadata;
pub mod pages;
pub mod redirect;
pub mod secret;
pub mod token;

pub use asked::Asked;
pub use client::{Client, ClientId};
pub use document::{DocumentError, DocumentUrl};
pub use error::OAuthError;
pub use redirect::RedirectUri;
pub use secret::{ApprovalKey, Challenge, Secret};

use oap_client::Permission;

/// Where the resource is that tokens are for.
pub const RESOURCE: &str = "/mcp";
/// The owner is asked here.
pub const AUTHORIZE: &str = "/oauth/authorize";
/// Codes and refresh tokens become access tokens here.
pub const TOKEN: &str = "/oauth/token";
/// A client gives its tokens back here.
pub const REVOKE: &str = "/oauth/revoke";
/// RFC 9728, of the resource.
pub const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// What a client is told to ask for where it does not know: an assistant reads and learns.
pub const USUAL: Permission = Permission::Write;
/// Longest `scope`, in bytes.
pub const MAX_SCOPE: usize = 256;

/// The scopes that a permission is, each of those before it included.
#[must_use]
pub fn scopes(permission: Permission) -> String {
    let within = Permission::ALL.iter().filter(|known| **known <= permission);
    within.map(|known| known.as_str()).collect::<Vec<_>>().join(" ")
}

/// The permission that a `scope` asks for: the highest that it names. Scopes that are not known here are passed over.
///
/// # Errors
/// [`OAuthError::Scope`] where it is too long, or names none that is known.
pub fn permission(scope: &str) -> Result<Permission, OAuthError> {
    if scope.len() > MAX_SCOPE {
        return Err(OAuthError::Scope);
    }
    let known = scope.split(' ').filter_map(|word| word.parse::<Permission>().ok());
    known.max().ok_or(OAuthError::Scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_permissions() {
        assert_eq!(scopes(Permission::Read), "memory.read");
        assert_eq!(scopes(Permission::Admin), "memory.read memory.write memory.admin");
        for each in Permission::ALL {
            assert_eq!(permission(&scopes(*each)), Ok(*each));
        }
        assert_eq!(permission("offline_access memory.read"), Ok(Permission::Read));
        for none in ["", "openid", "memory.reads", "MEMORY.READ", &"memory.read ".repeat(100)] {
            assert_eq!(permission(none), Err(OAuthError::Scope), "{none}");
        }
    }
}
