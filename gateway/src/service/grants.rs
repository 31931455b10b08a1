//! Grants: previewed, issued, exchanged for tokens, taken back (protocol section 5).

use crate::error::Error;
use crate::gateway::Gateway;
use crate::ledger::{Stored, chain_of};
use crate::proofs::REMEMBERED;
use crate::service::gates::Decided;
use crate::shelf::StoredGrant;
use crate::tables::{GRANTS, PROOFS, REVOKED, encode};
use crate::views::Seen;
use oap_grants::exchange::{ExchangeRequest, ExchangeResponse, MAX_CHAIN, ProofError, UnverifiedProof};
use oap_grants::grant::{Budget, Delegable, GrantError, StatusIndex, StatusRef, UnverifiedGrant};
use oap_grants::verify::{Refused, delegate, live};
use oap_grants::{
    Grant, GrantBook, GrantRecord, GrantState, LawfulBasis, Operation, Replay, SignedGrant, status, token,
};
use oap_identity::{Did, GrantId, Hash, ScopeId, ScopedDid, Timestamp};
use oap_manifest::path;
use oap_memory::item::Kind;
use oap_memory::receipt::{Outcome, ReceiptType};
use oap_memory::view::Disclosed;
use oap_memory::{Filter, TrustLevel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A grant as its owner asks for it; the gateway adds id, granter, times and status.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantDraft {
    /// Who may see it.
    pub grantee: Did,
    /// What for, in words.
    pub purpose: String,
    /// What for, in codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purpose_codes: Vec<String>,
    /// The scope; the default one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeId>,
    /// What is selected.
    #[serde(default)]
    pub filter: Filter,
    /// Most distinct items ever disclosed.
    pub max_items: u32,
    /// From when on it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// The projection profile.
    pub redaction_profile: String,
    /// The trust level; 0 if absent.
    #[serde(default = "stranger")]
    pub trust_level: TrustLevel,
    /// The ground.
    #[serde(default)]
    pub lawful_basis: LawfulBasis,
    /// What the grantee may do; queries alone if absent.
    #[serde(default = "query_only")]
    pub operations: BTreeSet<Operation>,
    /// Whether embeddings may be seen.
    #[serde(default)]
    pub embedding_access: bool,
    /// Whether and how far it may be passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegable: Option<Delegable>,
    /// How much may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether a plain bearer token is allowed.
    #[serde(default)]
    pub bearer: bool,
}

fn stranger() -> TrustLevel {
    TrustLevel::STRANGER
}

fn query_only() -> BTreeSet<Operation> {
    BTreeSet::from([Operation::Query])
}

/// What a grant would show.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Preview {
    /// How many items it selects.
    pub selected: usize,
    /// How many distinct ones it can ever disclose.
    pub max_items: u32,
    /// How many of each kind, by the owner's reading.
    pub kinds: BTreeMap<String, usize>,
    /// The first of them, as the grantee would see them.
    pub items: Vec<PreviewItem>,
    /// How often each member is hidden over all selected items.
    pub hidden: BTreeMap<String, usize>,
    /// How many items the filter selects that the gates withhold.
    pub withheld: u32,
    /// How many items each rule of the gates fired for.
    pub rules: BTreeMap<String, u32>,
    /// What the owner should look at twice.
    pub warnings: Vec<String>,
}

/// One item of a preview.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PreviewItem {
    /// What the grantee would see, without proof.
    pub visible: Value,
    /// The places that they would not see.
    pub hidden: Vec<String>,
}

/// A grant as its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GrantInfo {
    /// The document.
    pub grant: Value,
    /// Its hash.
    pub hash: Hash,
    /// `draft`, `active`, `expired` or `revoked`.
    pub state: String,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// How many distinct items were disclosed.
    pub disclosed: usize,
    /// Whether it was delegated by a grantee.
    pub delegated: bool,
}

/// Items shown whole in a preview.
const PREVIEWED: usize = 100;

impl Gateway {
    /// Signs and stores a grant.
    ///
    /// # Errors
    /// [`Error::Limit`], naming the member.
    pub async fn issue(self: &Arc<Self>, draft: GrantDraft) -> Result<SignedGrant, Error> {
        let grant = self.grant_of(draft, true)?;
        let gateway = self.clone();
        let stored = self
            .commit(move |w| {
                let signed = SignedGrant::sign(grant, w.keys.current())?;
                let id = signed.grant().grant_id;
                let chain = chain_of(&signed.grant().granter.scope);
                let mut receipt =
                    gateway.draft(ReceiptType::Consent, "memory.grant", gateway.principal.as_str());
                receipt.rules = vec!["principal".to_owned()];
                receipt.more = facts(signed.grant(), signed.hash(), &[]);
                receipt.output_hash = Some(signed.hash());
                w.receipt(&chain, receipt)?;
                let stored = StoredGrant::new(&signed, *w.keys.current().public().as_bytes(), false, w.now);
                w.tx.put(GRANTS, &id.to_bytes(), &encode(&stored)?)?;
                let shelved = Arc::new(signed.clone());
                w.tx.on_commit(move || gateway.shelf.put(shelved, false));
                Ok(signed)
            })
            .await?;
        metrics::counter!("oap_grants_issued_total").increment(1);
        Ok(stored.into_inner())
    }

    /// What a grant would show, were it issued now.
    ///
    /// # Errors
    /// [`Error::Limit`], naming the member.
    pub async fn preview(self: &Arc<Self>, draft: GrantDraft) -> Result<Preview, Error> {
        let grant = self.grant_of(draft, false)?;
        let gateway = self.clone();
        let preview = tokio::task::spawn_blocking(move || gateway.preview_of(&grant));
        preview.await.map_err(|_| Error::Corrupt("building a preview failed".into()))?
    }

    fn preview_of(&self, grant: &Grant) -> Result<Preview, Error> {
        let disclosed = Disclosed::new(grant.max_items as usize, []);
        let own_agent = grant.grantee == self.principal;
        let seen = self.slice(grant, own_agent, grant.embedding_access, &disclosed)?;
        let view = &seen.view;
        let mut preview = Preview {
            selected: view.items().len(),
            max_items: grant.max_items,
            kinds: BTreeMap::new(),
            items: Vec::new(),
            hidden: BTreeMap::new(),
            withheld: seen.report.withheld,
            rules: seen.report.rules.iter().map(|(rule, n)| (rule.as_str().to_owned(), *n)).collect(),
            warnings: warnings(grant, &seen, own_agent),
        };
        for item in view.items().iter().rev() {
            let Some(head) = self.catalog.get(item.id()) else { continue };
            *preview.kinds.entry(head.kind.as_str().to_owned()).or_default() += 1;
            let visible = item.visible()?;
            let hidden = hidden_places(&self.owner_item(&head)?, &visible);
            for place in &hidden {
                *preview.hidden.entry(place.clone()).or_default() += 1;
            }
            if preview.items.len() < PREVIEWED {
                preview.items.push(PreviewItem { visible, hidden });
            }
        }
        Ok(preview)
    }

    fn grant_of(&self, draft: GrantDraft, with_status: bool) -> Result<Grant, Error> {
        let now = self.clock.now();
        let scope = draft.scope.unwrap_or_else(|| self.config.default_scope.clone());
        let status = with_status.then(|| self.free_status()).transpose()?;
        let grant = Grant {
            version: 1,
            grant_id: GrantId::new(now, &*self.random),
            granter: ScopedDid { principal: self.principal.clone(), scope },
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
            parent: None,
            budget: draft.budget,
            bearer: draft.bearer,
            status,
        };
        let profile = self.profile(&grant.redaction_profile);
        self.config.limits().check(&grant, &self.principal, profile, now)?;
        self.check_scopes(&grant.filter, &grant.granter.scope, now)?;
        Ok(grant)
    }

    /// A place in the status list that no grant has.
    fn free_status(&self) -> Result<StatusRef, Error> {
        let taken: BTreeSet<u32> = self.shelf.all().iter().filter_map(|(r, _)| place(r)).collect();
        let idx = status::choose(|place| taken.contains(&place), &*self.random);
        let idx = idx.ok_or(Error::Conflict("the status list is full"))?;
        Ok(StatusRef { status_list: StatusIndex { idx, uri: self.url(path::STATUS) } })
    }

    /// Takes a grant back. It takes effect before the next answer leaves.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when it was taken back before.
    pub async fn revoke(self: &Arc<Self>, id: GrantId) -> Result<GrantInfo, Error> {
        let record = self.shelf.by_id(id).ok_or(Error::NotFound)?;
        let gateway = self.clone();
        self.commit(move |w| {
            if w.tx.get(REVOKED, &id.to_bytes())?.is_some() {
                return Err(Error::Conflict("the grant was revoked before"));
            }
            let grant = record.grant.grant();
            let mut receipt =
                gateway.draft(ReceiptType::Consent, "memory.revoke", gateway.principal.as_str());
            receipt.rules = vec!["principal".to_owned()];
            receipt.more = facts(grant, record.grant.hash(), &[]);
            w.receipt(&chain_of(&grant.granter.scope), receipt)?;
            w.tx.put(REVOKED, &id.to_bytes(), &encode(&w.now)?)?;
            let now = w.now;
            w.tx.on_commit(move || gateway.shelf.revoke(id, now));
            Ok(())
        })
        .await?;
        metrics::counter!("oap_grants_revoked_total").increment(1);
        self.grant_info(id)
    }

    /// A grant as its owner sees it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn grant_info(&self, id: GrantId) -> Result<GrantInfo, Error> {
        let all = self.shelf.all();
        let found = all.iter().find(|(record, _)| record.grant.grant().grant_id == id);
        let (record, delegated) = found.ok_or(Error::NotFound)?;
        Ok(self.info(record, *delegated))
    }

    /// Every grant, newest first.
    #[must_use]
    pub fn grant_list(&self) -> Vec<GrantInfo> {
        self.shelf.all().iter().rev().map(|(record, delegated)| self.info(record, *delegated)).collect()
    }

    fn info(&self, record: &GrantRecord, delegated: bool) -> GrantInfo {
        GrantInfo {
            grant: record.grant.document().clone(),
            hash: record.grant.hash(),
            state: self.state(record).as_str().to_owned(),
            revoked_at: record.revoked_at,
            disclosed: self.shelf.disclosed(record.grant.grant().grant_id).count(),
            delegated,
        }
    }

    /// Where a grant stands, with everything that it was made from.
    fn state(&self, record: &GrantRecord) -> GrantState {
        match live(record, &self.shelf, self.keys().document(), self.clock.now()) {
            Ok(_) => GrantState::Active,
            Err(Refused::Inactive(state) | Refused::Ancestor(state)) => state,
            Err(_) => GrantState::Revoked,
        }
    }

    /// The state of a grant, for its grantee alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown grant and for a stranger: the same answer.
    pub async fn grant_state(self: &Arc<Self>, id: GrantId, proof: &str) -> Result<GrantState, Error> {
        let record = self.shelf.by_id(id).ok_or(Error::NotFound)?;
        let address = format!("{}/{id}", self.url(path::GRANT));
        let proof = UnverifiedProof::parse(proof).map_err(|_| Error::NotFound)?;
        let grantee = self.document(&record.grant.grant().grantee).await.map_err(|_| Error::NotFound)?;
        let now = self.clock.now();
        let proof =
            proof.verify(&grantee, &address, record.grant.hash(), now).map_err(|_| Error::NotFound)?;
        self.use_proof(proof.replay_key).await.map_err(|_| Error::NotFound)?;
        Ok(self.state(&record))
    }

    /// Remembers a proof, in memory and in the store.
    pub(crate) async fn use_proof(self: &Arc<Self>, key: [u8; 32]) -> Result<Stored<()>, Error> {
        if !self.proofs.first_use(key, self.clock.now()) {
            return Err(ProofError::Replayed.into());
        }
        self.commit(move |w| Ok(w.tx.put(PROOFS, &key, &encode(&w.now.plus(REMEMBERED))?)?)).await
    }

    /// Exchanges a grant for a token (protocol section 5.1), accepting delegated grants on the way.
    ///
    /// # Errors
    /// [`Error::Grant`], [`Error::Delegation`], [`Error::Proof`], [`Error::Resolve`]; [`Error::Refused`] with a
    /// receipt when the grant is not in force.
    pub async fn exchange(
        self: &Arc<Self>,
        request: ExchangeRequest,
        endpoint: &str,
    ) -> Result<ExchangeResponse, Error> {
        let record = self.accept(request.grant, request.chain).await?;
        let grant = record.grant.grant();
        let grantee = self.document(&grant.grantee).await?;
        let proof = UnverifiedProof::parse(&request.proof)?;
        let proof = proof.verify(&grantee, endpoint, record.grant.hash(), self.clock.now())?;
        self.use_proof(proof.replay_key).await?;
        let judged = live(&record, &self.shelf, self.keys().document(), self.clock.now());
        let ancestors = match judged {
            Ok(ancestors) => ancestors,
            Err(refused) => return Err(self.refuse(&record, "memory.exchange", refused).await?),
        };
        let jkt = (!grant.bearer).then_some(proof.jkt);
        let token_type = if grant.bearer { "Bearer" } else { "DPoP" };
        let mut receipt = self.draft(ReceiptType::Invocation, "memory.exchange", grant.grantee.as_str());
        receipt.rules = vec!["grant.active".to_owned(), "grantee.proof".to_owned()];
        receipt.more = facts(grant, record.grant.hash(), &ancestors);
        let gateway = self.clone();
        let audience = self.origin.clone();
        let stored = self
            .commit(move |w| {
                gateway.still_granted(w.tx, &record, &ancestors)?;
                let chain = chain_of(&record.grant.grant().granter.scope);
                let receipt = w.receipt(&chain, receipt)?;
                let key = w.keys.current();
                let (jwt, expires_in) =
                    token::mint(&record.grant, jkt, &audience, key, w.now, &*gateway.random)?;
                Ok(ExchangeResponse {
                    memory_grant_jwt: jwt,
                    expires_in,
                    token_type: token_type.to_owned(),
                    receipt_id: receipt.receipt_id.to_string(),
                })
            })
            .await?;
        metrics::counter!("oap_tokens_issued_total").increment(1);
        Ok(stored.into_inner())
    }

    /// Finds a presented grant, or accepts it when it was delegated properly.
    async fn accept(self: &Arc<Self>, grant: Value, chain: Vec<Value>) -> Result<GrantRecord, Error> {
        if chain.len() >= MAX_CHAIN {
            return Err(Error::Member("chain", format!("at most {} grants", MAX_CHAIN - 1)));
        }
        let hash = Hash::of_canonical(&grant)?;
        if let Some(record) = self.shelf.by_hash(hash) {
            return Ok(record);
        }
        let mut record = None;
        for document in chain.into_iter().chain([grant]) {
            record = Some(self.accept_one(document).await?);
        }
        record.ok_or(Error::NotFound)
    }

    async fn accept_one(self: &Arc<Self>, document: Value) -> Result<GrantRecord, Error> {
        if let Some(record) = self.shelf.by_hash(Hash::of_canonical(&document)?) {
            return Ok(record);
        }
        let child = UnverifiedGrant::parse(document)?;
        // A grant without parent that is not on the shelf was never issued here, whatever its signature says.
        let unknown = || GrantError::Malformed("the grant is not known here".to_owned());
        let parent_hash = child.unverified().parent.ok_or_else(unknown)?;
        let parent = self.shelf.by_hash(parent_hash).ok_or_else(unknown)?;
        if self.shelf.by_id(child.unverified().grant_id).is_some() {
            return Err(Error::Conflict("another grant has this grant_id"));
        }
        let delegator = self.document(&parent.grant.grant().grantee).await?;
        let kid = child.kid()?;
        let now = self.clock.now();
        let child = delegate(&parent.grant, child, &delegator, &self.config.limits(), now)?;
        let signer = delegator.key(&kid).map(|key| *key.public().as_bytes()).ok_or(Error::NotFound)?;
        let ancestors = live(&parent, &self.shelf, self.keys().document(), now);
        if let Err(refused) = ancestors {
            return Err(self.refuse(&parent, "memory.delegate", refused).await?);
        }
        let gateway = self.clone();
        let stored = self
            .commit(move |w| {
                let id = child.grant().grant_id;
                let mut receipt =
                    gateway.draft(ReceiptType::Consent, "memory.delegate", delegator.id().as_str());
                receipt.rules = vec!["grant.delegable".to_owned(), "grant.attenuated".to_owned()];
                receipt.more = facts(child.grant(), child.hash(), &[parent_hash]);
                w.receipt(&chain_of(&child.grant().granter.scope), receipt)?;
                let stored = StoredGrant::new(&child, signer, true, w.now);
                w.tx.put(GRANTS, &id.to_bytes(), &encode(&stored)?)?;
                let child = Arc::new(child);
                let shelved = child.clone();
                w.tx.on_commit(move || gateway.shelf.put(shelved, true));
                Ok(GrantRecord { grant: child, revoked_at: None })
            })
            .await?;
        Ok(stored.into_inner())
    }

    /// That no revocation came before in the order of commits.
    pub(crate) fn still_granted(
        &self,
        tx: &oap_store::Tx,
        record: &GrantRecord,
        ancestors: &[Hash],
    ) -> Result<(), Error> {
        let mut ids = vec![record.grant.grant().grant_id];
        ids.extend(
            ancestors.iter().filter_map(|hash| Some(self.shelf.by_hash(*hash)?.grant.grant().grant_id)),
        );
        for id in ids {
            if tx.get(REVOKED, &id.to_bytes())?.is_some() {
                return Err(Error::Conflict("the grant is being revoked"));
            }
        }
        Ok(())
    }

    /// Records that a valid credential was refused; the error to answer with.
    pub(crate) async fn refuse(
        self: &Arc<Self>,
        record: &GrantRecord,
        action: &'static str,
        refused: Refused,
    ) -> Result<Error, Error> {
        let grant = record.grant.grant();
        let mut receipt = self.draft(ReceiptType::Invocation, action, grant.grantee.as_str());
        receipt.outcome = Outcome::Block;
        receipt.rules = vec![rule(&refused).to_owned()];
        receipt.more = facts(grant, record.grant.hash(), &[]);
        let decision = receipt.decision;
        let chain = chain_of(&grant.granter.scope);
        let decided = Decided::refused(rule(&refused), grant, self.clock.now());
        self.commit(move |w| {
            w.decided(decision, &decided)?;
            w.receipt(&chain, receipt)
        })
        .await?;
        metrics::counter!("oap_refusals_total", "rule" => rule(&refused)).increment(1);
        Ok(Error::Refused(refused, decision))
    }

    /// The signed list of revoked grants.
    ///
    /// # Errors
    /// [`Error::Signed`]; none in practice.
    pub fn status_list(&self) -> Result<String, Error> {
        let all = self.shelf.all();
        let revoked = all
            .iter()
            .filter(|(record, _)| self.state(record) == GrantState::Revoked)
            .filter_map(|(record, _)| place(record));
        let address = self.url(path::STATUS);
        Ok(status::publish(revoked, &address, self.keys().current(), self.clock.now())?)
    }
}

fn place(record: &GrantRecord) -> Option<u32> {
    record.grant.grant().status.as_ref().map(|status| status.status_list.idx)
}

/// What receipts say of a grant (protocol section 12).
pub(crate) fn facts(grant: &Grant, hash: Hash, ancestors: &[Hash]) -> Map<String, Value> {
    let mut facts = Map::from_iter([
        ("consumed_grant_id".to_owned(), json!(grant.grant_id)),
        ("grant_hash".to_owned(), json!(hash)),
        ("scope_id".to_owned(), json!(grant.granter.scope)),
        ("trust_level".to_owned(), json!(grant.trust_level)),
        ("profile".to_owned(), json!(grant.redaction_profile)),
        ("lawful_basis".to_owned(), json!(grant.lawful_basis)),
    ]);
    if !ancestors.is_empty() {
        facts.insert("delegation".to_owned(), json!(ancestors));
    }
    facts
}

/// The rule that a refusal rests on, for receipts and metrics.
pub(crate) const fn rule(refused: &Refused) -> &'static str {
    match refused {
        Refused::UnknownGrant | Refused::Mismatch => "grant.unknown",
        Refused::Inactive(GrantState::Expired) => "grant.expired",
        Refused::Inactive(GrantState::Draft) => "grant.not_yet_valid",
        Refused::Inactive(_) => "grant.revoked",
        Refused::Ancestor(_) => "grant.ancestor",
        Refused::Bearer => "grant.bearer",
        Refused::Operation(_) => "grant.operation",
        Refused::Purpose => "grant.purpose",
        Refused::Embeddings => "grant.embedding_access",
        Refused::Budget => "grant.budget",
        Refused::Profile(_) => "grant.profile",
    }
}

fn warnings(grant: &Grant, seen: &Seen, own_agent: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(text.to_owned());
    if seen.view.items().is_empty() && seen.report.withheld == 0 {
        warn("No item is selected: check scope, kinds and labels.");
    }
    let asks_for = |outcome: Outcome| seen.report.rules.keys().any(|rule| rule.outcome() == outcome);
    if seen.report.withheld > 0 {
        warn("Some items are withheld by a gate: see the rules.");
    }
    if asks_for(Outcome::RequireConsent) || asks_for(Outcome::RequireAnonymization) {
        warn("A confidentiality context asks for your consent: `grant consent` once the grant is issued.");
    }
    let everything = grant.filter == Filter::default();
    if everything && !own_agent {
        warn("The filter selects everything in the scope.");
    }
    if grant.trust_level == TrustLevel::INNER_CIRCLE && !own_agent {
        warn("Trust level 4 shows whole items, as you see them yourself.");
    }
    if grant.bearer {
        warn("A bearer token can be used by whoever has it.");
    }
    if grant.filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&Kind::ConversationTurn))
        && grant.trust_level.get() >= 2
    {
        warn("Conversation turns are included: what others said to you is shown too.");
    }
    warnings
}

/// The places of an item that a view of it does not have. Elements of arrays count as one place.
fn hidden_places(whole: &Value, visible: &Value) -> Vec<String> {
    let mut hidden = BTreeSet::new();
    walk(whole, Some(visible), &mut String::new(), &mut hidden);
    hidden.into_iter().collect()
}

fn walk(whole: &Value, visible: Option<&Value>, path: &mut String, hidden: &mut BTreeSet<String>) {
    match (whole, visible) {
        (Value::Object(members), visible) => {
            for (name, value) in members {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                walk(value, visible.and_then(|v| v.get(name)), path, hidden);
                path.truncate(length);
            }
        }
        (Value::Array(elements), Some(Value::Array(shown))) if elements.len() == shown.len() => {
            let length = path.len();
            path.push_str("[]");
            for (element, shown) in elements.iter().zip(shown) {
                walk(element, Some(shown), path, hidden);
            }
            path.truncate(length);
        }
        (whole, Some(visible)) if whole == visible => {}
        _ => {
            hidden.insert(path.clone());
        }
    }
}
