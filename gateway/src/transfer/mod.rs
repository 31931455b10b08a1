//! Files of memory on the command line's side: bundles that may be compressed and encrypted, vendors' files, folders
//! and archives.

pub mod bundle_file;
pub mod sources;
