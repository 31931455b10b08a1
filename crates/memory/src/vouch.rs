//! Signatures of a key that was compromised later, and the `reseal` link that vouches for them (`docs/bytes.md`,
//! section 4).
//!
//! A link that is signed, by its own date, when its key was compromised already, says nothing by itself: the owner signed
//! it, or the thief. A later `reseal` link of the same actor that is signed with a key in force answers that. Its `prev`
//! commits to the whole chain before it, and its commitment to the content, so that it vouches for exactly this history.

use crate::chain::{Event, Link};
use oap_identity::signed::SignedError;
use oap_identity::{Kid, Timestamp, VerificationKey};

/// What nobody vouched for yet in a chain that is read link by link, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Vouching {
    open: Vec<(u32, Timestamp)>,
    vouched: Vec<(u32, u32)>,
    dated: Vec<(Kid, Timestamp)>,
}

impl Vouching {
    /// Reads the next link, whose signature verifies with that key.
    ///
    /// # Errors
    /// [`SignedError::Retired`] where the key was retired by then: nothing vouches for that.
    pub fn read(&mut self, link: &Link, key: &VerificationKey) -> Result<(), SignedError> {
        match key.usable_at(link.at) {
            Err(SignedError::Revoked(since)) => {
                if let Some(at) = key.retired_at().filter(|at| *at <= link.at) {
                    return Err(SignedError::Retired(at));
                }
                self.open.push((link.seq, since));
            }
            state => {
                state?;
                if let Some(since) = key.revoked_at() {
                    let dated = (key.kid().clone(), since);
                    if !self.dated.contains(&dated) {
                        self.dated.push(dated);
                    }
                }
            }
        }
        // A date is the signer's own word: what vouches is signed with a key that was never compromised.
        if link.event == Event::Reseal && key.revoked_at().is_none() {
            self.vouched.extend(self.open.drain(..).map(|(seq, _)| (seq, link.seq)));
            self.dated.retain(|(kid, _)| *kid.did() != link.actor);
        }
        Ok(())
    }

    /// The first link that nobody vouched for, and since when its key is compromised.
    #[must_use]
    pub fn missing(&self) -> Option<(u32, Timestamp)> {
        self.open.first().copied()
    }

    /// The compromised keys, each with the time since when it is, that signed links which count only because they are dated
    /// before that, and which nobody vouched for.
    #[must_use]
    pub fn dated(&self) -> &[(Kid, Timestamp)] {
        &self.dated
    }

    /// The numbers of the links that were vouched for, each with that of the `reseal` link that did.
    #[must_use]
    pub fn vouched(&self) -> &[(u32, u32)] {
        &self.vouched
    }
}
