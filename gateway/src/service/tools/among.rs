//! `memory_recall` with the memories of others: each is asked once, and what the answer rests on is read again when it is handed on.

use super::finding::Ranked;
use super::looking::{Looking, VisibleItem};
use super::{Shown, ToolAnswer, Unhanded};
use crate::error::Error;
use crate::service::recall::{Gathered, Wanted, merging};
use crate::service::{Recalls, Tools};
use crate::state::agents::Agent;
use crate::state::commits::until_it_holds;
use crate::state::owner::Acting;
use crate::state::owner::mark::Read;
use oap_agents::Tool;
use oap_agents::answers::Recalled;
use oap_agents::arguments::{Recall, USUAL_FACTS, topic_label};
use oap_agents::foreign::{AlsoShown, Foreign, Via};
use oap_identity::{Hash, ItemId};
use serde::{Deserialize, Serialize};

/// An item of somebody else's, as the receipt of the answer has it: what, whose, and under which grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForeignTag {
    pub item_id: ItemId,
    pub commitment: Hash,
    pub shown_by: Vec<Via>,
}

impl From<&Foreign> for ForeignTag {
    fn from(item: &Foreign) -> Self {
        Self { item_id: item.item_id, commitment: item.commitment, shown_by: item.shown_by.clone() }
    }
}

impl Tools<'_> {
    /// Asks others, and hands on what they and the own memory have.
    pub(super) async fn recall_among(
        self,
        agent: &Agent<Read>,
        input: Hash,
        asked: Recall,
    ) -> Result<ToolAnswer, Error> {
        let topic = asked.topic.as_deref().map(topic_label);
        let wanted = Wanted {
            words: asked.query.clone(),
            kinds: asked.kinds.clone(),
            labels: topic.into_iter().chain(asked.tags.iter().cloned()).collect(),
            least: asked.min_confidence.map(oap_memory::item::Confidence::get),
            most: asked.limit.unwrap_or(USUAL_FACTS),
            deadline: asked.waits(),
        };
        let gathered = Recalls(self.0).gather(Acting::Caller, wanted).await?;
        until_it_holds(|| async {
            // One under whose grant nothing may be read any more is not tried again in vain.
            let (gathered, asked) = (gathered.clone().without_ended(self.0)?, asked.clone());
            let unhanded = self.look(agent, move |looking| looking.recall_among(&asked, gathered));
            let Unhanded { answer, shown } = unhanded.await?;
            self.hand(agent, Tool::Recall.as_str(), input, shown).await?;
            Ok(answer)
        })
        .await
    }
}

impl Looking<'_> {
    /// The own memory's and the others', in one list. What of the own has no place in it is not shown, and stands in no receipt.
    fn recall_among(mut self, asked: &Recall, mut gathered: Gathered) -> Result<Unhanded, Error> {
        if let Some(age) = asked.max_age {
            // Of what nobody says when it became known, nobody says that it is new.
            let oldest = self.now.minus(age.duration());
            for source in &mut gathered.sources {
                source.found.retain(|(item, _)| item.learned_at.is_some_and(|at| at >= oldest));
            }
        }
        let ranked = self.ranked(asked)?;
        let (matched, limit) = (ranked.len(), asked.limit.unwrap_or(USUAL_FACTS));
        let mut own: Vec<(Hash, (Ranked, VisibleItem))> = Vec::new();
        for found in ranked.into_iter().take(limit) {
            if let Some(seen) = self.seen(found.head.clone())? {
                own.push((seen.commitment(), (found, seen)));
            }
        }
        let (own, mut from_peers) = merging::merged(own, gathered, limit);
        let mut facts = Vec::new();
        for ((found, seen), shown_by) in own {
            if !self.has_room(&seen) {
                break;
            }
            let fact = self.show(&seen, Some(&found));
            if !shown_by.is_empty() {
                from_peers.also_shown.push(AlsoShown { item_id: fact.item_id, shown_by });
            }
            facts.push(fact);
        }
        let foreign: Vec<ForeignTag> = from_peers.items.iter().map(ForeignTag::from).collect();
        let recalled = Recalled { facts, matched, from_peers: Some(from_peers) };
        let unhanded = Unhanded::of(&recalled, recalled.text(), self)?;
        Ok(Unhanded { shown: Shown { foreign, ..unhanded.shown }, ..unhanded })
    }
}
