//! What a granter's gateway says of its log (protocol section 16). Whose signatures a checkpoint has is for the caller to count.

use super::{Remote, Session};
use crate::error::{ClientError, read};
use crate::prover::Prover;
use crate::wire::{Ask, send};
use oap_identity::json;
use oap_identity::outgoing::Allowance;
use oap_identity::{DidDocument, Hash, Timestamp};
use oap_manifest::path;
use oap_memory::log::checkpoint::Checkpoint;
use oap_memory::log::inclusion::{Inclusion, InclusionError, Known};
use oap_memory::log::note::{MAX_NOTE, Note};
use serde::Deserialize;
use std::time::Duration;
use url::Url;

/// What a checkpoint or a proof may take.
const LOG: Allowance = Allowance { bytes: MAX_NOTE + (64 << 10), time: Duration::from_secs(10) };

#[derive(Deserialize)]
struct Consistency {
    proof: Vec<Hash>,
}

/// A checkpoint whose log's key signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// As it came, with the signatures of witnesses.
    pub note: Note,
    /// What it says.
    pub checkpoint: Checkpoint,
}

impl Signed {
    /// Reads one, and checks that it is its principal's.
    ///
    /// # Errors
    /// [`InclusionError`].
    pub fn read(bytes: &[u8], principal: &DidDocument, now: Timestamp) -> Result<Self, InclusionError> {
        let note = Note::parse(bytes)?;
        let checkpoint = Checkpoint::verify(&note, principal, now)?;
        Ok(Self { note, checkpoint })
    }
}

impl Remote {
    /// The checkpoint that the gateway publishes; `None` where it publishes none.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Log`] for one that is not the principal's.
    pub async fn checkpoint(&self) -> Result<Option<Signed>, ClientError> {
        let Some(url) = &self.endpoints.checkpoint else { return Ok(None) };
        let (status, bytes) = send(&self.client, Ask { method: "GET", url, ..Ask::default() }, LOG).await?;
        match status {
            404 => Ok(None),
            200 => Ok(Some(Signed::read(&bytes, &self.document, self.clock.now())?)),
            _ => read(url, status, &bytes).and(Ok(None)),
        }
    }

    /// The proof that the log goes on from one size to another; `None` where the gateway has none.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn consistency(&self, from: u64, to: u64) -> Result<Option<Vec<Hash>>, ClientError> {
        let url = format!("{}?from={from}&to={to}", self.at(path::CONSISTENCY)?);
        let ask = Ask { method: "GET", url: &url, ..Ask::default() };
        let (status, bytes) = send(&self.client, ask, LOG).await?;
        if status == 404 {
            return Ok(None);
        }
        let Consistency { proof } = json::from_value(read(&url, status, &bytes)?)?;
        Ok(Some(proof))
    }

    /// The address of a path that no manifest names: at the origin of the query endpoint.
    fn at(&self, path: &str) -> Result<String, ClientError> {
        let query = &self.endpoints.query;
        let origin = Url::parse(query).map(|url| url.origin().ascii_serialization());
        let origin = origin.map_err(|e| ClientError::Malformed(query.clone(), e.to_string()))?;
        Ok(format!("{origin}{path}"))
    }
}

impl Session<'_> {
    /// Whether a receipt that was given under this grant is in the granter's log: the checkpoint that covers it, or `None` where it is in
    /// none yet.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Log`] for a proof that does not hold.
    pub async fn witnessed(
        &self,
        prover: &dyn Prover,
        receipt: &Known,
    ) -> Result<Option<Signed>, ClientError> {
        let url = self.remote.at(&format!("{}{}", path::WITNESSED, receipt.receipt_id))?;
        let (status, bytes) = self.send(prover, "GET", &url, None, LOG).await?;
        if status == 404 {
            return Ok(None);
        }
        let inclusion: Inclusion = json::from_value(read(&url, status, &bytes)?)?;
        let (document, now) = (&self.remote.document, self.remote.clock.now());
        let note = inclusion.check(receipt, document, now)?;
        let checkpoint = Checkpoint::verify(&note, document, now).map_err(InclusionError::from)?;
        Ok(Some(Signed { note, checkpoint }))
    }
}
