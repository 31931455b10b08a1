//! The clients of a memory gateway: what an owner or a grantee asks it with.
//!
//! A grantee [finds](locate) the gateway of a grant, [exchanges](grantee::Remote::exchange) the grant for a token, and
//! [asks](grantee::Session::query); every answer is checked before it is believed. Its key may live anywhere: see [`Prover`]. The
//! [owner](owner::OwnerClient) calls the endpoints of the own gateway, each of them a type: see [`Endpoint`]. Time and randomness come
//! in as arguments; every request goes through [`oap_identity::outgoing`].
//!
//! ```
//! use oap_client::prover::Claim;
//! use oap_client::{KeyProver, Prover, keyfile};
//! use oap_grants::dpop;
//! use oap_identity::random::Seeded;
//! use oap_identity::{Clock, Timestamp};
//! use std::sync::Arc;
//!
//! /// A clock that stands still; a program takes the system's.
//! struct Noon;
//! impl Clock for Noon {
//!     fn now(&self) -> Timestamp {
//!         Timestamp::from_seconds(1_777_636_800)
//!     }
//! }
//!
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("my.key");
//! # runtime.block_on(async {
//! // A grantee with a key in a file, which is a DID of its own.
//! let random = Arc::new(Seeded::new(1));
//! let key = keyfile::create(&path, None, &*random)?;
//! let me = KeyProver::new(key, Arc::new(Noon), random);
//! assert_eq!(me.did().method(), "key");
//!
//! // With each request goes a proof that the key is at hand: for this method, this address and this token alone.
//! let url = "https://user.example/oap/memory/query";
//! let proof = me.prove(Claim::Possession { method: "POST", url, token: "a token" }).await?;
//! let at = |url| dpop::check(&[&proof], dpop::Request { method: "POST", url }, "a token", Noon.now());
//! assert!(at(url).is_ok());
//! assert!(at("https://elsewhere.example/oap/memory/query").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From here on a grantee needs a gateway that is reached over the network:
//!
//! ```no_run
//! use oap_client::{Prover, Remote, locate};
//! use oap_identity::Clock;
//! use oap_identity::outgoing::{Outgoing, WebPolicy};
//! use oap_identity::resolve::{GuardedWeb, Resolver};
//! use serde_json::{Value, json};
//! use std::sync::Arc;
//!
//! # async fn ask(me: &dyn Prover, grant: &Value, clock: Arc<dyn Clock>) -> Result<(), Box<dyn std::error::Error>> {
//! let policy = WebPolicy::Public;
//! let resolver = Arc::new(Resolver::new(GuardedWeb::new(policy, &[])?, clock.clone()));
//! // Where the granter says that the grant is used; nothing unsigned leads anywhere.
//! let origin = locate::origin(grant, &[], &resolver, policy, clock.now()).await?;
//! let client = Outgoing::default().guarded(policy)?;
//! let granter = locate::granter(grant)?;
//! let remote = Remote::discover(client, resolver, clock, origin.as_str(), &granter).await?;
//! let session = remote.exchange(me, grant, &[]).await?;
//! let checked = session.query(me, &json!({"query": "preferred meeting times"})).await?;
//! println!("{} items, each proved", checked.verified.items.len());
//! # Ok(())
//! # }
//! ```

#![warn(clippy::unwrap_used)]

pub mod endpoint;
pub mod error;
pub mod grantee;
pub mod keyfile;
pub mod limits;
pub mod locate;
pub mod owner;
pub mod permission;
pub mod place;
pub mod prover;
pub mod wire;

pub use endpoint::Endpoint;
pub use error::ClientError;
pub use grantee::Remote;
pub use owner::OwnerClient;
pub use permission::Permission;
pub use place::Place;
pub use prover::{KeyProver, Prover};
