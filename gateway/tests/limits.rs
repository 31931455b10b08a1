//! Bounds on foreign things in bytes, count and time: the page that lists them, and each at its bound and beyond.

mod common;
mod program;

#[path = "limits/bodies.rs"]
mod bodies;
#[path = "limits/bounds.rs"]
mod bounds;
#[path = "limits/clients.rs"]
mod clients;
#[path = "limits/delegated.rs"]
mod delegated;
#[path = "limits/files.rs"]
mod files;
#[path = "limits/front.rs"]
mod front;
#[path = "limits/page.rs"]
mod page;
#[path = "limits/refusals.rs"]
mod refusals;
#[path = "limits/versions.rs"]
mod versions;
