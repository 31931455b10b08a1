//! The owner's way to a running gateway: a Unix socket in the home, `owner.sock`, for its owner alone (0600).
//!
//! It leads to the same handlers as the public address and asks for the same credential, but needs no name, no certificate and
//! no proxy. One process at a time has a home open ([`crate::system::lock`]), so whatever socket it finds there is a leftover.

use crate::http::App;
use axum::Router;
use oap_identity::outgoing::{HttpClient, OutgoingError};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The socket in the home.
pub const NAME: &str = "owner.sock";
/// The socket while it is made.
const FRESH: &str = "owner.sock.new";
/// Longest path of a socket, in bytes, without its final zero (Linux: `sun_path` of unix(7) has 108).
pub const MAX_PATH: usize = 107;
/// How long open requests may take once the gateway is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// A path to a file of a folder that is short enough for a socket: the file's own, or the one by way of the open folder.
struct Place {
    path: PathBuf,
    _folder: Option<File>,
}

impl Place {
    fn of(home: &Path, name: &str) -> io::Result<Self> {
        let path = home.join(name);
        if path.as_os_str().as_bytes().len() <= MAX_PATH {
            return Ok(Self { path, _folder: None });
        }
        let folder = File::open(home)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()));
        Ok(Self { path, _folder: Some(folder) })
    }
}

/// An open socket with somebody behind it.
pub struct OwnerSocket {
    path: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl OwnerSocket {
    /// Opens the socket of a home and answers the owner there.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn open(home: &Path, app: App) -> io::Result<Self> {
        Self::open_with(home, app.owner_router())
    }

    /// The same, with these routes.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub fn open_with(home: &Path, router: Router) -> io::Result<Self> {
        let (path, fresh) = (home.join(NAME), home.join(FRESH));
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(Place::of(home, FRESH)?.path)?;
        // Nobody sees it before it is the owner's alone; a leftover of a killed process gives way.
        std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
        std::fs::rename(&fresh, &path)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stopped).await {
                tracing::error!(%error, "the owner's socket failed");
            }
        });
        Ok(Self { path, stop: Some(stop), task })
    }

    /// Takes no more requests, and lets open ones finish for a while.
    pub async fn close(mut self) {
        drop(self.stop.take());
        let _ = tokio::time::timeout(GRACE, &mut self.task).await;
    }
}

impl Drop for OwnerSocket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A client of the gateway that has a home open.
pub struct SocketClient {
    http: HttpClient,
    _place: Place,
}

impl SocketClient {
    /// Connects; `None` when nobody answers at the socket of that home.
    ///
    /// # Errors
    /// When no client can be built.
    pub async fn connect(home: &Path) -> Result<Option<Self>, OutgoingError> {
        let Ok(place) = Place::of(home, NAME) else { return Ok(None) };
        if UnixStream::connect(&place.path).await.is_err() {
            return Ok(None);
        }
        let http = HttpClient::of_socket(&place.path)?;
        Ok(Some(Self { http, _place: place }))
    }

    /// The HTTP client; the host of an address does not matter to it.
    #[must_use]
    pub const fn http(&self) -> &HttpClient {
        &self.http
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use oap_identity::outgoing::{Allowance, Request};

    async fn ask(home: &Path) -> String {
        let client = SocketClient::connect(home).await.unwrap().unwrap();
        let allowed = Allowance { bytes: 100, time: Duration::from_secs(60) };
        let answer = client.http().send(Request::get("http://localhost/who"), allowed).await.unwrap();
        String::from_utf8(answer.body).unwrap()
    }

    fn router(name: &'static str) -> Router {
        Router::new().route("/who", get(move || async move { name }))
    }

    #[tokio::test]
    async fn it_is_the_owners_alone_and_leftovers_give_way() {
        crate::system::tls::install();
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        assert!(SocketClient::connect(home).await.unwrap().is_none());
        drop(std::os::unix::net::UnixListener::bind(home.join(NAME)).unwrap());
        assert!(SocketClient::connect(home).await.unwrap().is_none());
        let socket = OwnerSocket::open_with(home, router("first")).unwrap();
        let mode = std::fs::metadata(home.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(ask(home).await, "first");
        socket.close().await;
        assert!(!home.join(NAME).exists() && !home.join(FRESH).exists());
        assert!(SocketClient::connect(home).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_home_may_lie_deep() {
        crate::system::tls::install();
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("a".repeat(100)).join("b".repeat(100));
        std::fs::create_dir_all(&home).unwrap();
        let socket = OwnerSocket::open_with(&home, router("deep")).unwrap();
        assert_eq!(ask(&home).await, "deep");
        drop(socket);
        assert!(!home.join(NAME).exists());
    }
}
