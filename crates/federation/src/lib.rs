//! What gateways say to each other (protocol section 13): signed letters, and the signed replies to them.
//!
//! There is no authority above two gateways. A letter never gives access by itself: access is a signed grant.
//! Pure functions: no I/O, no clock, no hidden randomness.
//!
//! - [`letter`]: the envelope, from bytes to a [`Letter`](letter::Letter) whose signature was checked
//! - [`changes`]: what a device is told of what changed
//! - [`content`]: what a letter can be of, one variant a type
//! - [`reply`]: the answer, bound to the letter by its hash
//! - [`ack`]: what granter and grantee sign in turn of an answer that was given
//! - [`ask`]: what one principal asks another for, and that what is given stays within it
//! - [`notice`]: what a granter tells of grants that ended and items that are gone
//! - [`pairing`]: how two gateways of one owner become devices of each other
//! - [`pin`]: what is remembered of a peer, read from what it publishes
//! - [`change`]: what changed since, and whether the owner is asked
//! - [`due`]: when a peer is looked at again
//! - [`merge`]: one fair list out of what several found
//! - [`step`]: how devices of one owner stay in step: which of two things is in force
//! - [`verdict`]: what became of asking another gateway
//! - [`push`]: what a grantee subscribes with, and what is pushed to it
//! - [`retry`]: when a letter that did not arrive is sent again
//!
//! ```
//! use oap_federation::retry::{self, FIRST, LONGEST};
//! use oap_identity::random::Seeded;
//!
//! // A letter that did not arrive is sent again soon, and later each time, within a bound.
//! let random = Seeded::new(1);
//! assert!(retry::wait(1, &random) <= FIRST);
//! let late = retry::wait(200, &random);
//! assert!(late >= LONGEST / 2 && late <= LONGEST);
//! ```

#![warn(clippy::unwrap_used)]

pub mod ack;
pub mod ask;
pub mod change;
pub mod changes;
pub mod content;
pub mod due;
pub mod letter;
pub mod limits;
pub mod merge;
pub mod notice;
pub mod pairing;
pub mod pin;
pub mod plain;
pub mod push;
pub mod reply;
pub mod retry;
pub mod step;
pub mod verdict;

pub use ask::{Ask, AskState};
pub use content::{Content, LetterKind};
pub use letter::{Letter, SignedLetter, UnverifiedLetter};
pub use reply::{Outcome, Reply};
