//! The way of one query (architecture): token and proof to [`VerifiedGrant`], grant to view, view and query to
//! answer, answer to durable receipt, receipt to bytes. Each step takes what the step before made.

use crate::error::Error;
use crate::gateway::Gateway;
use crate::ledger::{Draft, Stored, chain_of};
use crate::proofs::REMEMBERED;
use crate::service::budget;
use crate::service::gates::{self, Decided};
use crate::service::grants::facts;
use crate::tables::{DISCLOSED, PROOFS, disclosed, encode};
use crate::views::Seen;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use oap_grants::verify::{Authenticated, Presented, Refused, Unauthenticated, authenticate, verify};
use oap_grants::{GrantBook, Operation, Replay, VerifiedGrant, limits};
use oap_identity::{Did, Hash, ItemId, RequestId, Timestamp, random};
use oap_memory::answer::{Frame, Position, Rank, answer, output_hash, respond};
use oap_memory::receipt::{Receipt, ReceiptType, item_tag};
use oap_memory::{Profile, Query};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

/// Times a query is answered anew because a gate changed meanwhile, before the caller is told to try again.
pub(crate) const ATTEMPTS: usize = 5;
/// Why an answer is not committed that was made before a bridge, a context or a consent changed.
pub(crate) const CHANGED: &str = "a bridge, a context or a consent has changed";

/// A caller whose token and proof were checked. The proof is remembered with the first thing that is committed.
pub struct Caller {
    authenticated: Authenticated,
    proof: Option<[u8; 32]>,
}

impl Caller {
    /// The grantee.
    #[must_use]
    pub const fn grantee(&self) -> &Did {
        self.authenticated.grantee()
    }
}

/// Passes questions on to the proofs in memory, and notes the proof that was used.
struct Noting<'a>(&'a dyn Replay, Mutex<Option<[u8; 32]>>);

impl Replay for Noting<'_> {
    fn first_use(&self, key: [u8; 32], now: Timestamp) -> bool {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        self.0.first_use(key, now)
    }
}

/// A query whose caller's grant was judged.
#[derive(Clone, Copy)]
struct Question<'a> {
    caller: &'a Caller,
    grant: &'a VerifiedGrant,
    profile: &'a Profile,
    query: &'a Query,
    after: Option<Position>,
    request_id: &'a RequestId,
}

impl Gateway {
    /// Who presents a token: the first step.
    ///
    /// # Errors
    /// [`Unauthenticated`].
    pub fn caller(&self, presented: &Presented) -> Result<Caller, Unauthenticated> {
        let noting = Noting(&self.proofs, Mutex::new(None));
        let keys = self.keys();
        let now = self.clock.now();
        let authenticated = authenticate(presented, keys.document(), &self.origin, &noting, now)?;
        let proof = noting.1.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Caller { authenticated, proof })
    }

    /// Judges the caller's grant for an operation; a refusal leaves a receipt.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn judge(
        self: &Arc<Self>,
        caller: &Caller,
        operation: Operation,
        action: &'static str,
    ) -> Result<VerifiedGrant, Error> {
        let (keys, now) = (self.keys(), self.clock.now());
        match verify(&caller.authenticated, operation, &self.shelf, keys.document(), now) {
            Ok(grant) => Ok(grant),
            Err(refused) => Err(self.refuse_caller(caller, action, refused).await?),
        }
    }

    /// Records the refusal of a caller; the error to answer with.
    async fn refuse_caller(
        self: &Arc<Self>,
        caller: &Caller,
        action: &'static str,
        refused: Refused,
    ) -> Result<Error, Error> {
        self.keep_proof(caller).await?;
        match self.shelf.by_id(caller.authenticated.grant_id()) {
            Some(record) => self.refuse(&record, action, refused).await,
            // The grant was never here: the token is none of ours, whatever its signature says.
            None => Ok(Unauthenticated::NoToken.into()),
        }
    }

    /// Remembers a caller's proof in the store, where nothing else is committed.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn keep_proof(self: &Arc<Self>, caller: &Caller) -> Result<(), Error> {
        if let Some(key) = caller.proof {
            self.commit(move |w| Ok(w.tx.put(PROOFS, &key, &encode(&w.now.plus(REMEMBERED))?)?)).await?;
        }
        Ok(())
    }

    /// Answers a query: bytes in canonical form, whose receipt is durable.
    ///
    /// # Errors
    /// [`Error::Query`], [`Error::Cursor`]; [`Error::Refused`] with a receipt.
    pub async fn query(
        self: &Arc<Self>,
        caller: &Caller,
        query: Query,
        action: &'static str,
    ) -> Result<Vec<u8>, Error> {
        query.check()?;
        let grant = self.judge(caller, Operation::Query, action).await?;
        if let Err(refused) = self.allowed(&grant, &query) {
            return Err(self.refuse_caller(caller, action, refused).await?);
        }
        let profile = self.profile(&grant.grant().redaction_profile).ok_or(Error::NotFound)?;
        let binding = query.binding()?;
        let after = query.cursor.as_deref().map(|c| self.open_cursor(c, &grant, binding)).transpose()?;
        let asked_as = query.request_id.clone();
        let request_id = asked_as.unwrap_or_else(|| RequestId::new(self.clock.now(), &*self.random));
        let question =
            Question { caller, grant: &grant, profile, query: &query, after, request_id: &request_id };
        for _ in 1..ATTEMPTS {
            match self.answer_once(&question).await {
                Err(Error::Conflict(CHANGED)) => {}
                answered => return answered,
            }
        }
        self.answer_once(&question).await
    }

    async fn answer_once(self: &Arc<Self>, question: &Question<'_>) -> Result<Vec<u8>, Error> {
        if let Some(answered) = self.try_answer(question, false).await? {
            return Ok(answered);
        }
        let grant = question.grant.grant().grant_id;
        let disclosing = self.shelf.disclosing(grant).ok_or(Error::NotFound)?;
        let _one_by_one = disclosing.lock().await;
        self.try_answer(question, true).await?.ok_or(Error::Conflict("try again"))
    }

    /// What the grant says of this query, beyond its state.
    fn allowed(&self, grant: &VerifiedGrant, query: &Query) -> Result<(), Refused> {
        let grant = grant.grant();
        if query.include_embeddings && !grant.embedding_access {
            return Err(Refused::Embeddings);
        }
        let fits = |purpose: &String| grant.purpose_codes.is_empty() || grant.purpose_codes.contains(purpose);
        if query.purpose.as_ref().is_some_and(|purpose| !fits(purpose)) {
            return Err(Refused::Purpose);
        }
        limits::check_profile(grant, self.profile(&grant.redaction_profile))?;
        Ok(())
    }

    /// The answer; `None` when it would disclose items for the first time and may not.
    async fn try_answer(
        self: &Arc<Self>,
        question: &Question<'_>,
        may_disclose: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Question { caller, grant, profile, query, after, request_id } = *question;
        let before = self.shelf.disclosed(grant.grant().grant_id);
        let seen = self.view(grant, query.include_embeddings, &before).await?;
        let meaning = self.meaning(&seen, grant.grant(), query).await;
        let answer = answer(&seen.view, &before, query, meaning.as_ref(), after);
        if !answer.newly_disclosed().is_empty() && !may_disclose {
            return Ok(None);
        }
        let items = answer.items_json();
        let response_id = RequestId::new(self.clock.now(), &*self.random);
        let receipt =
            self.query_draft(grant, profile, query, request_id, &items, &response_id, answer.tags())?;
        let newly = answer.newly_disclosed().to_vec();
        let got_before = answer.items().len() - newly.len();
        let cost = budget::cost(got_before as u64);
        let receipt = self.commit_answer(caller, grant, receipt, newly, cost, &seen).await?;
        metrics::counter!("oap_queries_total").increment(1);
        let level = grant.grant().trust_level;
        let frame = Frame {
            request_id,
            response_id: &response_id,
            level,
            profile: profile.name(),
            redacted_field_count: profile.redacted_field_count(level),
            lawful_basis: grant.grant().lawful_basis.as_str(),
            next_cursor: answer
                .next()
                .map(|position| self.seal_cursor(position, grant, query.binding()?))
                .transpose()?,
        };
        Ok(Some(respond(&items, &frame, &receipt, self.keys().current())?.into_bytes()))
    }

    #[expect(clippy::too_many_arguments, reason = "everything that a receipt names")]
    fn query_draft(
        &self,
        grant: &VerifiedGrant,
        profile: &Profile,
        query: &Query,
        request_id: &RequestId,
        items: &str,
        response_id: &RequestId,
        tags: Vec<String>,
    ) -> Result<Draft, Error> {
        let mut draft = self.draft(ReceiptType::Invocation, "memory.query", grant.grant().grantee.as_str());
        draft.rules = ["grant.active", "grant.filter", "projection.profile"].map(str::to_owned).to_vec();
        draft.more = facts(grant.grant(), grant.hash(), grant.ancestors());
        draft.more.insert("profile_hash".to_owned(), json!(profile.hash()));
        if let Some(purpose) = &query.purpose {
            draft.more.insert("purpose".to_owned(), json!(purpose));
        }
        let mut asked = query.clone();
        asked.request_id = Some(request_id.clone());
        draft.input_hash = Some(Hash::of_canonical(&asked)?);
        draft.output_hash = Some(output_hash(items, response_id));
        draft.tags = tags;
        Ok(draft)
    }

    /// Makes the receipt durable, together with what it says: that the grant was in force, what was disclosed
    /// for the first time, and that the proof is used up.
    pub(crate) async fn commit_answer(
        self: &Arc<Self>,
        caller: &Caller,
        grant: &VerifiedGrant,
        receipt: Draft,
        newly: Vec<ItemId>,
        cost: u64,
        seen: &Seen,
    ) -> Result<Stored<Receipt>, Error> {
        let (id, action) = (grant.grant().grant_id, receipt.action);
        let record = self.shelf.by_id(id).ok_or(Error::NotFound)?;
        let (ancestors, proof) = (grant.ancestors().to_vec(), caller.proof);
        let chain = chain_of(&grant.grant().granter.scope);
        let (gateway, charged) = (self.clone(), grant.clone());
        let (decided, obligations) = (Decided::of(seen, grant.grant()), seen.obligations);
        let committed = self
            .commit(move |w| {
                gateway.still_granted(w.tx, &record, &ancestors)?;
                if gates::owed(w.tx)? != obligations {
                    return Err(Error::Conflict(CHANGED));
                }
                w.decided(receipt.decision, &decided)?;
                w.charge(&charged, cost)?;
                for item in &newly {
                    w.tx.put(DISCLOSED, &disclosed(id, *item), &[])?;
                }
                if let Some(key) = proof {
                    w.tx.put(PROOFS, &key, &encode(&w.now.plus(REMEMBERED))?)?;
                }
                let receipt = w.receipt(&chain, receipt)?;
                w.tx.on_commit(move || gateway.shelf.disclose(id, &newly));
                Ok(receipt)
            })
            .await;
        match committed {
            // A revocation that was committed just before: refused like any query after it.
            Err(Error::Conflict("the grant is being revoked")) => {
                let refused = Refused::Inactive(oap_grants::GrantState::Revoked);
                Err(self.refuse_caller(caller, action, refused).await?)
            }
            Err(Error::Spent) => Err(self.refuse_caller(caller, action, Refused::Budget).await?),
            committed => committed,
        }
    }

    /// The vector of an item that the grantee got: 32-bit floats, little-endian. Anything else is not there.
    ///
    /// # Errors
    /// [`Error::Refused`] without the right to embeddings; [`Error::NotFound`].
    pub async fn vector(self: &Arc<Self>, caller: &Caller, item: ItemId) -> Result<Vec<u8>, Error> {
        let grant = self.judge(caller, Operation::Query, "memory.vector").await?;
        if !grant.grant().embedding_access {
            return Err(self.refuse_caller(caller, "memory.vector", Refused::Embeddings).await?);
        }
        let profile = self.profile(&grant.grant().redaction_profile).ok_or(Error::NotFound)?;
        for _ in 0..ATTEMPTS {
            let before = self.shelf.disclosed(grant.grant().grant_id);
            let seen = self.view(&grant, true, &before).await?;
            let found = seen.view.item(item).zip(seen.view.vector(item)).filter(|_| before.contains(item));
            let Some((shown, vector)) = found else {
                self.keep_proof(caller).await?;
                return Err(Error::NotFound);
            };
            let bytes = vector.to_bytes();
            let mut draft =
                self.draft(ReceiptType::Invocation, "memory.vector", grant.grant().grantee.as_str());
            draft.rules = ["grant.active", "grant.embedding_access"].map(str::to_owned).to_vec();
            draft.more = facts(grant.grant(), grant.hash(), grant.ancestors());
            draft.more.insert("profile_hash".to_owned(), json!(profile.hash()));
            draft.output_hash = Some(Hash::of(&bytes));
            draft.tags = vec![item_tag(item, shown.commitment())];
            match self.commit_answer(caller, &grant, draft, Vec::new(), budget::cost(1), &seen).await {
                Err(Error::Conflict(CHANGED)) => {}
                committed => return committed.map(|_| bytes),
            }
        }
        Err(Error::Conflict(CHANGED))
    }

    fn seal_cursor(&self, at: Position, grant: &VerifiedGrant, binding: Hash) -> Result<String, Error> {
        let nonce: [u8; 24] = random::bytes(&*self.random);
        let (kind, rank) = match at.rank {
            Rank::Score(score) => (0u8, i64::from(score.to_bits())),
            Rank::Captured(time) => (1, time.millis()),
        };
        let plain = [&[kind], rank.to_be_bytes().as_slice(), &at.item.to_bytes()].concat();
        let keys = self.keys();
        let sealed = XChaCha20Poly1305::new(keys.cursor_key().into())
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: &plain, aad: &bound(grant, binding) })
            .map_err(|_| Error::Cursor)?;
        Ok(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    fn open_cursor(&self, cursor: &str, grant: &VerifiedGrant, binding: Hash) -> Result<Position, Error> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| Error::Cursor)?;
        let (nonce, sealed) = sealed.split_at_checked(24).ok_or(Error::Cursor)?;
        let keys = self.keys();
        let plain = XChaCha20Poly1305::new(keys.cursor_key().into())
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: &bound(grant, binding) })
            .map_err(|_| Error::Cursor)?;
        let (kind, rest) = plain.split_first().ok_or(Error::Cursor)?;
        let (rank, item) = rest.split_first_chunk::<8>().ok_or(Error::Cursor)?;
        let rank = i64::from_be_bytes(*rank);
        let item = item.first_chunk::<16>().ok_or(Error::Cursor)?;
        let rank = match kind {
            0 => Rank::Score(f32::from_bits(u32::try_from(rank).map_err(|_| Error::Cursor)?)),
            _ => Rank::Captured(Timestamp::from_millis(rank)),
        };
        Ok(Position { rank, item: ItemId::from_bytes(*item) })
    }
}

/// What a cursor belongs to: one grant, one query.
fn bound(grant: &VerifiedGrant, binding: Hash) -> Vec<u8> {
    [b"cursor".as_slice(), grant.hash().as_bytes(), binding.as_bytes()].concat()
}
