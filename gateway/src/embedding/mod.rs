//! Embeddings of projected text (protocol section 6): never of anything that a grantee may not read.
//!
//! Vectors are cached by the hash of grant, model and text. The grant is part of it so that how long an answer
//! takes does not tell one grantee what another one's view holds. The cache is in memory alone, and a deletion
//! empties it.

#[cfg(feature = "local-model")]
mod local;
mod remote;

#[cfg(feature = "local-model")]
pub use local::LocalModel;
pub use remote::RemoteModel;

use crate::system::tasks::Panicked;
use axum::http::StatusCode;
use lru::LruCache;
use oap_exchange::Vector;
use oap_identity::Hash;
use oap_identity::outgoing::SendError;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Memory for cached vectors, in bytes.
const CACHE_BYTES: usize = 64 << 20;

/// Why there are no vectors. The text never carries what was embedded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum EmbeddingError {
    /// The endpoint is not reached, or its answer is not read.
    #[error("the embedding endpoint: {0}")]
    Endpoint(SendError),
    /// What was to be sent could not be written.
    #[error("the embedding endpoint: {0}")]
    Request(serde_json::Error),
    /// It refused, or failed.
    #[error("the embedding endpoint: it answered {0}")]
    Status(StatusCode),
    /// What it answered.
    #[error("the embedding endpoint answered with {0}")]
    Answer(&'static str),
    /// The model in the directory.
    #[error("the embedding model: {0}")]
    Model(#[from] ModelError),
    /// The model's work panicked.
    #[error("the embedding model: its work failed inside the program")]
    Panicked,
}

impl From<Panicked> for EmbeddingError {
    fn from(_: Panicked) -> Self {
        Self::Panicked
    }
}

/// Why a model in this process gives no vectors.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file of its directory cannot be read.
    #[error("{0}: {1}")]
    File(&'static str, io::Error),
    /// Its configuration is none.
    #[error("config.json: {0}")]
    Config(serde_json::Error),
    /// What the library that runs it says.
    #[error("{0}")]
    Library(Box<dyn Error + Send + Sync>),
    /// A vector of something else than finite numbers.
    #[error("it gave a vector that is none")]
    NoVector,
}

/// Vectors that are on their way.
pub type Embedding<'a> = Pin<Box<dyn Future<Output = Result<Vec<Vector>, EmbeddingError>> + Send + 'a>>;

/// A model that turns texts into vectors.
pub trait EmbeddingModel: Send + Sync {
    /// Its name, as the manifest declares it.
    fn name(&self) -> &str;
    /// The dimensions of its vectors.
    fn dimensions(&self) -> usize;
    /// One vector for each text, in their order.
    fn embed(&self, texts: Vec<String>) -> Embedding<'_>;
}

/// A model and what it made.
pub struct Embeddings {
    model: Box<dyn EmbeddingModel>,
    cache: Mutex<LruCache<Hash, Vector>>,
    /// How often the cache was emptied: what was asked of the model before is not kept after.
    emptied: AtomicU64,
    room: usize,
}

impl Embeddings {
    /// With an empty cache.
    #[must_use]
    pub fn new(model: Box<dyn EmbeddingModel>) -> Self {
        let room = CACHE_BYTES / (4 * model.dimensions().max(1));
        Self { model, cache: Mutex::new(LruCache::unbounded()), emptied: AtomicU64::new(0), room }
    }

    /// The model that vectors are asked of.
    #[must_use]
    pub fn model(&self) -> &dyn EmbeddingModel {
        &*self.model
    }

    /// The vectors of texts that the grantee of a grant sees or sent.
    ///
    /// # Errors
    /// [`EmbeddingError`].
    pub async fn of(&self, grant: Hash, texts: Vec<String>) -> Result<Vec<Vector>, EmbeddingError> {
        let keys: Vec<Hash> = texts.iter().map(|text| self.key(grant, text)).collect();
        let emptied = self.emptied.load(Ordering::Acquire);
        let mut found: Vec<Option<Vector>> = {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            keys.iter().map(|key| cache.get(key).cloned()).collect()
        };
        let missing: Vec<usize> = (0..texts.len()).filter(|i| found[*i].is_none()).collect();
        if !missing.is_empty() {
            let made = self.model.embed(missing.iter().map(|i| texts[*i].clone()).collect()).await?;
            if made.len() != missing.len() {
                return Err(EmbeddingError::Answer("another number of vectors"));
            }
            if made.iter().any(|vector| vector.dimensions() != self.model.dimensions()) {
                return Err(EmbeddingError::Answer("vectors of other dimensions"));
            }
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            // Under the lock that emptying takes.
            let is_kept = emptied == self.emptied.load(Ordering::Acquire);
            for (place, vector) in missing.into_iter().zip(made) {
                if is_kept {
                    cache.put(keys[place], vector.clone());
                }
                found[place] = Some(vector);
            }
            while cache.len() > self.room {
                cache.pop_lru();
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Forgets every vector.
    pub fn clear(&self) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        self.emptied.fetch_add(1, Ordering::AcqRel);
        cache.clear();
    }

    fn key(&self, grant: Hash, text: &str) -> Hash {
        let parts = [grant.as_bytes().as_slice(), self.model.name().as_bytes(), &[0], text.as_bytes()];
        Hash::of(&parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tokio::sync::Semaphore;

    struct Slow {
        asked: AtomicUsize,
        may: Semaphore,
    }

    impl EmbeddingModel for &'static Slow {
        fn name(&self) -> &str {
            "slow"
        }
        fn dimensions(&self) -> usize {
            1
        }
        fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
            Box::pin(async move {
                self.asked.fetch_add(1, Ordering::SeqCst);
                if let Ok(permit) = self.may.acquire().await {
                    permit.forget();
                }
                Ok(texts.iter().filter_map(|_| Vector::new(vec![1.0])).collect())
            })
        }
    }

    /// What the model is asked before a deletion and answers after it is not kept.
    #[tokio::test]
    async fn a_vector_that_was_on_its_way_does_not_outlive_the_deletion() {
        let model: &'static Slow =
            Box::leak(Box::new(Slow { asked: AtomicUsize::new(0), may: Semaphore::new(0) }));
        let embeddings = Embeddings::new(Box::new(model));
        let grant = Hash::of(b"grant");
        let ask = || embeddings.of(grant, vec!["erased".to_owned()]);
        let deletion = async {
            embeddings.clear();
            model.may.add_permits(2);
        };
        let (vectors, ()) = tokio::join!(ask(), deletion);
        assert_eq!(vectors.unwrap().len(), 1);
        ask().await.unwrap();
        assert_eq!(model.asked.load(Ordering::SeqCst), 2, "asked anew");
        ask().await.unwrap();
        assert_eq!(model.asked.load(Ordering::SeqCst), 2, "and kept from then on");
    }
}
