//! Requests to others: whom a home trusts.

use crate::system::config::Config;
use crate::system::home::{Home, HomeError, read_certificates};
use crate::system::tls::SELF_MADE;
use oap_identity::outgoing::Outgoing;

/// Requests that trust the system's authorities, the configured one, and the home's own certificate.
///
/// # Errors
/// [`HomeError`].
pub fn of_home(config: &Config, home: &Home) -> Result<Outgoing, HomeError> {
    let own = config.tls_cert.clone().unwrap_or_else(|| home.file(SELF_MADE));
    let mut outgoing = Outgoing::default();
    for path in config.trust_ca.iter().chain([&own]) {
        if path.exists() {
            let authorities = read_certificates(path)?;
            outgoing = outgoing.trusting(authorities.iter().map(Vec::as_slice))?;
        }
    }
    Ok(outgoing)
}
