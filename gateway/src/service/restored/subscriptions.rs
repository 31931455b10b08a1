//! Subscriptions that a backup brought back, and that their owner had ended since.

use crate::api::subscriptions::HeldEnd;
use crate::error::Error;
use crate::service::Backups;
use crate::state::commits::Writing;
use crate::state::erasures::{Listed, Unsubscribed};
use crate::state::listening;
use crate::state::schema::{LISTENING, SUBSCRIPTIONS};
use crate::state::subscriptions::{self, EndedBy};

impl Backups<'_> {
    /// Ends them again; how many they were. Where no list tells of all of them, the owner is warned.
    pub(super) async fn unsubscribe_again(
        self,
        listed: &Listed,
        is_unknown: bool,
        warnings: &mut Vec<String>,
    ) -> Result<usize, Error> {
        let listed = listed.subscriptions.clone();
        let ended = move |w: &mut Writing<'_, '_>| {
            let mut ended = 0;
            for Unsubscribed { subscription, grant } in listed {
                let is_live = match grant {
                    Some(grant) => {
                        let row = SUBSCRIPTIONS.get(w.tx, &(grant, subscription))?;
                        row.is_some_and(|row| row.ended.is_none())
                    }
                    None => LISTENING.get(w.tx, &subscription)?.is_some_and(|row| row.ended_at.is_none()),
                };
                if !is_live {
                    continue;
                }
                match grant {
                    Some(grant) => subscriptions::end(w, (grant, subscription), EndedBy::Granter)?,
                    None => drop(listening::end(w, subscription, HeldEnd::Owner)?),
                }
                ended += 1;
            }
            Ok(ended)
        };
        let ended = self.0.commit_own(ended).await?;
        if is_unknown && self.has_subscriptions()? {
            warnings.push(
                "subscriptions that were ended since may go on: `grant subscriptions` shows them, `grant unsubscribe` ends one"
                    .to_owned(),
            );
        }
        Ok(ended)
    }

    /// Whether one is not over.
    fn has_subscriptions(self) -> Result<bool, Error> {
        for row in SUBSCRIPTIONS.scan(&self.0.store) {
            if row?.1.ended.is_none() {
                return Ok(true);
            }
        }
        for row in LISTENING.scan(&self.0.store) {
            if row?.1.ended_at.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
