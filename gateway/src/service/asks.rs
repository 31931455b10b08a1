//! What others ask the owner for (protocol section 13.3): the inbox, and the owner's answers.

use crate::api::access::{AskInfo, AskList};
use crate::api::grants::{GrantDraft, GrantInfo};
use crate::error::{Conflict, Error};
use crate::service::notices::may_have_a_gateway;
use crate::service::{Asks, Grants};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::grant_book::GrantKey;
use crate::state::inbox::{self, Placed, StoredAsk};
use crate::state::outbox;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{ASKS, GRANTS, REVOKED};
use oap_federation::ask::{AccessRequest, AccessStatus, AccessWithdrawal, AskState, GrantDelivery};
use oap_federation::plain::Plain;
use oap_federation::reply::{AccessReply, LetterResult, Reason};
use oap_federation::{Content, Outcome};
use oap_grants::grant::LawfulBasis;
use oap_grants::{Grant, SignedGrant};
use oap_identity::{AskId, Did, json};
use oap_memory::TrustLevel;
use serde_json::Value;
use std::net::IpAddr;
use std::time::Duration;

/// The projection profile of what names none.
const PROFILE: &str = "oap.profile.projection.memory.v1";
/// Most tasks that one transaction of a sweep looks at.
const BATCH: usize = 500;

/// Somebody asks for access, or what became of it.
pub(crate) fn asked(
    w: &mut Writing<'_, '_>,
    from: &Did,
    request: &AccessRequest,
    network: IpAddr,
) -> Result<LetterResult, Error> {
    if let Some((_, task)) = inbox::find(w.tx, from, request.request)? {
        if task.ask != json::canonical_text(&request.ask)? {
            return Ok(LetterResult::refused(Reason::OtherLetter));
        }
        return Ok(LetterResult::access(standing(w, &task)?));
    }
    if request.ask.expires_at <= w.now {
        return Ok(LetterResult::refused(Reason::Over));
    }
    let pending = AccessReply { state: AskState::Pending, grant: None, word: None };
    Ok(match inbox::put(w, from, request.request, &request.ask, network)? {
        Placed::Same(_) | Placed::New(_) => LetterResult::access(pending),
        Placed::Full => LetterResult { outcome: Outcome::Later, ..LetterResult::refused(Reason::Full) },
    })
}

/// What whoever asked is told of a task; with the grant, where one was signed and still holds.
fn standing(w: &Writing<'_, '_>, task: &StoredAsk) -> Result<AccessReply, Error> {
    let mut grant: Option<Value> = None;
    if let Some((id, _)) = task.grant {
        let key = GrantKey::named(id);
        if !REVOKED.contains(w.tx, &key)? {
            let stored = GRANTS.get(w.tx, &key)?;
            grant = stored.map(|stored| json::parse(stored.document.as_bytes())).transpose()?;
        }
    }
    Ok(AccessReply { state: task.stands(w.now)?, grant, word: task.word.clone() })
}

/// Whoever asked takes it back. What is not known here, or over, stays so.
pub(crate) fn withdrawn(
    w: &mut Writing<'_, '_>,
    from: &Did,
    withdrawal: AccessWithdrawal,
) -> Result<LetterResult, Error> {
    let Some((id, task)) = inbox::find(w.tx, from, withdrawal.request)? else {
        return Ok(LetterResult::taken());
    };
    if task.stands(w.now)? == AskState::Pending {
        // Asked for under another name, too, it waits on.
        if task.names.len() > 1 {
            inbox::drop_name(w, id, task, withdrawal.request)?;
        } else {
            inbox::end(w, id, task, AskState::Withdrawn)?;
        }
    }
    Ok(LetterResult::taken())
}

impl Asks<'_> {
    /// What others ask for, newest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn list(self, owner: &Owner<impl Permits<Admin>>) -> Result<AskList, Error> {
        let mut asks = Vec::new();
        for row in ASKS.scan(&self.0.store) {
            let (id, task) = row?;
            asks.push(self.info(owner, id, &task)?);
        }
        asks.reverse();
        Ok(AskList { asks })
    }

    /// A task.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn show(self, owner: &Owner<impl Permits<Admin>>, id: AskId) -> Result<AskInfo, Error> {
        let task = ASKS.get(&self.0.store, &id)?.ok_or(Error::NotFound)?;
        self.info(owner, id, &task)
    }

    fn info(self, _: &Owner<impl Permits<Admin>>, id: AskId, task: &StoredAsk) -> Result<AskInfo, Error> {
        let ask = task.ask()?;
        let (now, config) = (self.0.clock.now(), &self.0.config);
        let longest = now.plus(Duration::from_secs(u64::from(config.max_grant_days) * 86_400));
        let proposal = GrantDraft {
            grantee: task.from.clone(),
            purpose: ask.purpose.as_str().to_owned(),
            purpose_codes: ask.purpose_codes.clone(),
            scope: None,
            filter: ask.filter.clone(),
            max_items: ask.max_items.min(config.max_grant_items),
            not_before: None,
            expires_at: ask.expires_at.min(longest),
            redaction_profile: ask.redaction_profile.clone().unwrap_or_else(|| PROFILE.to_owned()),
            trust_level: ask.trust_level.unwrap_or(TrustLevel::STRANGER),
            lawful_basis: LawfulBasis::default(),
            operations: ask.operations.clone(),
            embedding_access: false,
            delegable: ask.delegable,
            budget: ask.budget,
            bearer: false,
        };
        Ok(AskInfo {
            task: id,
            requests: task.names.clone(),
            from: task.from.clone(),
            known: self.0.heard.knows(&task.from),
            ask,
            asked_at: task.asked_at,
            until: task.until()?,
            state: task.stands(now)?,
            over_at: task.over_at,
            word: task.word.clone(),
            grant: task.grant.map(|(id, _)| id),
            proposal,
        })
    }

    /// Says yes: signs a grant within what was asked, and puts its delivery into the outbox, all at once.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::WiderThanAsked`], [`Error::Limit`]; [`Conflict::AskOver`], [`Conflict::OutboxFull`].
    pub async fn approve(
        self,
        owner: &Owner<impl Permits<Admin>>,
        id: AskId,
        draft: GrantDraft,
    ) -> Result<GrantInfo, Error> {
        let signed = until_it_holds(|| self.approve_once(owner, id, draft.clone())).await?;
        metrics::counter!("oap_grants_issued_total").increment(1);
        Grants(self.0).grant_info(owner, signed.grant().grant_id)
    }

    async fn approve_once(
        self,
        owner: &Owner<impl Permits<Admin>>,
        id: AskId,
        draft: GrantDraft,
    ) -> Result<SignedGrant, Error> {
        let task = ASKS.get(&self.0.store, &id)?.ok_or(Error::NotFound)?;
        // What is beyond the ask is said before what is beyond the gateway's own bounds.
        if task.stands(self.0.clock.now())? != AskState::Pending {
            return Err(Error::Conflict(Conflict::AskOver));
        }
        let (obligations, grant) = Grants(self.0).grant_of(draft)?;
        within(&task, &grant)?;
        let approved = move |w: &mut Writing<'_, '_>| {
            let mut task = ASKS.get(w.tx, &id)?.ok_or(Error::NotFound)?;
            if task.stands(w.now)? != AskState::Pending {
                return Err(Error::Conflict(Conflict::AskOver));
            }
            within(&task, &grant)?;
            let signed = w.issue(obligations, grant)?;
            task.grant = Some((signed.grant().grant_id, signed.hash()));
            let (from, names) = (task.from.clone(), task.names.clone());
            inbox::end(w, id, task, AskState::Approved)?;
            if may_have_a_gateway(&from) {
                for request in names {
                    let grant = signed.document().clone();
                    let delivery = GrantDelivery { request: Some(request), grant };
                    outbox::put(w, &from, &Content::GrantDelivery(delivery))?;
                }
            }
            Ok(signed)
        };
        self.0.commit_as(owner, approved).await
    }

    /// Says no, with a word or without.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Conflict::AskOver`], [`Conflict::OutboxFull`].
    pub async fn decline(
        self,
        owner: &Owner<impl Permits<Admin>>,
        id: AskId,
        word: Option<Plain>,
    ) -> Result<AskInfo, Error> {
        let declined = move |w: &mut Writing<'_, '_>| {
            let mut task = ASKS.get(w.tx, &id)?.ok_or(Error::NotFound)?;
            if task.stands(w.now)? != AskState::Pending {
                return Err(Error::Conflict(Conflict::AskOver));
            }
            task.word.clone_from(&word);
            let (from, names) = (task.from.clone(), task.names.clone());
            inbox::end(w, id, task, AskState::Declined)?;
            if may_have_a_gateway(&from) {
                for request in names {
                    let status = AccessStatus { request, state: AskState::Declined, word: word.clone() };
                    outbox::put(w, &from, &Content::AccessStatus(status))?;
                }
            }
            Ok(())
        };
        self.0.commit_as(owner, declined).await?;
        self.show(owner, id)
    }

    /// Forgets the tasks that were over long enough; how many.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) async fn sweep(self) -> Result<usize, Error> {
        let tasks: Vec<AskId> =
            ASKS.keys(&self.0.store, oap_store::Range::all()).collect::<Result<_, _>>()?;
        let mut swept = 0;
        for batch in tasks.chunks(BATCH) {
            let batch = batch.to_vec();
            swept += self.0.commit_own(move |w| inbox::sweep(w, &batch)).await?;
        }
        Ok(swept)
    }
}

/// That a grant gives nothing that was not asked for.
fn within(task: &StoredAsk, grant: &Grant) -> Result<(), Error> {
    let within = task.ask()?.covers(&task.from, grant);
    within.map_err(|wider| Error::WiderThanAsked(wider.0))
}
