//! Acknowledgements as `oap-memory audit acks show --json` prints them: the receipt of an answer, and everything that was signed over it.

use super::{Verify, named, refused};
use crate::cli::proved::{self, Report};
use crate::cli::{CliError, Global};
use oap_federation::ack::Chain;
use oap_identity::{Did, Timestamp};
use oap_memory::receipt;
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether a document is of that form.
pub(super) fn is_acks(value: &Value) -> bool {
    value.get("receipt").is_some() && value.get("signed").is_some()
}

impl Verify {
    /// Checks the receipt, and each signature over the one before.
    pub(super) async fn acks(
        &self,
        global: &Global,
        value: &Value,
        now: Timestamp,
    ) -> Result<Report, CliError> {
        self.uses(&[], "acknowledgements")?;
        let receipt = &value["receipt"];
        let signed = value["signed"].as_array().ok_or_else(|| refused("signed: must be a list"))?;
        let parties: BTreeSet<Did> =
            ["principal_did", "agent_did"].into_iter().filter_map(|member| named(receipt, member)).collect();
        let known = self.known(global, parties).await?;
        let receipt =
            receipt::verify(receipt, &known).and_then(|receipt| receipt.as_of(now)).map_err(refused)?;
        let chain = Chain::verify(&receipt, signed, &known, now).map_err(refused)?;
        let members = value.as_object().into_iter().flat_map(|members| members.keys());
        let outside =
            members.filter(|name| !["receipt", "signed"].contains(&name.as_str())).cloned().collect();
        Ok(proved::acks(&receipt, &chain, outside))
    }
}
