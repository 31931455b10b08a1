//! Bounds on foreign things in bytes, count and time: the page that lists them, and each at its bound and beyond.

mod bodies;
mod bounds;
mod clients;
mod delegated;
mod files;
mod front;
mod page;
mod refusals;
mod versions;
