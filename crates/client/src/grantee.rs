//! The grantee's client: discovers a gateway, exchanges a grant, queries, and checks every answer before it is
//! believed.

use crate::error::{ClientError, read};
use crate::prover::{Claim, Prover};
use crate::wire::{ANSWER, Ask, BUNDLE, send};
use oap_exchange::Query;
use oap_grants::evidence::VerifiedTerms;
use oap_grants::exchange::{ExchangeRequest, ExchangeResponse};
use oap_identity::json::{JsonError, canonical};
use oap_identity::outgoing::{Allowance, HttpClient};
use oap_identity::resolve::Resolver;
use oap_identity::signed::SignedError;
use oap_identity::{Clock, DetachedSignature, Did, DidDocument, Documents, Hash, Kid, Timestamp};
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
        let origin = origin.trim_end_matches('/');
        let manifest = fetch(&client, &format!("{origin}{}", path::MEMORY_MANIFEST)).await?;
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
        Ok(Self { client, endpoints, document, resolver, clock })
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
    async fn documents(&self, answer: &Value) -> Result<BTreeMap<Did, Arc<DidDocument>>, ClientError> {
        let named = named_signers(answer, &self.document)?;
        let mut known = BTreeMap::from([(self.principal().clone(), self.document.clone())]);
        for did in named {
            if let Entry::Vacant(place) = known.entry(did) {
                let document = self.resolver.resolve(place.key()).await?;
                place.insert(document);
            }
        }
        Ok(known)
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
        let (status, bytes) = send(&self.client, ask, ANSWER).await?;
        let answer = read(&self.endpoints.grant, status, &bytes)?;
        let token: ExchangeResponse = oap_identity::json::from_value(answer)?;
        // The gateway takes it; whether it is what its answers can be held against is the grantee's own question.
        let known = BTreeMap::from([(self.principal().clone(), self.document.clone())]);
        let terms = verified_terms(grant, chain, known, &self.resolver, self.clock.now()).await?;
        Ok(Session { remote: self, token, terms })
    }
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

/// A token in use.
pub struct Session<'a> {
    remote: &'a Remote,
    token: ExchangeResponse,
    terms: VerifiedTerms,
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
    pub fn to(mut self, query: &Value, terms: &VerifiedTerms, now: Timestamp) -> Result<Self, ClientError> {
        self.verified = self.verified.as_of(now)?;
        let items = self.answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        oap_grants::evidence::under(&self.verified, items, terms)?;
        let mut asked: Query = oap_identity::json::from_value(query.clone())?;
        asked.request_id = self.answer["request_id"].as_str().and_then(|id| id.parse().ok());
        let hash = Hash::of_canonical(&asked)?;
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
    pub const fn token(&self) -> &ExchangeResponse {
        &self.token
    }

    /// Asks, and checks the answer as [`CheckedAnswer::of`] and [`CheckedAnswer::to`] do.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Evidence`] when a proof does not hold.
    pub async fn query(&self, prover: &dyn Prover, query: &Value) -> Result<CheckedAnswer, ClientError> {
        let url = &self.remote.endpoints.query;
        let (status, bytes) = self.post(prover, url, query.to_string(), ANSWER).await?;
        let answer = read(&self.remote.endpoints.query, status, &bytes)?;
        let documents = self.remote.documents(&answer).await?;
        CheckedAnswer::of(answer, &documents, prover.did())?.to(query, &self.terms, self.remote.clock.now())
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

    async fn post(
        &self,
        prover: &dyn Prover,
        url: &str,
        body: String,
        allowed: Allowance,
    ) -> Result<(u16, Vec<u8>), ClientError> {
        let token = &self.token.memory_grant_jwt;
        let (authorization, proof) = if self.token.token_type == "DPoP" {
            (format!("DPoP {token}"), prover.prove(Claim::Possession { method: "POST", url, token }).await?)
        } else {
            (format!("Bearer {token}"), String::new())
        };
        let (authorization, proof) = (authorization.as_str(), proof.as_str());
        let ask = Ask { method: "POST", url, authorization, proof, body: Some(body) };
        send(&self.remote.client, ask, allowed).await
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

async fn fetch(client: &HttpClient, url: &str) -> Result<Value, ClientError> {
    let ask = Ask { method: "GET", url, ..Ask::default() };
    let (status, bytes) = send(client, ask, ANSWER).await?;
    read(url, status, &bytes).map_err(|error| match error {
        ClientError::Refused { own, status, code, message } => {
            ClientError::Refused { own, status, code, message: format!("{url}: {message}") }
        }
        error => error,
    })
}
