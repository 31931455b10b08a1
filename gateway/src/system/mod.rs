//! Where the program meets the machine: files, sockets, certificates, the clock, configuration.

pub mod address;
pub mod bundle_file;
pub mod clock;
pub mod config;
pub mod files;
pub mod home;
pub mod lock;
pub mod outgoing;
pub mod outlook;
pub mod panics;
pub mod prometheus;
pub mod restore;
pub mod serve;
pub mod socket;
pub(crate) mod tasks;
pub mod tls;
pub mod trails;
