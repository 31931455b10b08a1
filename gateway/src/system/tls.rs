//! TLS 1.3 for the server (OAP-CORE 8.1, 28.1), and certificates for those who have none.

use crate::system::config::Config;
use crate::system::home::{Home, HomeError, write_private};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::version::TLS13;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;

/// The self-made certificate in the home.
pub const SELF_MADE: &str = "tls/cert.pem";

/// Makes aws-lc the TLS backend of the process. Cheap to call again.
pub fn install() {
    // A second call finds the first one's provider in place.
    let _ = aws_lc_rs::default_provider().install_default();
}

/// The server's configuration: the given certificate, or a self-made one kept in the home.
///
/// # Errors
/// [`HomeError::File`], [`HomeError::Malformed`].
pub fn server(config: &Config, home: &Home) -> Result<Arc<ServerConfig>, HomeError> {
    let (certificate, key) = match (&config.tls_cert, &config.tls_key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        _ => self_made(config, home)?,
    };
    let read =
        |path: &PathBuf| std::fs::read(path).map_err(|error| HomeError::File { path: path.clone(), error });
    let wrong = |path: &PathBuf, e: &dyn std::fmt::Display| HomeError::Malformed(path.clone(), e.to_string());
    let chain: Vec<CertificateDer> = CertificateDer::pem_slice_iter(&read(&certificate)?)
        .collect::<Result<_, _>>()
        .map_err(|e| wrong(&certificate, &e))?;
    let private = PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(|e| wrong(&key, &e))?;
    let mut server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| wrong(&certificate, &e))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|e| wrong(&certificate, &e))?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}

fn self_made(config: &Config, home: &Home) -> Result<(PathBuf, PathBuf), HomeError> {
    let (certificate, key) = (home.file(SELF_MADE), home.file("tls/key.pem"));
    if !certificate.exists() || !key.exists() {
        let origin = config.origin();
        let host = origin.split("://").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or("localhost");
        let (made, its_key) =
            for_host(host).map_err(|e| HomeError::Malformed(certificate.clone(), e.to_string()))?;
        write_private(&key, its_key.as_bytes())?;
        write_private(&certificate, made.as_bytes())?;
    }
    Ok((certificate, key))
}

/// A certificate that signs itself, and its key, in PEM.
///
/// Its name has the key's hash: OpenSSL finds what it trusts by the name, so of several gateways' certificates
/// of one name in one file it would take the first for all of them, and refuse the others.
fn for_host(host: &str) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut names = vec![host.to_owned(), "localhost".to_owned()];
    names.dedup();
    let mut params = CertificateParams::new(names)?;
    let digest: [u8; 32] = Sha256::digest(key.public_key_raw()).into();
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("oap-memory {hash}"));
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// A throw-away authority, for demonstrations and tests.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A fresh one.
    ///
    /// # Errors
    /// What `rcgen` reports; none in practice.
    pub fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(rcgen::DnType::CommonName, "throw-away authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Its certificate, in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate and its key for a host, in PEM.
    ///
    /// # Errors
    /// What `rcgen` reports.
    pub fn issue(&self, host: &str) -> Result<(String, String), rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.0)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_certificates_have_one_name() {
        let name = || {
            let (pem, _) = for_host("localhost").expect("a certificate");
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
            let (_, read) = x509_parser::parse_x509_certificate(&der).expect("a certificate");
            assert_eq!(read.subject(), read.issuer());
            read.subject().to_string()
        };
        let (one, other) = (name(), name());
        assert!(one.starts_with("CN=oap-memory "), "{one}");
        assert_ne!(one, other);
    }
}
