//! A principal's memory gateway after OAP RFC 0010: services, HTTP and command line.
//!
//! The way of one query is in [`service::query`]; the rules of the protocol are in the rooms below
//! (`oap-identity`, `oap-memory`, `oap-agents`, `oap-formats`, `oap-grants`, `oap-exchange`, `oap-manifest`, `oap-store`, `oap-client`). What goes over the wire is in `docs/protocol.md`.
//!
//! ```
//! use axum::body::Body;
//! use axum::http::Request;
//! use oap_gateway::http::App;
//! use oap_gateway::state::keyring::StoredKeys;
//! use oap_gateway::system::clock::{SystemClock, SystemRandom};
//! use oap_gateway::{Config, Gateway, Parts};
//! use oap_identity::resolve::{GuardedWeb, Resolver, WebPolicy};
//! use oap_identity::{Clock, Did, Random};
//! use oap_memory::Profile;
//! use oap_store::Store;
//! use std::sync::Arc;
//! use tower::ServiceExt;
//!
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! # oap_gateway::system::tls::install();
//! // A gateway in memory: clock, randomness, store and resolver are passed in.
//! let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) = (Arc::new(SystemClock), Arc::new(SystemRandom));
//! let store = Store::in_memory(random.clone())?;
//! Gateway::init(&store, &StoredKeys::generate(&*random, clock.now())).await?;
//! let principal: Did = "did:web:user.example".parse()?;
//! let config = Config { did: Some(principal.clone()), ..Config::default() };
//! let resolver = Arc::new(Resolver::new(GuardedWeb::new(WebPolicy::Public, &[])?, clock.clone()));
//! let gateway = Gateway::open(Parts {
//!     principal, config, store, clock, random, resolver,
//!     profiles: Profile::built_in(), sanctions: Default::default(), embeddings: None, erasures: None,
//!     home: None,
//! });
//! let router = App::new(gateway.await?).router();
//!
//! // Anybody may read what it publishes; to ask anything takes a token.
//! let manifest = Request::get("/.well-known/oap-memory.json").body(Body::empty())?;
//! assert_eq!(router.clone().oneshot(manifest).await?.status(), 200);
//! let query = Request::post("/oap/memory/query").body(Body::empty())?;
//! assert_eq!(router.oneshot(query).await?.status(), 401);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

#![warn(clippy::unwrap_used)]

pub mod api;
pub mod cli;
pub mod client;
pub mod embedding;
pub mod error;
#[cfg(doctest)]
mod forgeries;
pub mod http;
pub mod limits;
pub mod mcp;
pub mod oauth;
pub mod service;
pub mod state;
pub mod system;

pub use error::Error;
pub use state::gateway::{Gateway, Parts};
pub use system::config::Config;
