//! How two gateways become devices of each other: the owner says so on both sides, compares what both show, and says yes on both. What a
//! letter alone does is to bring the two values together; nothing is given for it. What one that is a device gave is renewed by a letter.

use crate::api::devices::{ConfirmedDevice, DeviceInfo};
use crate::api::grants::GrantDraft;
use crate::error::{Conflict, Error, MemberError};
use crate::service::notices::{self, may_have_a_gateway};
use crate::service::{Devices, Grants};
use crate::state::commits::{Writing, chain_of, until_it_holds};
use crate::state::devices::{StoredDevice, active, all_given, is_one};
use crate::state::outbox;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::DEVICES;
use crate::state::tips;
use oap_federation::letter::LetterError;
use oap_federation::pairing::{Pairing, commitment};
use oap_federation::reply::{LetterResult, Reason};
use oap_federation::{Content, Outcome};
use oap_grants::grant::LawfulBasis;
use oap_grants::{Grant, Operation, SignedGrant};
use oap_identity::{Did, Hash, json, random};
use oap_memory::receipt::Action;
use oap_memory::{Filter, Sensitivity, TrustLevel};
use serde_json::json;
use std::collections::BTreeSet;

/// The profile under which devices show each other items: everything.
const PROFILE: &str = "oap.profile.projection.full.v1";
/// The purpose of their grants.
const PURPOSE: &str = "Devices of one owner";

/// A step of somebody's who wants this gateway for a device. Nothing comes of it unless the owner wants them, too: then it is as if the
/// letter came later.
pub(crate) fn heard(
    w: &mut Writing<'_, '_>,
    from: &Did,
    pairing: &Pairing,
    grant: Option<&SignedGrant>,
) -> Result<LetterResult, Error> {
    if matches!(pairing, Pairing::Grant { .. })
        && let Some(device) = active(w.tx, from)?
    {
        return renewed(w, from, device, grant);
    }
    let later = || Ok(LetterResult { outcome: Outcome::Later, ..LetterResult::refused(Reason::NotAsked) });
    let Some(mut device) = DEVICES.get(w.tx, from)?.filter(|device| device.is_pairing(w.now)) else {
        return if matches!(pairing, Pairing::Grant { .. }) {
            Ok(LetterResult::refused(Reason::NotAsked))
        } else {
            later()
        };
    };
    let here = w.gateway.principal.clone();
    match pairing {
        // Once somebody is bound, another value would be one that was chosen.
        Pairing::Offer { commitment } => match device.bound {
            Some(bound) if bound == *commitment => Ok(LetterResult::taken()),
            Some(_) => Ok(LetterResult::refused(Reason::Over)),
            None => {
                device.bound = Some(*commitment);
                reveal(w, from, &device)?;
                DEVICES.put(w.tx, from, &device)?;
                Ok(LetterResult::taken())
            }
        },
        Pairing::Reveal { value } => {
            let shown = commitment(from, &here, value);
            match device.bound {
                Some(bound) if bound != shown => return Ok(LetterResult::refused(Reason::Over)),
                Some(_) => {}
                // Its value is fixed by now, and this side's was not told.
                None => {
                    device.bound = Some(shown);
                    reveal(w, from, &device)?;
                }
            }
            device.theirs = Some(*value);
            DEVICES.put(w.tx, from, &device)?;
            Ok(LetterResult::taken())
        }
        Pairing::Grant { .. } => {
            if device.theirs.is_none() {
                return Ok(LetterResult::refused(Reason::NotAsked));
            }
            let Some(grant) = grant.filter(|grant| is_full(grant.grant(), &here)) else {
                return Ok(LetterResult::refused(Reason::GrantNotSound));
            };
            if device.received.is_none() {
                device.received = Some((json::canonical_text(grant.document())?, grant.hash()));
                DEVICES.put(w.tx, from, &device)?;
            }
            Ok(LetterResult::taken())
        }
    }
}

/// Tells the other side this one's value: it is bound to its own.
fn reveal(w: &mut Writing<'_, '_>, to: &Did, device: &StoredDevice) -> Result<(), Error> {
    let content = Content::DevicePairing(Pairing::Reveal { value: device.value });
    outbox::put(w, to, &content).map(drop)
}

/// A device renews what it gave: from now on it is asked under that.
fn renewed(
    w: &mut Writing<'_, '_>,
    from: &Did,
    mut device: StoredDevice,
    grant: Option<&SignedGrant>,
) -> Result<LetterResult, Error> {
    let Some((_, known, before)) = device.grant()? else {
        return Ok(LetterResult::refused(Reason::NotAsked));
    };
    let Some(grant) = grant.filter(|grant| is_full(grant.grant(), &w.gateway.principal)) else {
        return Ok(LetterResult::refused(Reason::GrantNotSound));
    };
    if grant.hash() == before {
        return Ok(LetterResult::taken());
    }
    // One of before, which comes late.
    if grant.grant().issued_at <= known.issued_at {
        return Ok(LetterResult::refused(Reason::Over));
    }
    device.received = Some((json::canonical_text(grant.document())?, grant.hash()));
    if device.full {
        // What the former one left out has room now.
        (device.cursor, device.full) = (None, false);
    }
    DEVICES.put(w.tx, from, &device)?;
    let gateway = w.gateway.clone();
    w.tx.on_commit(move || gateway.remotes.forget(&before));
    Ok(LetterResult::taken())
}

/// Whether a grant, which its granter's gateway handed over, lets this one see everything.
fn is_full(grant: &Grant, here: &Did) -> bool {
    grant.grantee == *here
        && grant.redaction_profile == PROFILE
        && grant.trust_level == TrustLevel::INNER_CIRCLE
        && grant.operations.contains(&Operation::Query)
        && grant.purpose_codes.is_empty()
}

/// Whether a letter of a pairing has nothing to tell any more: that ended, or another began.
pub(crate) fn is_stale(device: Option<&StoredDevice>, here: &Did, to: &Did, pairing: &Pairing) -> bool {
    let Some(device) = device.filter(|device| device.removed_at.is_none()) else { return true };
    match pairing {
        Pairing::Offer { commitment } => device.commitment(here, to) != *commitment,
        Pairing::Reveal { value } => device.value != *value,
        Pairing::Grant { grant } => Hash::of_canonical(grant).ok() != device.given.map(|(_, hash)| hash),
    }
}

/// The granter of these grants took them back. Where one is that of a device, that is none any more, and what was given to it is taken back
/// as well; whether one is.
pub(crate) fn revoked(w: &mut Writing<'_, '_>, from: &Did, grants: &[Hash]) -> Result<bool, Error> {
    let Some(device) = DEVICES.get(w.tx, from)?.filter(|device| device.removed_at.is_none()) else {
        return Ok(false);
    };
    if !device.received.as_ref().is_some_and(|(_, hash)| grants.contains(hash)) {
        return Ok(false);
    }
    end(w, from, device, &["device.removed_there"])?;
    Ok(true)
}

/// Ends a device: what was given to it is revoked, and it is told.
fn end(w: &mut Writing<'_, '_>, did: &Did, device: StoredDevice, rules: &[&str]) -> Result<(), Error> {
    let mut given = Vec::new();
    for (_, hash) in all_given(w.tx, did, &device)? {
        // One that is not durable yet is in no book: it is found once it is.
        given.push(w.gateway.grant_book.entry(hash).ok_or(Error::Overtaken)?);
    }
    let mut revoked = Vec::new();
    for entry in &given {
        revoked.extend(w.revoke_grant(entry, rules)?.then_some(entry));
    }
    notices::tell_revoked(w, revoked)?;
    w.end_device(did, device, rules)
}

/// A grant was revoked by itself. Where it was given to a device, that is none any more, and what else was given to it is revoked as well.
pub(crate) fn given_revoked(w: &mut Writing<'_, '_>, grantee: &Did, grant: Hash) -> Result<(), Error> {
    let device = DEVICES.get(w.tx, grantee)?.filter(|device| device.removed_at.is_none());
    let Some(device) = device else { return Ok(()) };
    if all_given(w.tx, grantee, &device)?.iter().any(|(_, given)| *given == grant) {
        end(w, grantee, device, &["principal"])?;
    }
    Ok(())
}

impl Devices<'_> {
    /// Begins to make a gateway a device of this owner's. It hears of it, and nothing comes of that before its owner says the same there.
    ///
    /// # Errors
    /// [`Error::Member`] for a DID that has no gateway; [`Conflict::DeviceKnown`], [`Conflict::ManyDevices`], [`Conflict::OutboxFull`].
    pub async fn add(self, owner: &Owner<impl Permits<Admin>>, did: Did) -> Result<DeviceInfo, Error> {
        did.check_method().map_err(|e| Error::Member("did", MemberError::Method(e)))?;
        if did == self.0.principal {
            return Err(LetterError::Own.into());
        }
        if !may_have_a_gateway(&did) {
            return Err(Error::Member("did", MemberError::NoGateway));
        }
        let other = did.clone();
        let added = move |w: &mut Writing<'_, '_>| {
            w.gives_access()?;
            let mut before = DEVICES.get(w.tx, &other)?.filter(|device| device.removed_at.is_none());
            // One whose grant alone was revoked, as by a restore, is none: it is ended here.
            if before.as_ref().is_some_and(|device| device.is_active())
                && !is_one(w.tx, &other)?
                && let Some(device) = before.take()
            {
                end(w, &other, device, &["principal"])?;
            }
            if before.as_ref().is_some_and(|device| device.confirmed_at.is_some()) {
                return Err(Error::Conflict(Conflict::DeviceKnown));
            }
            // Said again while nobody has answered: what was offered stands.
            if before.as_ref().is_some_and(|device| device.is_pairing(w.now)) {
                return Ok(());
            }
            if before.is_none() {
                w.room_for_device()?;
            }
            let value = Hash::from_bytes(random::bytes::<32>(&*w.gateway.random));
            let device = StoredDevice::new(w.now, value);
            let commitment = device.commitment(&w.gateway.principal, &other);
            outbox::put(w, &other, &Content::DevicePairing(Pairing::Offer { commitment }))?;
            Ok(DEVICES.put(w.tx, &other, &device)?)
        };
        until_it_holds(|| self.0.commit_as(owner, added.clone())).await?;
        self.show(owner, &did)
    }

    /// Says yes: the other side shows the same code. It gets a grant that shows it everything that is kept in step.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Conflict::DeviceOver`], [`Conflict::NoCode`], [`Conflict::DeviceKnown`]; [`Error::Member`] for another code.
    pub async fn confirm(
        self,
        owner: &Owner<impl Permits<Admin>>,
        yes: ConfirmedDevice,
    ) -> Result<DeviceInfo, Error> {
        let did = yes.did.clone();
        until_it_holds(|| self.confirm_once(owner, &yes)).await?;
        self.show(owner, &did)
    }

    async fn confirm_once(
        self,
        owner: &Owner<impl Permits<Admin>>,
        yes: &ConfirmedDevice,
    ) -> Result<(), Error> {
        let (obligations, grant) = Grants(self.0).grant_of(self.draft(yes.did.clone()))?;
        let ConfirmedDevice { did, code } = yes.clone();
        let confirmed = move |w: &mut Writing<'_, '_>| {
            let device = DEVICES.get(w.tx, &did)?.filter(|device| device.removed_at.is_none());
            let mut device = device.ok_or(Error::NotFound)?;
            if device.confirmed_at.is_some() {
                return Err(Error::Conflict(Conflict::DeviceKnown));
            }
            if !device.is_pairing(w.now) {
                return Err(Error::Conflict(Conflict::DeviceOver));
            }
            let shown = device.code(&w.gateway.principal, &did).ok_or(Error::Conflict(Conflict::NoCode))?;
            if shown != code {
                return Err(Error::Member("code", MemberError::OtherCode));
            }
            let signed = w.issue(obligations, grant)?;
            tips::hold(w, &did)?;
            w.begin_journal()?;
            let letter = Pairing::Grant { grant: signed.document().clone() };
            outbox::put(w, &did, &Content::DevicePairing(letter))?;
            let gateway = w.gateway.clone();
            let mut draft = gateway.draft(Action::AddDevice, gateway.principal.as_str());
            draft.rules = vec!["principal".to_owned()];
            draft.more.insert("device".to_owned(), json!(did));
            draft.more.insert("grant_hash".to_owned(), json!(signed.hash()));
            w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
            device.confirmed_at = Some(w.now);
            device.given = Some((signed.grant().grant_id, signed.hash()));
            Ok(DEVICES.put(w.tx, &did, &device)?)
        };
        self.0.commit_as(owner, confirmed).await
    }

    /// What a device is given.
    pub(super) fn draft(self, grantee: Did) -> GrantDraft {
        let (now, config) = (self.0.clock.now(), &self.0.config);
        GrantDraft {
            grantee,
            purpose: PURPOSE.to_owned(),
            purpose_codes: Vec::new(),
            scope: None,
            filter: Filter { sensitivities: Some(Sensitivity::ALL.to_vec()), ..Filter::default() },
            max_items: config.max_grant_items,
            not_before: None,
            expires_at: now.plus(self.longest()),
            redaction_profile: PROFILE.to_owned(),
            trust_level: TrustLevel::INNER_CIRCLE,
            lawful_basis: LawfulBasis::default(),
            operations: BTreeSet::from([Operation::Query]),
            embedding_access: false,
            delegable: None,
            budget: None,
            bearer: false,
        }
    }

    /// Ends a device. What was taken over from it stays.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove(self, owner: &Owner<impl Permits<Admin>>, did: Did) -> Result<(), Error> {
        until_it_holds(|| {
            let did = did.clone();
            self.0.commit_as(owner, move |w| {
                w.tx.use_reserve();
                let device = DEVICES.get(w.tx, &did)?.filter(|device| device.removed_at.is_none());
                end(w, &did, device.ok_or(Error::NotFound)?, &["principal"])
            })
        })
        .await
    }
}
