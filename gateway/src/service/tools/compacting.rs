//! What agents wrote and is of no use, taken away: first said, and then done as it was said.
//!
//! | goes | how |
//! |---|---|
//! | what is over | erased, as the sweep would |
//! | what the owner or the same agent says in another item in the same words, with the same labels, scope, visibility, sensitivity, kind and end | taken back; the owner's stays, else the surest |
//! | what is less sure than is asked for | taken back |
//! | what its writer said cannot be relied on any more | taken back |
//!
//! Of what the agent that asks may see and change, and nothing that the owner wrote, ever confirmed or put back, or holds, and no entry
//! that is pinned.

use super::looking::{Looking, VisibleItem};
use super::{Shown, ToolAnswer, members};
use crate::error::{Conflict, Error};
use crate::service::Tools;
use crate::service::entries::{holds_owners_word, owner_decided};
use crate::state::agents::Agent;
use crate::state::commits::{AGENTS, Writing};
use crate::state::owner::mark::{Admin, Read};
use crate::state::schema::{self, HOLDS};
use crate::state::terms::terms;
use oap_agents::answers::{Because, Compacted, Going, MAX_COMPACTED};
use oap_agents::arguments::Compact;
use oap_agents::entry::Context;
use oap_identity::{Did, Hash, ItemId, ReceiptId};
use oap_memory::Status;
use oap_memory::chain::Event;
use oap_memory::record::{Head, Tier};
use oap_store::Rows;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is less sure goes, 0 to 1, where the caller does not say (Trails ADR-0051 6).
const LEAST_CONFIDENCE: f64 = 0.3;

/// What would go, and what that rests on.
struct Plan {
    going: Vec<Going>,
    /// Each of them, and each that stays for one, with its last link.
    rests: Vec<(ItemId, u32)>,
    more: bool,
}

/// Most compactions of one agent's when a gateway starts; the rest is the next start's.
pub const MAX_ROUNDS: usize = 20;

impl Plan {
    /// What tells it from any other.
    fn hash(&self) -> Result<Hash, Error> {
        let rests: Vec<(String, u32)> =
            self.rests.iter().map(|(item, seq)| (item.to_string(), *seq)).collect();
        Ok(Hash::of_canonical(&(&self.going, rests))?)
    }
}

impl Tools<'_> {
    /// Says what would go; with the plan that this gave, has exactly that done.
    pub(super) async fn compact(
        self,
        agent: &Agent<Read>,
        admin: &Agent<Admin>,
        asked: Compact,
    ) -> Result<ToolAnswer, Error> {
        let (input, agreed) = (Hash::of_canonical(&asked)?, asked.plan);
        // Once: it takes a look at the whole memory, and whoever goes on writing could have it made again and again.
        let plan = self.look(agent, move |looking| looking.plan(&asked)).await?;
        let hash = plan.hash()?;
        let compacted = match agreed {
            // Nothing of the items is shown, nobody looked at them, and what the plan rests on is read again when it is carried out.
            None => {
                self.hand(agent, "memory_compact", input, Shown::default()).await?;
                Compacted {
                    dry_run: true,
                    plan: (!plan.going.is_empty()).then_some(hash),
                    going: plan.going,
                    more: plan.more,
                    receipt_id: None,
                }
            }
            Some(agreed) if agreed == hash => match self.carry_out(admin, input, plan).await {
                Err(Error::Overtaken) => return Err(Error::Conflict(Conflict::OtherPlan)),
                done => done?,
            },
            Some(_) => return Err(Error::Conflict(Conflict::OtherPlan)),
        };
        Ok(ToolAnswer { structured: members(&compacted)?, text: compacted.text() })
    }

    /// Takes away what would go, as each agent that may and as `memory_compact` does, with its receipts. How many items went; `None` where no
    /// agent may.
    ///
    /// # Errors
    /// Those of a call of the tool, but for what other writes overtake: that is the next start's.
    pub async fn compact_on_start(self) -> Result<Option<usize>, Error> {
        let agents = self.0.tidying()?;
        let mut went = 0;
        for agent in &agents {
            let admin = agent.permitted::<Admin>()?;
            for _ in 0..MAX_ROUNDS {
                let asked = Compact { min_confidence: None, plan: None };
                let input = Hash::of_canonical(&asked)?;
                let plan = self.look(agent, move |looking| looking.plan(&asked)).await?;
                if plan.going.is_empty() {
                    break;
                }
                match self.carry_out(&admin, input, plan).await {
                    Ok(done) => went += done.going.len(),
                    Err(Error::Overtaken) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((!agents.is_empty()).then_some(went))
    }

    /// Does what a plan says, all or nothing.
    async fn carry_out(self, admin: &Agent<Admin>, input: Hash, plan: Plan) -> Result<Compacted, Error> {
        let (gateway, agent) = (self.0.clone(), admin.clone());
        self.0
            .commit_for(admin.acting(), move |w| {
                let Plan { going, rests, more } = plan;
                rests.iter().try_for_each(|(item, seq)| w.ends_with(*item, *seq))?;
                let mut tags = Vec::new();
                for going in &going {
                    let (_, head) = schema::head(w.tx, going.item_id)?;
                    // Whose word it holds is as it was when that was looked at: its chain ends as it did, and of versions there are no more.
                    if !agent.sight().may_change(&head) || w.is_held(going.item_id)? {
                        return Err(Error::Overtaken);
                    }
                    tags.push(w.tag_of(&head)?);
                    w.take_away(going, &head)?;
                }
                let receipt_id = ReceiptId::new(w.now, &*gateway.random);
                let mut receipt = Tools(&gateway).handing(&agent, "memory_compact", input, tags)?;
                receipt.id = Some(receipt_id);
                w.receipt(AGENTS, receipt)?;
                Ok(Compacted { dry_run: false, plan: None, going, more, receipt_id: Some(receipt_id) })
            })
            .await
    }
}

impl Writing<'_, '_> {
    fn take_away(&mut self, going: &Going, head: &Head) -> Result<(), Error> {
        match going.because {
            Because::Expired if head.end_of_life.is_some_and(|end| end <= self.now) => {
                // With what is kept back for a full disk the owner alone erases, and the sweep.
                self.expire(going.item_id).map(drop)
            }
            Because::Duplicate | Because::Unsure | Because::Stale
                if head.is_live(self.now) && !is_in_pinned_namespace(self.tx, head)? =>
            {
                self.mark(going.item_id, Event::Retract).map(drop)
            }
            _ => Err(Error::Overtaken),
        }
    }
}

/// Whether an entry stands where the owner lets nothing go of its author's.
fn is_in_pinned_namespace(rows: &impl Rows, head: &Head) -> Result<bool, Error> {
    let is_entry = head.meta.tier == Tier::Episodic && head.meta.key.is_some();
    Ok(is_entry && terms(rows, &head.meta.author)?.pins(head))
}

/// What items that say the same have in common: nothing is merged across any of it, since that would tell what is hidden.
type Sameness = (Hash, String);

/// Which of several that say the same stays: the owner's, then what was confirmed, then the surest, then the first.
type Worth = (bool, bool, Reverse<u64>, ItemId);

impl Looking<'_> {
    /// What would go.
    fn plan(self, asked: &Compact) -> Result<Plan, Error> {
        let least = asked.min_confidence.map_or(LEAST_CONFIDENCE, oap_memory::item::Confidence::get);
        let sight = self.agent.sight();
        let mut found: Vec<(Going, Vec<(ItemId, u32)>)> = Vec::new();
        let mut same: BTreeMap<Sameness, Vec<(Worth, Arc<Head>)>> = BTreeMap::new();
        for head in self.gateway.heads.all() {
            if head.status != Status::Current || !sight.may_change(&head) {
                continue;
            }
            let rests = vec![(head.item_id, head.seq)];
            let item_id = head.item_id;
            if !head.is_live(self.now) {
                // To others than its author it is not there any more.
                if sight.wrote(&head) && self.may_go(&head)? {
                    found.push((Going { item_id, because: Because::Expired, same_as: None }, rests));
                }
                continue;
            }
            if self.confidence(&head) < least && self.may_go(&head)? && !self.is_pinned(&head)? {
                found.push((Going { item_id, because: Because::Unsure, same_as: None }, rests));
                continue;
            }
            // An entry is told apart by its key, whatever it says.
            if head.meta.key.is_some() {
                continue;
            }
            let Some(seen) = self.seen(head.clone())? else { continue };
            if seen.is_stale() && self.may_go(&head)? {
                found.push((Going { item_id, because: Because::Stale, same_as: None }, rests));
                continue;
            }
            if let Some(sameness) = sameness(&seen)? {
                let is_owners = *head.meta.author == self.gateway.principal;
                let sure = (head.confidence.get() * 1e6) as u64;
                let worth = (!is_owners, !head.meta.human_verified, Reverse(sure), item_id);
                same.entry(sameness).or_default().push((worth, head));
            }
        }
        for (_, mut alike) in same {
            alike.sort_by_key(|(worth, _)| *worth);
            // The owner's stays for anybody's, an agent's for its own alone: whoever wrote it would be gone with another's.
            let mut stay: BTreeMap<Arc<Did>, Arc<Head>> = BTreeMap::new();
            for (_, head) in alike {
                let owners = stay.get(&self.gateway.principal);
                let Some(stays) = owners.or_else(|| stay.get(&head.meta.author)) else {
                    stay.insert(head.meta.author.clone(), head);
                    continue;
                };
                if self.may_go(&head)? {
                    let (item_id, same_as) = (head.item_id, Some(stays.item_id));
                    let going = Going { item_id, because: Because::Duplicate, same_as };
                    found.push((going, vec![(item_id, head.seq), (stays.item_id, stays.seq)]));
                }
            }
        }
        found.sort_by_key(|(going, _)| going.item_id);
        let more = found.len() > MAX_COMPACTED;
        found.truncate(MAX_COMPACTED);
        let (going, rests): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        Ok(Plan { going, rests: rests.into_iter().flatten().collect(), more })
    }

    /// Whether an entry is pinned, by its author or with its namespace.
    fn is_pinned(&self, head: &Arc<Head>) -> Result<bool, Error> {
        if head.meta.key.is_none() {
            return Ok(false);
        }
        if is_in_pinned_namespace(&self.gateway.store, head)? {
            return Ok(true);
        }
        Ok(self.seen(head.clone())?.is_some_and(|seen| Context::of(&seen.whole).pinned))
    }

    /// Whether an item is one that may go: nothing of it is the owner's word, the owner never decided on it, and nothing holds it.
    fn may_go(&self, head: &Head) -> Result<bool, Error> {
        let store = &self.gateway.store;
        // What the owner confirmed, in whatever version, or put back: in one that is not kept any more, too.
        let stays = HOLDS.get(store, &head.item_id)?.is_some()
            || owner_decided(store, head, 0)?
            || holds_owners_word(store, self.gateway, head)?;
        Ok(!stays)
    }
}

/// What an item has in common with those that say the same; `None` where it has no words.
fn sameness(seen: &VisibleItem) -> Result<Option<Sameness>, Error> {
    let (head, Some(text)) = (&seen.head, seen.text()) else { return Ok(None) };
    let structured = seen.content("structured").cloned().unwrap_or(Value::Null);
    let says = Hash::of_canonical(&(text, structured, &*head.labels))?;
    let meta = &head.meta;
    let within = format!(
        "{} {} {} {} {} {} {:?} {:?} {:?}",
        head.scope_id,
        meta.visibility,
        meta.tier,
        head.sensitivity,
        head.kind,
        head.exportable,
        head.end_of_life,
        head.subject_entity_id,
        seen.staleness()
    );
    // What is its author's alone is no duplicate of another's.
    let whose =
        if meta.visibility == oap_memory::record::Visibility::Private { meta.author.as_str() } else { "" };
    Ok(Some((says, format!("{within} {whose}"))))
}
