//! What ends soon beside the store: the server's certificate, the disk. For `doctor`, which warns, and for metrics.

use crate::service::doctor::Finding;
use crate::system::config::Config;
use crate::system::home::{Home, read_certificates};
use crate::system::tls;
use oap_identity::{Clock, Timestamp};
use std::path::Path;
use std::time::Duration;

/// How long before its end a certificate is warned of.
pub const CERTIFICATE_SOON: Duration = Duration::from_secs(30 * 86_400);
/// Free space under which is warned, in bytes.
pub const DISK_LOW: u64 = 1 << 30;
/// Files of a store that are counted, at most.
const MAX_FILES: usize = 100_000;

/// Warnings of what is beside the store: the certificate and the disk.
#[must_use]
pub fn of_home(config: &Config, home: &Home, clock: &dyn Clock) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(end) = certificate_end(config, home) {
        let near = end <= clock.now().plus(CERTIFICATE_SOON);
        findings.push(Finding {
            part: "certificate".into(),
            looked_at: 1,
            wrong: Vec::new(),
            soon: if near { vec![format!("it ends {end}")] } else { Vec::new() },
            fix:
                "renew it and restart the gateway; a self-made one is made anew once tls/ in the home is gone"
                    .into(),
            note: None,
        });
    }
    if let Some(free) = disk_free(home.path()) {
        let low = free < DISK_LOW;
        findings.push(Finding {
            part: "disk".into(),
            looked_at: 1,
            wrong: Vec::new(),
            soon: if low { vec![format!("{} MiB are free", free >> 20)] } else { Vec::new() },
            fix: "make room on the file system of the home, or move the home to a larger one".into(),
            note: None,
        });
    }
    findings
}

/// When the certificate that the server presents ends; `None` where there is none that can be read.
#[must_use]
pub fn certificate_end(config: &Config, home: &Home) -> Option<Timestamp> {
    if config.plain_http {
        return None;
    }
    let path = config.tls_cert.clone().unwrap_or_else(|| home.file(tls::SELF_MADE));
    let chain = read_certificates(&path).ok()?;
    let ends = chain.iter().filter_map(|der| {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        let seconds = certificate.validity().not_after.timestamp();
        Some(Timestamp::from_millis(seconds.saturating_mul(1000)))
    });
    // A chain ends with the first of its certificates.
    ends.min()
}

/// Free bytes of the file system of a folder, for those without special rights.
#[must_use]
pub fn disk_free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Bytes of the store and the vault of a home.
#[must_use]
pub fn store_bytes(home: &Home) -> u64 {
    let mut folders = vec![home.file("store")];
    let mut bytes = std::fs::metadata(home.file("vault")).map_or(0, |file| file.len());
    let mut left = MAX_FILES;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            left = left.saturating_sub(1);
            match entry.metadata() {
                Ok(_) if left == 0 => return bytes,
                Ok(found) if found.is_dir() => folders.push(entry.path()),
                Ok(found) => bytes = bytes.saturating_add(found.len()),
                // Gone meanwhile: the store tidies up.
                Err(_) => {}
            }
        }
    }
    bytes
}
