//! Requests to others: whom they trust, and how long they wait.

use crate::system::config::Config;
use crate::system::home::{Home, HomeError, read_certificates};
use crate::system::tls::SELF_MADE;
use std::time::Duration;

/// Time to connect, TLS included.
pub const CONNECT: Duration = Duration::from_secs(10);
/// Time without a byte of the answer.
pub const SILENCE: Duration = Duration::from_secs(45);

/// A client that trusts the system's authorities, the configured one, and the home's own certificate.
///
/// # Errors
/// [`HomeError`].
pub fn http_client(config: &Config, home: &Home) -> Result<reqwest::Client, HomeError> {
    Ok(http_client_builder(config, home)?.build()?)
}

/// The same, to be narrowed down.
///
/// # Errors
/// [`HomeError`].
pub fn http_client_builder(config: &Config, home: &Home) -> Result<reqwest::ClientBuilder, HomeError> {
    let mut authorities = Vec::new();
    let own = config.tls_cert.clone().unwrap_or_else(|| home.file(SELF_MADE));
    for path in config.trust_ca.iter().chain([&own]) {
        if path.exists() {
            for der in read_certificates(path)? {
                authorities.push(reqwest::Certificate::from_der(&der)?);
            }
        }
    }
    Ok(reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .tls_certs_merge(authorities))
}
