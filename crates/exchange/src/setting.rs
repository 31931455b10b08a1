//! What views rest on beside their grants, and why one cannot be built.

use crate::gate::Obligations;
use crate::vector::Vector;
use oap_grants::limits::LimitError;
use oap_identity::json::JsonError;
use oap_identity::{ItemId, Timestamp};
use oap_memory::commitment::CommitmentError;
use oap_memory::text::Language;
use oap_memory::{Confidence, Profile};
use std::time::Duration;

/// What a view rests on beside its grant: what is the gateway's own.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// The profiles that are set up: the one that the grant names is applied.
    pub profiles: &'a [Profile],
    /// What the owner owes, and the bridges that hold.
    pub obligations: Obligations,
    /// Whether the owner consented to this very grant.
    pub consented: bool,
    /// Whether embeddings are asked for. They are shown where grant and profile give them, too.
    pub embeddings: bool,
    /// The model of embeddings, where one is set up.
    pub model: Option<&'a Model<'a>>,
    /// The gateway's belief threshold.
    pub belief_threshold: Confidence,
    /// How words are matched.
    pub language: Language,
    /// The gateway's clock.
    pub now: Timestamp,
}

/// A model of embeddings, as far as a view needs it.
#[allow(missing_docs, reason = "the names say it")]
pub struct Model<'a> {
    pub name: &'a str,
    /// How many dimensions its vectors have.
    pub dimensions: usize,
    /// Where the vector of an item is served, up to its id.
    pub url: &'a str,
    /// The vectors of texts, all visible ones, in their order; `None` while the model is out of reach.
    pub embed: Embed<'a>,
}

/// A call to a model of embeddings, see [`Model::embed`].
pub type Embed<'a> = &'a dyn Fn(Vec<String>) -> Option<Vec<Vector>>;

impl std::fmt::Debug for Model<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Model").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long a view goes without vectors before the model is asked again.
pub(crate) const RETRY: Duration = Duration::from_secs(60);

/// Why a view could not be built, or an item of it not be written out.
#[derive(Debug, thiserror::Error)]
pub enum ViewError<E> {
    /// The profile that the grant names is not there, or needs a higher level.
    #[error(transparent)]
    Profile(#[from] LimitError),
    /// The store failed.
    #[error(transparent)]
    Store(E),
    /// A stored version is not what was committed.
    #[error("item {0}: {1}")]
    Commitment(ItemId, CommitmentError),
    /// A stored document has no canonical form.
    #[error(transparent)]
    Json(#[from] JsonError),
}
