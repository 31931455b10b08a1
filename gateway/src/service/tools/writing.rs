//! The tools that write.

use super::again::{SAID_AT, believed, said_before};
use super::judging::{Words, may_write, said, sort_of, stopped, terms};
use super::{ToolAnswer, members};
use crate::error::{Conflict, Error};
use crate::service::entries::may_correct;
use crate::service::items::{Author, InForce, Written, whole};
use crate::service::{Items, Tools};
use crate::state::agents::Agent;
use crate::state::commits::until_it_holds;
use crate::state::gateway::{Gateway, blocking};
use crate::state::owner::Permission;
use crate::state::owner::mark::Write;
use crate::state::policy::{Admitted, policy};
use crate::state::repeatable::Repeatable;
use crate::state::schema;
use oap_agents::Level;
use oap_agents::answers::{Corrected, Forgotten, Learned};
use oap_agents::arguments::{Correct, Forget, Learn, topic_label};
use oap_agents::level::{EXTENSION, waits};
use oap_agents::quarantine;
use oap_agents::staleness::Staleness;
use oap_identity::Timestamp;
use oap_memory::chain::Event;
use oap_memory::record::{Head, Meta, Tier, Visibility};
use oap_memory::{Kind, Status};
use oap_soundness::policy::Terms;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

impl Tools<'_> {
    /// Writes an item whose author is the agent.
    pub(super) async fn learn(self, agent: &Agent<Write>, learn: Learn) -> Result<ToolAnswer, Error> {
        // As it was called: what is usual may be another thing when it is repeated.
        let call = learn.idempotency_key.as_ref().map(|key| Repeatable::new(agent.did(), key, &learn));
        let call = call.transpose()?;
        let config = &self.0.config;
        let scope = learn.scope.unwrap_or(config.brain_scope);
        let learn =
            Learn { scope: Some(scope), staleness: learn.staleness.or(config.brain_staleness), ..learn };
        let (learn, judged, before, warning) = until_it_holds(|| {
            let (gateway, writer, learn) = (self.0.clone(), agent.clone(), learn.clone());
            blocking(move || {
                let judged = terms(&gateway.store, &writer, &learn)?;
                let concludes = judged.0.level == Level::AgentInferred;
                let source = learn.source.as_ref();
                let before =
                    concludes.then(|| said_before(&gateway, writer.did(), &learn.content, source, None));
                Ok::<_, Error>((learn, judged, before.transpose()?.flatten(), many(&gateway, &writer)))
            })
        })
        .await?;
        let (Terms { sort, level, confidence, needs_verification, quarantined, ttl_days, .. }, kinds) =
            judged;
        let admitted = Admitted { author: agent.did().clone(), sort };
        let mut labels = learn.tags.clone();
        labels.extend(learn.topic.as_deref().map(topic_label));
        quarantine::mark(&mut labels, quarantined);
        let mut item = json!({
            "kind": learn.kind.unwrap_or(Kind::Fact),
            "content": {"text": learn.content},
            "labels": labels,
            "provenance": {"confidence": confidence},
            // What its author alone may see goes nowhere else either.
            "exportable": scope != Visibility::Private,
            "extensions": {EXTENSION: said(level, learn.source.as_ref(), &kinds)},
        });
        if let Some(sort) = sort {
            item["extensions"][EXTENSION]["type"] = json!(sort);
        }
        if let Some(staleness) = learn.staleness {
            item["extensions"][EXTENSION]["staleness"] = json!(staleness);
        }
        if let Some(sensitivity) = learn.sensitivity {
            item["sensitivity"] = json!(sensitivity);
        }
        if let Some(days) = ttl_days {
            item["ttl_days"] = json!(days);
        }
        let mut believed_now = confidence;
        if let Some(before) = &before {
            item["extensions"][EXTENSION][SAID_AT] = json!(before.since);
            item["provenance"]["captured_at"] = json!(before.place.captured_at);
            if let Some(days) = ttl_days {
                // Its life is its own.
                let end = self.0.clock.now().plus(Duration::from_secs(u64::from(days) * 86_400));
                item["expires_at"] = json!(end);
            }
            believed_now = believed(self.0, confidence, before.since)?;
        }
        let said_before = before.map(|before| before.place.item);
        let record = Meta {
            author: Arc::new(agent.did().clone()),
            tier: Tier::Episodic,
            visibility: scope,
            human_verified: false,
            needs_verification,
            namespace: None,
            key: None,
            private_to: None,
        };
        let told = move |written: &Written| Learned {
            item_id: written.item_id,
            version: written.version,
            commitment: written.commitment,
            level,
            confidence: believed_now,
            needs_verification,
            quarantined,
            scope,
            said_before,
            warning: warning.clone(),
            repeated: false,
        };
        let learned = match call {
            None => {
                let written =
                    Items(self.0).capture_as(agent.acting(), &[item], record, Some(admitted)).await?;
                told(written.first().ok_or(Error::NotFound)?)
            }
            Some(call) => {
                let answer = move |written: &Written| Ok(serde_json::to_vec(&told(written))?);
                let items = Items(self.0);
                let (answer, is_new) =
                    items.capture_once_for(agent.acting(), &item, record, admitted, call, answer).await?;
                let learned: Learned = serde_json::from_slice(&answer)?;
                Learned { repeated: !is_new, ..learned }
            }
        };
        Ok(ToolAnswer { structured: members(&learned)?, text: learned.text() })
    }

    /// Gives an item another version, whose author is the agent.
    pub(super) async fn correct(self, agent: &Agent<Write>, asked: Correct) -> Result<ToolAnswer, Error> {
        let level = asked.level();
        let (asked, kinds) = blocking(move || {
            let (content, source) = (asked.content.as_str(), asked.source.as_ref());
            let words = Words { content, topic: asked.reason.as_deref(), tags: &[], source };
            let kinds = stopped(&words.findings(), level);
            Ok::<_, Error>((asked, kinds))
        })
        .await?;
        // What is remembered does not go because a page says so.
        if !kinds.is_empty() {
            return Err(Error::Guarded(kinds));
        }
        let confidence = level.confidence(asked.confidence);
        let (looker, now, item_id) = (agent.clone(), self.0.clock.clone(), asked.item_id);
        let gateway = self.0.clone();
        // Since when what it says is believed, where it was said before.
        let since: Arc<Mutex<Option<Timestamp>>> = Arc::default();
        let told = since.clone();
        let change = move |before: &InForce| {
            may_change(&looker, &before.head, now.now())?;
            let there = before.head.version_seq + 1;
            if asked.version.is_some_and(|version| version != there) {
                return Err(Error::Conflict(Conflict::NewerVersion(there)));
            }
            may_correct(&gateway, &looker, before, &asked.content)?;
            let former = whole(&before.committed)?;
            let sort = sort_of(&former);
            may_write(&policy(&gateway.store)?, &looker, sort, level)?;
            let mut extensions =
                former.get("extensions").and_then(Value::as_object).cloned().unwrap_or_default();
            let mut says = said(level, asked.source.as_ref(), &[]);
            if let Some(sort) = sort {
                says["type"] = json!(sort);
            }
            if let Some(staleness) = Staleness::of(&former) {
                says["staleness"] = json!(staleness);
            }
            if let Some(reason) = &asked.reason {
                says["reason"] = json!(reason);
            }
            let source = asked.source.as_ref();
            let repeated = (level == Level::AgentInferred && before.head.meta.key.is_none())
                .then(|| said_before(&gateway, looker.did(), &asked.content, source, Some(before)))
                .transpose()?
                .flatten();
            if let Some(repeated) = &repeated {
                says[SAID_AT] = json!(repeated.since);
            }
            *told.lock().unwrap_or_else(PoisonError::into_inner) = repeated.as_ref().map(|said| said.since);
            extensions.insert(EXTENSION.to_owned(), says);
            // Where the former words came from says nothing of these; when the item became known stays.
            let provenance = former.get("provenance").and_then(Value::as_object);
            let mut provenance: Map<String, Value> =
                provenance.into_iter().flat_map(Map::keys).map(|name| (name.clone(), Value::Null)).collect();
            provenance.remove("captured_at");
            provenance.insert("confidence".to_owned(), json!(confidence));
            let known_at = repeated.map(|said| said.place.captured_at);
            let known_at = known_at.filter(|at| *at < before.head.captured_at);
            provenance.extend(known_at.map(|at| ("captured_at".to_owned(), json!(at))));
            let mut changes = json!({
                "content": {"text": asked.content, "structured": null},
                "provenance": provenance,
                "embedding": null,
                "extensions": extensions,
            });
            if let (Some(_), Some(end)) = (known_at, before.head.end_of_life) {
                changes["expires_at"] = json!(end);
            }
            if let Some(labels) = quarantine::lifted(&before.head.labels) {
                changes["labels"] = json!(labels);
            }
            let meta = &before.head.meta;
            // Of entries what nobody else sees waits for nobody.
            let is_pad = meta.key.is_some() && meta.visibility == Visibility::Private;
            let needs_verification = !is_pad && waits(confidence, meta.visibility);
            let did = looker.did().clone();
            let admitted = Some(Admitted { author: did.clone(), sort });
            Ok((changes, Author { did, needs_verification, admitted }))
        };
        let (written, author) = Items(self.0).correct_as(&agent.acting(), item_id, change).await?;
        let since = *since.lock().unwrap_or_else(PoisonError::into_inner);
        let corrected = Corrected {
            item_id: written.item_id,
            version: written.version,
            commitment: written.commitment,
            level,
            confidence: since.map_or(Ok(confidence), |since| believed(self.0, confidence, since))?,
            needs_verification: author.needs_verification,
            said_before: since.is_some(),
        };
        Ok(ToolAnswer { structured: members(&corrected)?, text: corrected.text() })
    }

    /// Takes an item back.
    pub(super) async fn forget(self, agent: &Agent<Write>, asked: Forget) -> Result<ToolAnswer, Error> {
        let Forget { item_id, reason } = asked;
        let (reason, kinds) = blocking(move || {
            let content = reason.as_deref().unwrap_or_default();
            let words = Words { content, topic: None, tags: &[], source: None };
            let kinds = stopped(&words.findings(), Level::AgentInferred);
            Ok::<_, Error>((reason, kinds))
        })
        .await?;
        if !kinds.is_empty() {
            return Err(Error::Guarded(kinds));
        }
        let looker = agent.clone();
        let retracted_at = self
            .0
            .commit_for(agent.acting(), move |w| {
                let (slot, head) = schema::head(w.tx, item_id)?;
                may_change(&looker, &head, w.now)?;
                w.mark(item_id, Event::Retract)?;
                if let Some(reason) = reason {
                    schema::REASONS.put_in(w.tx, slot, &item_id, &reason)?;
                }
                Ok(w.now)
            })
            .await?;
        let kept = Duration::from_secs(u64::from(self.0.config.retention_days) * 86_400);
        let forgotten = Forgotten { item_id, retracted_at, erase_after: retracted_at.plus(kept) };
        Ok(ToolAnswer { structured: members(&forgotten)?, text: forgotten.text() })
    }
}

/// What is said where there will be more facts that an agent may see than the owner wants to keep.
fn many(gateway: &Gateway, agent: &Agent<Write>) -> Option<String> {
    let most = gateway.config.brain_max_facts;
    // Of what it does not see nothing is told, not its number either.
    if gateway.heads.len() < most {
        return None;
    }
    let (now, sight) = (gateway.clock.now(), agent.sight());
    gateway.heads.has(most, |head| head.is_live(now) && sight.sees(head)).then(|| {
        format!(
            "There are more facts now than the {most} that the owner wants to keep: memory_compact takes away what is of no use."
        )
    })
}

/// Whether an agent may change an item. One that it may not see is not there; one that it may see and not change, it is told so.
pub(super) fn may_change(agent: &Agent<Write>, head: &Head, now: Timestamp) -> Result<(), Error> {
    let sight = agent.sight();
    let sees = sight.sees(head) && (head.is_live(now) || sight.wrote(head));
    if !sees {
        return Err(Error::NotFound);
    }
    if !sight.may_change(head) {
        return Err(Error::Permission(Permission::Admin.as_str()));
    }
    match head.status {
        Status::Current if head.is_live(now) => Ok(()),
        _ => Err(Error::Conflict(Conflict::NotInForce)),
    }
}
