//! An OpenAI-compatible `/v1/embeddings` endpoint.

use super::{Embedding, EmbeddingError, EmbeddingModel};
use crate::system::config::{Config, ConfigError};
use oap_exchange::Vector;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use url::Url;
use zeroize::Zeroizing;

/// Texts in one request.
const BATCH: usize = 64;
/// Longest time for one request.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Characters of a text that are sent; models take no more than some thousands of tokens.
const MAX_CHARS: usize = 8_000;
/// Largest answer, in bytes.
const MAX_ANSWER: usize = 32 << 20;

/// A model behind an endpoint.
pub struct RemoteModel {
    client: reqwest::Client,
    url: Url,
    key: Option<Zeroizing<String>>,
    name: String,
    dimensions: usize,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    index: usize,
    embedding: Vec<f32>,
}

impl RemoteModel {
    /// The model that a configuration names, called through a client that follows no redirects.
    ///
    /// # Errors
    /// [`ConfigError::Contradiction`] for an address that is not https, loopback excepted.
    pub fn new(
        config: &Config,
        url: Url,
        key: Option<Zeroizing<String>>,
        client: reqwest::Client,
    ) -> Result<Self, ConfigError> {
        let loopback = match url.host() {
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && loopback) {
            return Err(ConfigError::Contradiction("embedding_url must be https, or http on loopback"));
        }
        let (Some(name), Some(dimensions)) = (config.embedding_model.clone(), config.embedding_dimensions)
        else {
            return Err(ConfigError::Contradiction(
                "embedding_url needs embedding_model and embedding_dimensions",
            ));
        };
        Ok(Self { client, url, key, name, dimensions: dimensions as usize })
    }

    async fn batch(&self, texts: &[String]) -> Result<Vec<Vector>, EmbeddingError> {
        let failed = |e: reqwest::Error| EmbeddingError::Endpoint(e.without_url().to_string());
        let body = Request { model: &self.name, input: texts, encoding_format: "float" };
        let mut request = self.client.post(self.url.clone()).timeout(TIMEOUT).json(&body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(&**key);
        }
        let mut response =
            request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > MAX_ANSWER {
                return Err(EmbeddingError::Answer("too much"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Answer = serde_json::from_slice(&bytes)
            .map_err(|_| EmbeddingError::Answer("something else than vectors"))?;
        let mut vectors = vec![None; texts.len()];
        for entry in answer.data {
            let place = vectors.get_mut(entry.index).filter(|place| place.is_none());
            let place = place.ok_or(EmbeddingError::Answer("another number of vectors"))?;
            *place =
                Some(Vector::new(entry.embedding).ok_or(EmbeddingError::Answer("a vector that is none"))?);
        }
        vectors.into_iter().collect::<Option<_>>().ok_or(EmbeddingError::Answer("another number of vectors"))
    }
}

impl EmbeddingModel for RemoteModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
        Box::pin(async move {
            let texts: Vec<String> =
                texts.iter().map(|text| text.chars().take(MAX_CHARS).collect()).collect();
            let mut vectors = Vec::with_capacity(texts.len());
            for batch in texts.chunks(BATCH) {
                vectors.extend(self.batch(batch).await?);
            }
            Ok(vectors)
        })
    }
}
