//! The home that a gateway was opened in, as far as the gateway itself has to do with it.

use crate::state::gateway::Gateway;
use oap_exchange::gate::Sanctions;
use std::fmt::Debug;
use std::io;
use std::path::Path;

/// The folder that a gateway was opened in. A gateway in memory has none.
pub trait OwnHome: Debug + Send + Sync {
    /// Where it is: a backup takes the configuration and what else is readable along from here.
    fn folder(&self) -> &Path;

    /// The sanctions lists as they are in it now.
    ///
    /// # Errors
    /// What the system says of a file.
    fn sanctions(&self) -> io::Result<Sanctions>;

    /// A change of the keys or a lockdown ended the administrator's credential: its successor goes into the home. Called once that is
    /// durable and before anybody is told, whoever asked for it. It cannot fail: the next start makes up for what was not written.
    fn credential_ended(&self, gateway: &Gateway);
}
