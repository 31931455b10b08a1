//! Incident reports (OAP-CORE 22.2): what the owner publishes when something went wrong.

use crate::api::standing::{Incident, IncidentReport};
use crate::error::Error;
use crate::service::Incidents;
use crate::state::commits::ANONYMOUS;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::INCIDENTS;
use oap_identity::ids::IncidentId;
use oap_identity::{Did, Hash};
use oap_memory::receipt::Action;
use oap_store::Range;
use serde_json::Value;

impl Incidents<'_> {
    /// Publishes a report.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn report_incident(
        self,
        owner: &Owner<impl Permits<Admin>>,
        mut report: IncidentReport,
    ) -> Result<Incident, Error> {
        report.scope.get_or_insert_default();
        let now = self.0.clock.now();
        let tool: &Did = &self.0.principal;
        let published = Incident {
            incident_id: IncidentId::new(now, &*self.0.random),
            tool_did: tool.clone(),
            disclosed_at: now,
            report,
        };
        let mut draft = self.0.draft(Action::Incident, tool.as_str());
        draft.rules = vec!["principal".to_owned()];
        draft.output_hash = Some(Hash::of_canonical(&published)?);
        let stored = self
            .0
            .commit_as(owner, move |w| {
                w.receipt(ANONYMOUS, draft)?;
                INCIDENTS.put(w.tx, &published.incident_id, &serde_json::to_vec(&published)?)?;
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
