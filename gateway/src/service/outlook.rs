//! Which grants end soon, given and received: for `doctor`, which warns, and for metrics.

use crate::error::Error;
use crate::service::doctor::Finding;
use crate::service::{Grants, Wallet};
use crate::state::schema::{RENEWED, WALLET};
use oap_grants::GrantState;
use oap_identity::{GrantId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long before its end a grant is warned of.
pub const GRANT_SOON: Duration = Duration::from_secs(14 * 86_400);

/// How the grants of a gateway stand.
#[derive(Debug, Clone, Default)]
pub struct Outlook {
    /// How many there are in each state, every state named.
    pub states: BTreeMap<&'static str, usize>,
    /// The ends of the active ones, earliest first.
    pub ends: Vec<(Timestamp, GrantId)>,
}

impl Grants<'_> {
    /// How the grants stand.
    #[must_use]
    pub(crate) fn grants_outlook(self) -> Outlook {
        let mut grants = Outlook::default();
        grants.states.extend(GrantState::ALL.iter().map(|state| (state.as_str(), 0)));
        let renewed = self.renewed();
        for entry in self.0.grant_book.all() {
            let state = self.state(&entry.record);
            *grants.states.entry(state.as_str()).or_default() += 1;
            let grant = entry.record.grant.grant();
            // What was given to a device before its last renewal ends as it should.
            if state == GrantState::Active && !renewed.contains(&grant.grant_id) {
                grants.ends.push((grant.expires_at, grant.grant_id));
            }
        }
        grants.ends.sort_unstable();
        grants
    }

    /// The grants in whose place a device has another by now. A row that cannot be read is left out: `doctor` names it.
    fn renewed(self) -> BTreeSet<GrantId> {
        let rows = RENEWED.scan(&self.0.store).filter_map(Result::ok);
        rows.flat_map(|(_, renewal)| renewal.former).map(|(id, ..)| id).collect()
    }

    /// A warning of each grant that ends soon.
    pub(crate) fn grants_finding(self) -> Finding {
        let grants = self.grants_outlook();
        let until = self.0.clock.now().plus(GRANT_SOON);
        let soon = grants.ends.iter().filter(|(end, _)| *end <= until);
        let mut soon: Vec<String> = soon.map(|(end, id)| format!("{id} ends {end}")).collect();
        let mut fix = "issue a new grant to whom still needs one";
        if self.0.grants_answer().is_err() {
            soon.insert(0, "no grant answers since the restore".to_owned());
            fix = "look at items, contexts and holds; then `oap-memory grant resume`";
        }
        Finding {
            part: "active grants".into(),
            looked_at: grants.ends.len(),
            wrong: Vec::new(),
            soon,
            fix: fix.into(),
            note: None,
        }
    }
}

impl Wallet<'_> {
    /// A warning of each grant of somebody's that ends soon; `None` where none is in force.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn finding(self) -> Result<Option<Finding>, Error> {
        let now = self.0.clock.now();
        let (mut in_force, mut ends) = (0, Vec::new());
        for row in WALLET.scan(&self.0.store) {
            let (_, received) = row?;
            let (_, grant) = received.document()?;
            if received.revoked_at.is_none() && grant.begins() <= now && now < grant.expires_at {
                in_force += 1;
                if grant.expires_at <= now.plus(GRANT_SOON) {
                    ends.push((grant.expires_at, grant.grant_id, received.granter));
                }
            }
        }
        ends.sort_unstable();
        let soon = ends.into_iter().map(|(end, id, granter)| format!("{id} of {granter} ends {end}"));
        let finding = Finding {
            part: "received grants".into(),
            looked_at: in_force,
            wrong: Vec::new(),
            soon: soon.collect(),
            fix: "ask its granter for another, `oap-memory grant request`, where you still need it".into(),
            note: None,
        };
        Ok((in_force > 0).then_some(finding))
    }
}
