//! The log of what a gateway did, as witnesses sign it (protocol section 16): a Merkle tree of RFC 6962 with one leaf a tick.
//!
//! A leaf stands for the receipts that came since the tick before, and hides them: how many there are, and whose. Time alone says how
//! many leaves there are. Whoever holds a receipt can be shown that it is below one of them.
//!
//! - [`merkle`]: the tree of RFC 6962, its proofs and their checks
//! - [`tick`]: the tree below one leaf
//! - [`note`]: the format of signed notes
//! - [`checkpoint`]: what a log says of itself, and what a witness signs
//! - [`submission`]: what a witness is sent
//! - [`inclusion`]: that a receipt is in a log that so many witnesses signed

pub mod checkpoint;
pub mod inclusion;
pub mod merkle;
pub mod note;
pub mod submission;
pub mod tick;
