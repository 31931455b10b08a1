//! An OpenAI-compatible `/v1/embeddings` endpoint.

use super::{Embedding, EmbeddingError, EmbeddingModel};
use crate::system::config::{Config, ConfigError};
use oap_exchange::Vector;
use oap_identity::outgoing::{self, Allowance, HttpClient, Method, SendError};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use url::Url;
use zeroize::Zeroizing;

/// Texts in one request.
const BATCH: usize = 64;
/// Characters of a text that are sent; models take no more than some thousands of tokens.
const MAX_CHARS: usize = 8_000;
/// What one request may take.
const ALLOWED: Allowance = Allowance { bytes: 32 << 20, time: Duration::from_secs(20) };

/// A model behind an endpoint.
pub struct RemoteModel {
    client: HttpClient,
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
    /// The model that a configuration names, called through this client.
    ///
    /// # Errors
    /// [`ConfigError::Contradiction`] for an address that is not https, loopback excepted.
    pub fn new(
        config: &Config,
        url: Url,
        key: Option<Zeroizing<String>>,
        client: HttpClient,
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
        let body = Request { model: &self.name, input: texts, encoding_format: "float" };
        let body = serde_json::to_vec(&body).map_err(EmbeddingError::Request)?;
        let key = self.key.as_ref().map(|key| Zeroizing::new(format!("Bearer {}", **key)));
        let key = key.as_ref().map(|key| ("Authorization", key.as_str()));
        let headers = [("Content-Type", "application/json")].into_iter().chain(key).collect();
        let request =
            outgoing::Request { method: Method::POST, url: self.url.as_str(), headers, body: Some(body) };
        let answer = self.client.send(request, ALLOWED).await.map_err(|e| match e {
            SendError::TooLarge(_) => EmbeddingError::Answer("too much"),
            e => EmbeddingError::Endpoint(e),
        })?;
        if answer.status.is_client_error() || answer.status.is_server_error() {
            return Err(EmbeddingError::Status(answer.status));
        }
        let answer: Answer = serde_json::from_slice(&answer.body)
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
