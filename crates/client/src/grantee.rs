//! The grantee's client: discovers a gateway, exchanges a grant, queries, and checks every answer before it is
//! believed.

pub mod witnessed;

use crate::error::{ClientError, read};
use crate::prover::{Claim, Prover};
use crate::wire::{ANSWER, Ask, BUNDLE, send};
use oap_exchange::Query;
use oap_exchange::query::NamedItems;
use oap_grants::evidence::VerifiedTerms;
use oap_grants::exchange::{ExchangeRequest, ExchangeResponse};
use oap_identity::json::{JsonError, canonical};
use oap_identity::outgoing::{Allowance, HttpClient};
use oap_identity::resolve::Resolver;
use oap_identity::signed::SignedError;
use oap_identity::{
    Clock, DetachedSignature, Did, DidDocument, Documents, Hash, ItemId, Kid, RequestId, Timestamp,
};
use oap_manifest::check::{self, Endpoints};
use oap_manifest::path;
use oap_memory::answer::{answer_bytes, output_hash};
use oap_memory::evidence::{self, AnswerError, EvidenceError, VerifiedAnswer};
use oap_memory::unchecked::Unchecked;
use serde::Deserialize;
use serde_json::Value;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most distinct DIDs that an answer may name as signers, its principal included: the houses that its items came through.
pub const MAX_SIGNERS: usize = 16;

/// A gateway whose documents were fetched and checked.
pub struct Remote {
    client: HttpClient,
    endpoints: Endpoints,
    document: Arc<DidDocument>,
    resolver: Arc<Resolver>,
    clock: Arc<dyn Clock>,
    /// What each of its answers may take, bundles aside.
    allowed: Allowance,
}

impl Remote {
    /// Fetches and checks what a gateway publishes: it must be that of the principal who gave the grant.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::OtherGateway`] for somebody else's.
    pub async fn discover(
        client: HttpClient,
        resolver: Arc<Resolver>,
        clock: Arc<dyn Clock>,
        origin: &str,
        granter: &Did,
    ) -> Result<Self, ClientError> {
        Self::discover_within(client, resolver, clock, origin, granter, ANSWER).await
    }

    /// The same, where each answer of the gateway may take no more than `allowed`, this one included.
    ///
    /// # Errors
    /// As [`Remote::discover`].
    pub async fn discover_within(
        client: HttpClient,
        resolver: Arc<Resolver>,
        clock: Arc<dyn Clock>,
        origin: &str,
        granter: &Did,
        allowed: Allowance,
    ) -> Result<Self, ClientError> {
        let origin = origin.trim_end_matches('/');
        let manifest = fetch(&client, &format!("{origin}{}", path::MEMORY_MANIFEST), allowed).await?;
        let principal: Did = manifest["principal"]
            .as_str()
            .and_then(|did| did.parse().ok())
            .ok_or_else(|| ClientError::Malformed(origin.to_owned(), "it names no principal".to_owned()))?;
        if principal != *granter {
            return Err(ClientError::OtherGateway(origin.to_owned(), granter.clone()));
        }
        let document = resolver.resolve(&principal).await?;
        let endpoints = check::memory(&manifest, &document, origin)
            .map_err(|e| ClientError::Manifest(origin.to_owned(), e))?;
        Ok(Self { client, endpoints, document, resolver, clock, allowed })
    }

    /// Whose gateway it is.
    #[must_use]
    pub const fn principal(&self) -> &Did {
        &self.endpoints.principal
    }

    /// The principal's DID document.
    #[must_use]
    pub fn document(&self) -> &DidDocument {
        &self.document
    }

    /// The documents of all who signed something in an answer: the principal's, and those of the houses that items came
    /// from. Nothing is fetched before the answer's own signature holds, and not for more than [`MAX_SIGNERS`].
    ///
    /// # Errors
    /// [`ClientError::Evidence`], [`ClientError::Mismatch`], [`ClientError::Resolve`].
    pub async fn documents(&self, given: &Given) -> Result<BTreeMap<Did, Arc<DidDocument>>, ClientError> {
        documents_of(&given.answer, &self.document, &self.resolver).await
    }

    /// Exchanges a grant for a token.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn exchange(
        &self,
        prover: &dyn Prover,
        grant: &Value,
        chain: &[Value],
    ) -> Result<Session<'_>, ClientError> {
        let hash = Hash::of_canonical(grant)
            .map_err(|e| ClientError::Malformed("the grant".to_owned(), e.to_string()))?;
        let proof = prover.prove(Claim::Control { endpoint: &self.endpoints.grant, grant: hash }).await?;
        let request = ExchangeRequest { grant: grant.clone(), chain: chain.to_vec(), proof };
        let body = serde_json::to_string(&request).map_err(|e| JsonError::Invalid(e.to_string()))?;
        let ask = Ask { method: "POST", url: &self.endpoints.grant, body: Some(body), ..Ask::default() };
        let (status, bytes) = send(&self.client, ask, self.allowed).await?;
        let answer = read(&self.endpoints.grant, status, &bytes)?;
        let token: ExchangeResponse = oap_identity::json::from_value(answer)?;
        // The gateway takes it; whether it is what its answers can be held against is the grantee's own question.
        let known = BTreeMap::from([(self.principal().clone(), self.document.clone())]);
        let terms = verified_terms(grant, chain, known, &self.resolver, self.clock.now()).await?;
        Ok(self.resume(Arc::new(Ticket { token, terms })))
    }

    /// Goes on with what an exchange with this gateway gave.
    #[must_use]
    pub const fn resume(&self, ticket: Arc<Ticket>) -> Session<'_> {
        Session { remote: self, ticket }
    }
}

/// The documents of all who signed something in an answer of a principal's, as [`Remote::documents`].
///
/// # Errors
/// As [`Remote::documents`].
pub async fn documents_of(
    answer: &Value,
    principal: &Arc<DidDocument>,
    resolver: &Resolver,
) -> Result<BTreeMap<Did, Arc<DidDocument>>, ClientError> {
    let named = named_signers(answer, principal)?;
    let mut known = BTreeMap::from([(principal.id().clone(), principal.clone())]);
    for did in named {
        if let Entry::Vacant(place) = known.entry(did) {
            let document = resolver.resolve(place.key()).await?;
            place.insert(document);
        }
    }
    Ok(known)
}

/// What answers under a grant are held against; with the grants that it was made from, first one first. The granter's document is known.
///
/// # Errors
/// [`ClientError::Terms`] where it does not hold; others where that cannot be found out.
pub async fn terms_of(
    grant: &Value,
    above: &[Value],
    granter: &Arc<DidDocument>,
    resolver: &Resolver,
    now: Timestamp,
) -> Result<VerifiedTerms, ClientError> {
    let known = BTreeMap::from([(granter.id().clone(), granter.clone())]);
    verified_terms(grant, above, known, resolver, now).await
}

/// A grant, verified with those that it was made from; the granter's document is known, the delegators' are resolved.
pub(crate) async fn verified_terms(
    grant: &Value,
    chain: &[Value],
    mut known: BTreeMap<Did, Arc<DidDocument>>,
    resolver: &Resolver,
    now: Timestamp,
) -> Result<VerifiedTerms, ClientError> {
    for above in chain {
        let delegator = above["grantee"].as_str().and_then(|did| did.parse().ok());
        if let Some(Entry::Vacant(place)) = delegator.map(|did| known.entry(did)) {
            let document = resolver.resolve(place.key()).await?;
            place.insert(document);
        }
    }
    Ok(oap_grants::evidence::grant(grant, chain, &known, now)?)
}

/// What an exchange gave: a token, and the terms that answers are held against. It does not print.
pub struct Ticket {
    token: ExchangeResponse,
    terms: VerifiedTerms,
}

impl Ticket {
    /// How long the token holds from when it was given, in seconds.
    #[must_use]
    pub const fn expires_in(&self) -> i64 {
        self.token.expires_in
    }
}

/// A token in use.
pub struct Session<'a> {
    remote: &'a Remote,
    ticket: Arc<Ticket>,
}

/// An answer as it came. Nothing of it is believed.
pub struct Given {
    /// Its bytes: the evidence, where it turns out to be a lie.
    pub bytes: Vec<u8>,
    answer: Value,
}

/// An answer that was checked.
pub struct CheckedAnswer {
    /// The answer as it was received.
    pub answer: Value,
    /// What was verified.
    pub verified: VerifiedAnswer,
}

impl CheckedAnswer {
    /// Checks an answer with the documents of its signers: signature, receipt, every item's SD-JWT, chain and capture
    /// receipt, that who answered holds them; and that the receipt names the grantee.
    ///
    /// # Errors
    /// [`ClientError::Evidence`], [`ClientError::Mismatch`].
    pub fn of(answer: Value, documents: &dyn Documents, grantee: &Did) -> Result<Self, ClientError> {
        let verified = evidence::answer(&answer, documents)?.proved()?;
        if verified.grantee != *grantee {
            return Err(ClientError::Mismatch("its receipt names another grantee"));
        }
        Ok(Self { answer, verified })
    }

    /// The same answer, where it was given now, under this grant, to this query.
    ///
    /// # Errors
    /// [`ClientError::Evidence`], [`ClientError::Terms`], [`ClientError::Mismatch`].
    pub fn to(self, query: &Value, terms: &VerifiedTerms, now: Timestamp) -> Result<Self, ClientError> {
        let this = self.held(terms, now)?;
        let mut asked: Query = oap_identity::json::from_value(query.clone())?;
        let answered = this.answered();
        if asked.request_id.is_some() && asked.request_id != answered {
            return Err(ClientError::Mismatch("it answers another request"));
        }
        asked.request_id = answered;
        let hash = Hash::of_canonical(&asked)?;
        this.of_hash(hash)
    }

    /// The same answer, where it was given now, under this grant, and its receipt says that this was asked.
    ///
    /// # Errors
    /// As [`CheckedAnswer::to`].
    pub fn of_input(self, hash: Hash, terms: &VerifiedTerms, now: Timestamp) -> Result<Self, ClientError> {
        self.held(terms, now)?.of_hash(hash)
    }

    /// The same answer, where it was given now, under this grant, to a request for these items, and has none but them.
    ///
    /// # Errors
    /// As [`CheckedAnswer::to`].
    pub fn to_named(
        self,
        items: &[ItemId],
        request_id: &RequestId,
        terms: &VerifiedTerms,
        now: Timestamp,
    ) -> Result<Self, ClientError> {
        let this = self.held(terms, now)?;
        if this.answered().as_ref() != Some(request_id) {
            return Err(ClientError::Mismatch("it answers another request"));
        }
        if this.verified.items.iter().any(|item| !items.contains(&item.item_id)) {
            return Err(ClientError::Mismatch("it has items that were not asked for"));
        }
        let query = Query::naming(request_id.clone());
        this.of_hash(Hash::of_canonical(&NamedItems { items, query: &query })?)
    }

    /// The request that it says that it answers.
    fn answered(&self) -> Option<RequestId> {
        self.answer["request_id"].as_str().and_then(|id| id.parse().ok())
    }

    fn held(mut self, terms: &VerifiedTerms, now: Timestamp) -> Result<Self, ClientError> {
        self.verified = self.verified.as_of(now)?;
        let items = self.answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        oap_grants::evidence::under(&self.verified, items, terms)?;
        Ok(self)
    }

    fn of_hash(mut self, hash: Hash) -> Result<Self, ClientError> {
        if self.verified.receipt.input_hash != Some(hash) {
            return Err(ClientError::Mismatch("its receipt is of another query"));
        }
        let checked = |what: &Unchecked| matches!(what, Unchecked::Query | Unchecked::Grant(_));
        self.verified.unchecked.retain(|what| !checked(what));
        Ok(self)
    }
}

#[allow(missing_docs, reason = "the names say it")]
impl Session<'_> {
    #[must_use]
    pub fn token(&self) -> &ExchangeResponse {
        &self.ticket.token
    }

    /// What the session rests on, for [`Remote::resume`].
    #[must_use]
    pub fn ticket(&self) -> Arc<Ticket> {
        self.ticket.clone()
    }

    /// Asks, and checks the answer as [`CheckedAnswer::of`] and [`CheckedAnswer::to`] do.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Evidence`] when a proof does not hold.
    pub async fn query(&self, prover: &dyn Prover, query: &Value) -> Result<CheckedAnswer, ClientError> {
        let given = self.ask(prover, query).await?;
        let documents = self.remote.documents(&given).await?;
        self.judge(given, &documents, prover.did(), query)
    }

    /// Asks; the answer as it came.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn ask(&self, prover: &dyn Prover, query: &Value) -> Result<Given, ClientError> {
        let url = &self.remote.endpoints.query;
        let (status, bytes) = self.post(prover, url, query.to_string(), self.remote.allowed).await?;
        let answer = read(url, status, &bytes)?;
        Ok(Given { bytes, answer })
    }

    /// Asks what changed, as a device of the owner's; the bytes of the list. Nothing of it is believed.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn changes(&self, prover: &dyn Prover, body: String) -> Result<Vec<u8>, ClientError> {
        let url = self.at(path::CHANGES)?;
        let (status, bytes) = self.post(prover, &url, body, self.remote.allowed).await?;
        if status != 200 {
            read(&url, status, &bytes)?;
        }
        Ok(bytes)
    }

    /// Asks what these items say, as a device of the owner's; the answer as it came.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn changed(&self, prover: &dyn Prover, body: String) -> Result<Given, ClientError> {
        let url = self.at(path::CHANGED)?;
        let (status, bytes) = self.post(prover, &url, body, self.remote.allowed).await?;
        let answer = read(&url, status, &bytes)?;
        Ok(Given { bytes, answer })
    }

    /// Checks an answer to a request for named items, as [`CheckedAnswer::of`] and [`CheckedAnswer::to_named`] do.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Evidence`] when a proof does not hold.
    pub fn judge_named(
        &self,
        given: Given,
        documents: &dyn Documents,
        grantee: &Did,
        items: &[ItemId],
        request_id: &RequestId,
    ) -> Result<CheckedAnswer, ClientError> {
        let checked = CheckedAnswer::of(given.answer, documents, grantee)?;
        checked.to_named(items, request_id, &self.ticket.terms, self.remote.clock.now())
    }

    /// Where the gateway has a path that its manifest does not name: beside its query endpoint.
    fn at(&self, path: &str) -> Result<String, ClientError> {
        let origin = self.remote.endpoints.query.strip_suffix(path::QUERY).ok_or(ClientError::NoPlace)?;
        Ok(format!("{origin}{path}"))
    }

    /// Checks an answer to a query with the [documents](Remote::documents) of its signers, as [`CheckedAnswer::of`] and
    /// [`CheckedAnswer::to`] do. It takes its time where there are many items.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Evidence`] when a proof does not hold.
    pub fn judge(
        &self,
        given: Given,
        documents: &dyn Documents,
        grantee: &Did,
        query: &Value,
    ) -> Result<CheckedAnswer, ClientError> {
        let checked = CheckedAnswer::of(given.answer, documents, grantee)?;
        checked.to(query, &self.ticket.terms, self.remote.clock.now())
    }

    /// The grantee's whole view as a bundle, for grants that allow exports. It is checked by who reads it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn export(&self, prover: &dyn Prover) -> Result<Vec<u8>, ClientError> {
        let url = &self.remote.endpoints.export;
        let (status, bytes) = self.post(prover, url, "{}".to_owned(), BUNDLE).await?;
        if status != 200 {
            read(url, status, &bytes)?;
        }
        Ok(bytes)
    }

    /// What stands at a path of the gateway's that its manifest does not name, asked for with a body; the answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call(&self, prover: &dyn Prover, at: &str, body: &Value) -> Result<Value, ClientError> {
        let query = &self.remote.endpoints.query;
        let origin = query.strip_suffix(path::QUERY).ok_or(ClientError::NoPlace)?;
        let url = format!("{origin}{at}");
        let (status, bytes) = self.post(prover, &url, body.to_string(), self.remote.allowed).await?;
        read(&url, status, &bytes)
    }

    async fn post(
        &self,
        prover: &dyn Prover,
        url: &str,
        body: String,
        allowed: Allowance,
    ) -> Result<(u16, Vec<u8>), ClientError> {
        self.send(prover, "POST", url, Some(body), allowed).await
    }

    async fn send(
        &self,
        prover: &dyn Prover,
        method: &str,
        url: &str,
        body: Option<String>,
        allowed: Allowance,
    ) -> Result<(u16, Vec<u8>), ClientError> {
        let token = &self.token().memory_grant_jwt;
        let (authorization, proof) = if self.token().token_type == "DPoP" {
            (format!("DPoP {token}"), prover.prove(Claim::Possession { method, url, token }).await?)
        } else {
            (format!("Bearer {token}"), String::new())
        };
        let (authorization, proof) = (authorization.as_str(), proof.as_str());
        send(&self.remote.client, Ask { method, url, authorization, proof, body }, allowed).await
    }
}

/// Whom an answer names as signers, once its own signature holds: at most [`MAX_SIGNERS`].
///
/// # Errors
/// [`ClientError::Evidence`], [`ClientError::Mismatch`].
pub fn named_signers(answer: &Value, principal: &DidDocument) -> Result<BTreeSet<Did>, ClientError> {
    check_envelope(answer, principal)?;
    let named = signers(answer);
    if named.len() > MAX_SIGNERS {
        return Err(ClientError::Mismatch("it names more signers than an answer has"));
    }
    Ok(named)
}

/// That the principal signed an answer, whatever is in it. The rest is for [`evidence::answer`] to check.
fn check_envelope(answer: &Value, principal: &DidDocument) -> Result<(), ClientError> {
    let refused = |error: SignedError| ClientError::from(EvidenceError::from(AnswerError::Signature(error)));
    let unsigned = || refused(SignedError::BadSignature);
    let signature = DetachedSignature::deserialize(&answer["signature"]).map_err(|_| unsigned())?;
    let at = answer["receipt"]["timestamp"].as_str().and_then(|at| at.parse().ok()).ok_or_else(unsigned)?;
    let bytes = answer_bytes(answer).map_err(EvidenceError::from)?;
    signature.verify(&bytes, principal, at).map_err(refused)?;
    // The signature leaves the items out; the receipt in it covers them.
    let uncovered = || ClientError::from(EvidenceError::from(AnswerError::OutputHash));
    let response_id = answer["response_id"].as_str().and_then(|id| id.parse().ok()).ok_or_else(uncovered)?;
    let items = canonical(&answer["items"]).map_err(EvidenceError::from)?;
    let items = String::from_utf8(items).map_err(|_| uncovered())?;
    if answer["receipt"]["output_hash"] != output_hash(&items, &response_id).to_string() {
        return Err(uncovered());
    }
    Ok(())
}

/// The DIDs that are said to have countersigned a receipt: of an answer, of captures, or the receipt itself.
#[must_use]
pub fn countersigners(value: &Value) -> BTreeSet<Did> {
    let items = value["items"].as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let captures = items.iter().map(|item| &item["integrity"]["capture_receipt"]);
    let receipts = captures.chain([&value["receipt"], value]);
    let entries = receipts.filter_map(|receipt| receipt["signatures"].as_array()).flatten();
    let kids = entries.filter_map(|entry| entry["by"].as_str()?.parse::<Kid>().ok());
    kids.map(|kid| kid.did().clone()).collect()
}

/// The DIDs that are said to have signed an answer or an item: of its receipt, of links and capture receipts. What items
/// *say* names nobody.
#[must_use]
pub fn signers(value: &Value) -> BTreeSet<Did> {
    let items = value["items"].as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let named = items.iter().flat_map(|item| {
        let integrity = &item["integrity"];
        let links = integrity["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
        links.iter().map(|link| &link["actor"]).chain([&integrity["capture_receipt"]["principal_did"]])
    });
    let named = named.chain([&value["receipt"]["principal_did"]]);
    named.filter_map(|did| did.as_str()?.parse().ok()).collect()
}

async fn fetch(client: &HttpClient, url: &str, allowed: Allowance) -> Result<Value, ClientError> {
    let ask = Ask { method: "GET", url, ..Ask::default() };
    let (status, bytes) = send(client, ask, allowed).await?;
    read(url, status, &bytes).map_err(|error| match error {
        ClientError::Refused { own, status, code, message } => {
            ClientError::Refused { own, status, code, message: format!("{url}: {message}") }
        }
        error => error,
    })
}
