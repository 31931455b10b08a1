//! What ends soon: grants, the server's certificate, the disk. For `doctor`, which warns, and for metrics.

use crate::service::doctor::Finding;
use crate::state::gateway::Gateway;
use crate::system::config::Config;
use crate::system::home::Home;
use crate::system::tls;
use oap_grants::GrantState;
use oap_identity::{Clock, GrantId, Timestamp};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How long before its end a grant is warned of.
pub const GRANT_SOON: Duration = Duration::from_secs(14 * 86_400);
/// How long before its end a certificate is warned of.
pub const CERTIFICATE_SOON: Duration = Duration::from_secs(30 * 86_400);
/// Free space under which is warned, in bytes.
pub const DISK_LOW: u64 = 1 << 30;
/// Files of a store that are counted, at most.
const MAX_FILES: usize = 100_000;

/// The states of grants, as `oap_grants` counts them.
const STATES: [GrantState; 4] =
    [GrantState::Draft, GrantState::Active, GrantState::Expired, GrantState::Revoked];

/// How the grants of a gateway stand.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// How many there are in each state, every state named.
    pub states: BTreeMap<&'static str, usize>,
    /// The ends of the active ones, earliest first.
    pub ends: Vec<(Timestamp, GrantId)>,
}

impl Gateway {
    /// How the grants stand.
    #[must_use]
    pub fn grants_outlook(&self) -> Grants {
        let mut grants = Grants::default();
        grants.states.extend(STATES.map(|state| (state.as_str(), 0)));
        for shelved in self.grant_book.all() {
            let state = self.state(&shelved.record);
            *grants.states.entry(state.as_str()).or_default() += 1;
            if state == GrantState::Active {
                let grant = shelved.record.grant.grant();
                grants.ends.push((grant.expires_at, grant.grant_id));
            }
        }
        grants.ends.sort_unstable();
        grants
    }

    /// A warning of each grant that ends soon.
    pub(crate) fn grants_finding(&self) -> Finding {
        let grants = self.grants_outlook();
        let until = self.clock.now().plus(GRANT_SOON);
        let soon = grants.ends.iter().filter(|(end, _)| *end <= until);
        Finding {
            part: "active grants".into(),
            looked_at: grants.ends.len(),
            wrong: Vec::new(),
            soon: soon.map(|(end, id)| format!("{id} ends {end}")).collect(),
            fix: "issue a new grant to whom still needs one".into(),
            note: None,
        }
    }
}

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
    let chain = crate::system::home::read_certificates(&path).ok()?;
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
