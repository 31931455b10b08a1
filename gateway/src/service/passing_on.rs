//! What this owner passes on of a grant of somebody's (protocol section 5.2): a narrower grant to a third party, signed here. The granter's
//! gateway takes it in when it is first used there.

use super::wallet::signed;
use crate::api::access::DelegatedInfo;
use crate::api::grants::GrantDraft;
use crate::error::{Conflict, Error, MemberError};
use crate::service::Wallet;
use crate::service::grants::facts;
use crate::state::commits::{Writing, chain_of};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::WALLET;
use crate::state::wallet;
use oap_grants::attenuate::{self, Wider};
use oap_grants::limits::check_sound;
use oap_grants::verify::DelegationError;
use oap_grants::{Grant, SignedGrant};
use oap_identity::{GrantId, Hash, Timestamp};
use oap_memory::receipt::Action;

impl Wallet<'_> {
    /// Signs a grant that is made from one of the wallet, with a receipt. What the draft leaves out is not added: it has all that the
    /// grant is to say.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Member`] for this principal itself; [`Conflict::GrantRevoked`], [`Conflict::LockedDown`]; [`Error::Delegation`] where it is not narrower, naming the member.
    pub async fn delegate(
        self,
        owner: &Owner<impl Permits<Admin>>,
        from: Hash,
        draft: GrantDraft,
    ) -> Result<DelegatedInfo, Error> {
        draft.grantee.check_method().map_err(|e| Error::Member("grantee", MemberError::Method(e)))?;
        if draft.grantee == self.0.principal {
            return Err(Error::Member("grantee", MemberError::OwnGrantee));
        }
        let passed_on = move |w: &mut Writing<'_, '_>| {
            w.gives_access()?;
            let received = WALLET.get(w.tx, &from)?.ok_or(Error::NotFound)?;
            if received.revoked_at.is_some() {
                return Err(Error::Conflict(Conflict::GrantRevoked));
            }
            let (document, parent) = received.document()?;
            let mut above = wallet::above(w.tx, &from)?;
            above.push(document);
            let gateway = w.gateway.clone();
            let id = GrantId::new(w.now, &*gateway.random);
            let child = child_of(&parent, from, draft, id, w.now)?;
            let child = SignedGrant::sign(child, w.keys.current())?;
            let mut receipt = gateway.draft(Action::Delegate, gateway.principal.as_str());
            receipt.rules = vec!["principal".to_owned(), "grant.attenuated".to_owned()];
            let hashes = above.iter().map(Hash::of_canonical).collect::<Result<Vec<_>, _>>()?;
            receipt.more = facts(child.grant(), child.hash(), &hashes);
            w.receipt(&chain_of(&gateway.config.default_scope), receipt)?;
            Ok((child, above))
        };
        let (child, above) = self.0.commit_as(owner, passed_on).await?;
        Ok(DelegatedInfo {
            hash: child.hash(),
            grant: signed(child.document().clone())?,
            above: above.into_iter().map(signed).collect::<Result<_, _>>()?,
        })
    }
}

/// The grant of a draft, made from another one and within it.
///
/// # Errors
/// [`DelegationError`].
fn child_of(
    parent: &Grant,
    hash: Hash,
    draft: GrantDraft,
    id: GrantId,
    now: Timestamp,
) -> Result<Grant, DelegationError> {
    if draft.scope.is_some_and(|scope| scope != parent.granter.scope) {
        return Err(Wider("scope").into());
    }
    let child = Grant {
        version: 1,
        grant_id: id,
        granter: parent.granter.clone(),
        grantee: draft.grantee,
        purpose: draft.purpose,
        purpose_codes: draft.purpose_codes,
        filter: draft.filter,
        max_items: draft.max_items,
        issued_at: now,
        not_before: draft.not_before,
        expires_at: draft.expires_at,
        revocable: true,
        redaction_profile: draft.redaction_profile,
        trust_level: draft.trust_level,
        lawful_basis: draft.lawful_basis,
        operations: draft.operations,
        embedding_access: draft.embedding_access,
        delegable: draft.delegable,
        parent: Some(hash),
        budget: draft.budget,
        bearer: draft.bearer,
        status: None,
    };
    attenuate::check(parent, &child)?;
    check_sound(&child)?;
    Ok(child)
}
