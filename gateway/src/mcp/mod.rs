//! The Model Context Protocol: the memory tools for assistants. What they do is the gateway's services' ([`crate::service`]); here
//! they get their names, schemas and text blocks.

mod granted;
mod prompts;
mod resources;
mod server;

pub use granted::{Granted, ViewCaller};
pub use server::{CallError, Caller, MAX_CALLS, MAX_GRANTED, MAX_MESSAGE, Server, Turns, stdio};
