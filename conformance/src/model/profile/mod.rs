//! Profiles: the tables of the protocol, and the owner's own documents.

pub mod table;
