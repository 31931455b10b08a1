//! A small sentence-transformer in this process: a BERT in the directory layout of sentence-transformers
//! (`config.json`, `tokenizer.json`, `model.safetensors`), mean pooling, run by candle on the processor.

use super::{Embedding, EmbeddingError, EmbeddingModel, ModelError};
use crate::system::tasks::blocking;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use oap_exchange::Vector;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

/// Texts at once.
const BATCH: usize = 16;
/// Tokens of a text that count; sentence-transformers' own limit for MiniLM.
const MAX_TOKENS: usize = 256;

/// A loaded model.
#[derive(Clone)]
pub struct LocalModel(Arc<Loaded>);

struct Loaded {
    name: String,
    dimensions: usize,
    tokenizer: Tokenizer,
    bert: BertModel,
}

impl LocalModel {
    /// Loads a model.
    ///
    /// # Errors
    /// [`EmbeddingError::Model`], naming the file.
    pub fn load(folder: &Path, name: &str) -> Result<Self, EmbeddingError> {
        let read =
            |file: &'static str| std::fs::read(folder.join(file)).map_err(|e| ModelError::File(file, e));
        let config: Config = serde_json::from_slice(&read("config.json")?).map_err(ModelError::Config)?;
        let mut tokenizer = Tokenizer::from_bytes(read("tokenizer.json")?).map_err(other)?;
        tokenizer.with_padding(Some(PaddingParams::default()));
        let truncation = TruncationParams { max_length: MAX_TOKENS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(other)?;
        let weights = read("model.safetensors")?;
        let weights = VarBuilder::from_buffered_safetensors(weights, DTYPE, &Device::Cpu).map_err(other)?;
        let bert = BertModel::load(weights, &config).map_err(other)?;
        Ok(Self(Arc::new(Loaded { name: name.to_owned(), dimensions: config.hidden_size, tokenizer, bert })))
    }
}

impl Loaded {
    fn batch(&self, texts: &[String]) -> Result<Vec<Vector>, EmbeddingError> {
        let encodings = self.tokenizer.encode_batch(texts.to_vec(), true).map_err(other)?;
        let rows = |of: fn(&tokenizers::Encoding) -> &[u32]| -> Result<Tensor, EmbeddingError> {
            let rows: Vec<Tensor> = encodings
                .iter()
                .map(|encoding| Tensor::new(of(encoding), &Device::Cpu))
                .collect::<Result<_, _>>()
                .map_err(other)?;
            Tensor::stack(&rows, 0).map_err(other)
        };
        let ids = rows(tokenizers::Encoding::get_ids)?;
        let mask = rows(tokenizers::Encoding::get_attention_mask)?;
        let pooled = || {
            let types = ids.zeros_like()?;
            let states = self.bert.forward(&ids, &types, Some(&mask))?;
            let weights = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
            let sum = states.broadcast_mul(&weights)?.sum(1)?;
            sum.broadcast_div(&weights.sum(1)?)?.to_vec2::<f32>()
        };
        let pooled: Vec<Vec<f32>> = pooled().map_err(other)?;
        let vectors = pooled.into_iter().map(Vector::new).collect::<Option<Vec<_>>>();
        vectors.ok_or_else(|| ModelError::NoVector.into())
    }
}

fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> EmbeddingError {
    ModelError::Library(error.into()).into()
}

impl EmbeddingModel for LocalModel {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions
    }

    fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
        let model = self.0.clone();
        Box::pin(async move {
            blocking(move || {
                let batches = texts.chunks(BATCH).map(|batch| model.batch(batch));
                Ok(batches.collect::<Result<Vec<_>, EmbeddingError>>()?.concat())
            })
            .await
        })
    }
}
