//! Everything in a home is its owner's alone, whatever the umask is.

use oap_gateway::service::Deletions;
use oap_gateway::system::home::{Home, Init};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

fn check(path: &Path) {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    assert_eq!(metadata.mode() & 0o077, 0, "{} has mode {:o}", path.display(), metadata.mode());
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            check(&entry.unwrap().path());
        }
    }
}

#[tokio::test]
async fn a_home_is_private_and_a_loose_one_is_tightened() {
    oap_gateway::system::tls::install();
    rustix::process::umask(rustix::fs::Mode::empty());
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().join("home"));
    let key_file = Some(folder.path().join("key"));
    home.init(Init { did: None, settings: BTreeMap::new(), key_file }).await.unwrap();
    check(home.path());
    check(&folder.path().join("key"));
    std::fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    let gateway = home.open(&BTreeMap::new()).await.unwrap();
    oap_gateway::system::tls::server(&oap_gateway::Config::default(), &home).unwrap();
    Deletions(&gateway).sweep().await.unwrap();
    check(home.path());
}
