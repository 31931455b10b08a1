//! Incident reports (OAP-CORE 22.2): what the owner publishes when something went wrong.

use crate::error::Error;
use crate::service::Incidents;
use crate::state::commits::ANONYMOUS;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::INCIDENTS;
use oap_identity::ids::IncidentId;
use oap_identity::{Did, Hash, Timestamp};
use oap_memory::receipt::Action;
use oap_store::Range;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A report of `oap-incident.schema.json`, without the members that the gateway adds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    detected_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_at: Option<Timestamp>,
    severity: Severity,
    #[serde(default)]
    scope: Value,
    root_cause: String,
    mitigation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remediation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification: Option<Value>,
    status: IncidentStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum IncidentStatus {
    Open,
    Mitigated,
    Resolved,
    PostMortemPublished,
}

impl Incidents<'_> {
    /// Publishes a report.
    ///
    /// # Errors
    /// [`Error::Member`], naming the member.
    pub async fn report_incident(
        self,
        owner: &Owner<impl Permits<Admin>>,
        report: Value,
    ) -> Result<Value, Error> {
        let mut report: Report =
            oap_identity::json::from_value(report).map_err(|e| Error::Member("incident", e.into()))?;
        if report.scope.is_null() {
            report.scope = json!({});
        }
        let now = self.0.clock.now();
        let id = IncidentId::new(now, &*self.0.random);
        let tool: &Did = &self.0.principal;
        let mut published = serde_json::to_value(report)?;
        published["incident_id"] = json!(id);
        published["tool_did"] = json!(tool);
        published["disclosed_at"] = json!(now);
        let mut draft = self.0.draft(Action::Incident, tool.as_str());
        draft.rules = vec!["principal".to_owned()];
        draft.output_hash = Some(Hash::of_canonical(&published)?);
        let stored = self
            .0
            .commit_as(owner, move |w| {
                w.receipt(ANONYMOUS, draft)?;
                INCIDENTS.put(w.tx, &id, &published.to_string().into_bytes())?;
                Ok(published)
            })
            .await?;
        Ok(stored)
    }

    /// The published reports, newest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn incidents(self) -> Result<Vec<Value>, Error> {
        let rows = INCIDENTS.range(&self.0.store, Range::all().descending());
        rows.map(|row| Ok(serde_json::from_slice(&row?.1)?)).collect()
    }
}
