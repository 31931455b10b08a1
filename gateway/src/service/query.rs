//! The way of one query (architecture): token and proof to [`VerifiedGrant`], grant to view, view and query to
//! answer, answer to durable receipt, receipt to bytes. Each step takes what the step before made.

mod pushing;

pub(crate) use pushing::{Made, Pushing};

mod by_device;
mod graphed;

use crate::error::Error;
use crate::service::budget;
use crate::service::grants::{above, facts};
use crate::service::{Budgets, Exchange, Grants};
use crate::state::commits::{Draft, Stored, Writing, chain_of, until_it_holds};
use crate::state::gateway::Gateway;
use crate::state::keyring::Keyring;
use crate::state::living::ViewBasis;
use crate::state::obligations;
use crate::state::refusals::{Counted, Refusals};
use crate::state::replay::REMEMBERED;
use crate::state::schema::{LINKS, PROOFS};
use crate::state::views::why;
use oap_exchange::Query;
use oap_exchange::answer::{Found, Position, find, find_item, find_items};
use oap_exchange::query::NamedItems;
use oap_exchange::respond::{Body, Frame, Shown, Unsent, respond, vector};
use oap_grants::dpop::DpopError;
use oap_grants::token::TokenError;
use oap_grants::verify::{
    Authenticated, Presented, Refused, Subscriber, Unauthenticated, authenticate, verify,
};
use oap_grants::{GrantBook, Operation, Replay, VerifiedGrant, limits};
use oap_identity::{Did, Hash, ItemId, RequestId, Timestamp};
use oap_memory::receipt::{Action, Receipt};
use serde::Serialize;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

/// What an answer rests on: read again in the transaction that records it.
struct Basis {
    view: ViewBasis,
    /// What it shows.
    shown: Vec<Shown>,
    /// What the grantee does.
    operation: Operation,
}

/// A caller whose token and proof were checked. The proof is remembered with the first thing that is committed.
#[derive(Clone)]
pub struct Caller {
    authenticated: Authenticated,
    /// The first grant of the chain that the token is for.
    first: Hash,
    proof: Option<[u8; 32]>,
}

#[allow(missing_docs, reason = "the names say it")]
impl Caller {
    #[must_use]
    pub const fn grantee(&self) -> &Did {
        self.authenticated.grantee()
    }

    /// The first grant of the chain that the token is for: what is counted is counted by it.
    pub(crate) const fn first(&self) -> Hash {
        self.first
    }

    /// The grant that the token is for.
    pub(crate) const fn grant_hash(&self) -> Hash {
        self.authenticated.grant_hash()
    }

    /// The grant whose receipts are all that it is shown of the log; `None` where it is shown all that name it. A bearer token is
    /// whoever's has it, and the owner's own agent bears the DID that everything in the log of the owner names.
    pub(crate) fn confined(&self, principal: &Did) -> Option<Hash> {
        let caller = &self.authenticated;
        (caller.is_bearer() || caller.grantee() == principal).then_some(caller.grant_hash())
    }

    /// The same caller for as long as its grant is in force; `None` for a bearer token, which is whoever's has it.
    pub(crate) fn subscriber(&self) -> Option<Subscriber> {
        Subscriber::of(&self.authenticated)
    }

    /// Who subscribed, as the caller of what is pushed.
    pub(crate) fn of_subscription(subscriber: &Subscriber, gateway: &Gateway) -> Self {
        let authenticated = subscriber.caller(gateway.keys().document(), gateway.clock.now());
        let first = gateway.grant_book.first(authenticated.grant_hash());
        Self { authenticated, first, proof: None }
    }

    /// What its proof is recognized by, where the token is bound to a key.
    pub(crate) const fn proof(&self) -> Option<[u8; 32]> {
        self.proof
    }
}

/// Notes the proof that is presented: whether it was used before is asked once its sender is known.
#[derive(Default)]
struct DeferredReplay(Mutex<Option<[u8; 32]>>);

impl Replay for DeferredReplay {
    fn first_use(&self, key: [u8; 32], _: Timestamp) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        true
    }
}

/// A query whose caller's grant was judged.
#[derive(Clone, Copy)]
struct Question<'a> {
    caller: &'a Caller,
    grant: &'a VerifiedGrant,
    query: &'a Query,
    after: Option<Position>,
    /// What it is of, where that is named.
    only: Option<Only<'a>>,
    request_id: &'a RequestId,
}

/// What an answer costs, in millionths of ε, when so many of its items were got before.
type Price = fn(usize) -> u64;

/// What a query is of that names its items.
#[derive(Clone, Copy)]
enum Only<'a> {
    /// One.
    Item(ItemId),
    /// These, for a device of the owner's.
    Items(&'a [ItemId]),
}

/// What a receipt's `input_hash` covers of a query of one item.
#[derive(Serialize)]
struct Explained<'a> {
    item_id: ItemId,
    #[serde(flatten)]
    query: &'a Query,
}

impl Exchange<'_> {
    /// Who presents a token: the first step.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`]; [`Error::RateLimited`] after too many requests that failed.
    pub fn caller(self, presented: &Presented) -> Result<Caller, Error> {
        let deferred = DeferredReplay::default();
        let keys = self.0.keys();
        let now = self.0.clock.now();
        let authenticated =
            authenticate(presented, &self.0.tokens, keys.document(), &self.0.origin, &deferred, now)?;
        let first = self.0.grant_book.first(authenticated.grant_hash());
        if !self.0.refusals.has_room(Counted::Failed, first, now) {
            return Err(Error::RateLimited(Refusals::anew(now)));
        }
        let proof = deferred.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if proof.is_some_and(|key| !self.0.used_proofs.first_use(key, now)) {
            return Err(Unauthenticated::Dpop(DpopError::Replayed).into());
        }
        Ok(Caller { authenticated, first, proof })
    }

    /// Judges the caller's grant for an operation; a refusal leaves a receipt.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn judge(
        self,
        caller: &Caller,
        operation: Operation,
        action: Action,
    ) -> Result<VerifiedGrant, Error> {
        self.0.clock.believe()?;
        self.0.grants_answer()?;
        let (keys, now) = (self.0.keys(), self.0.clock.now());
        match verify(&caller.authenticated, operation, &self.0.grant_book, keys.document(), now) {
            Ok(grant) => Ok(grant),
            Err(refused) => Err(self.refuse_caller(caller, action, refused).await?),
        }
    }

    /// Judges the caller's grant, whatever it allows; a refusal leaves a receipt, as one of a query.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn in_force(self, caller: &Caller) -> Result<VerifiedGrant, Error> {
        let record = self.0.grant_book.by_hash(caller.authenticated.grant_hash());
        let allowed = record.and_then(|record| record.grant.grant().operations.iter().next().copied());
        self.judge(caller, allowed.unwrap_or(Operation::Query), Action::Query).await
    }

    /// Refuses a caller who cannot pay for any answer, before one is computed.
    pub(crate) async fn not_spent(
        self,
        caller: &Caller,
        grant: &VerifiedGrant,
        action: Action,
    ) -> Result<(), Error> {
        if Budgets(self.0).is_spent(grant)? {
            return Err(self.refuse_caller(caller, action, Refused::Budget).await?);
        }
        Ok(())
    }

    /// Records the refusal of a caller; the error to answer with.
    async fn refuse_caller(self, caller: &Caller, action: Action, refused: Refused) -> Result<Error, Error> {
        if refused == Refused::Token {
            return Ok(Unauthenticated::Token(TokenError::Expired).into());
        }
        match self.0.grant_book.by_hash(caller.authenticated.grant_hash()) {
            Some(record) => {
                let above = above(&self.0.grant_book.chain(record.grant.hash()));
                Grants(self.0).refuse(&record, &above, action, refused).await
            }
            // The grant was never here: the token is none of ours, whatever its signature says.
            None => Ok(Unauthenticated::NoToken.into()),
        }
    }

    /// Remembers a caller's proof in the store, where nothing else is committed.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn keep_proof(self, caller: &Caller) -> Result<(), Error> {
        if let Some(key) = caller.proof {
            self.0.remember_proof(key).await?;
        }
        Ok(())
    }

    /// Answers a query: bytes in canonical form, whose receipt is durable.
    ///
    /// # Errors
    /// [`Error::Query`], [`Error::Cursor`]; [`Error::Refused`] with a receipt.
    pub async fn query(self, caller: &Caller, query: Query) -> Result<Vec<u8>, Error> {
        self.ask(caller, query, None).await
    }

    /// Answers a query of one item: the same way, and the same answer as one that finds that item alone. An item that is not in the
    /// view is not found, whether it is elsewhere or nowhere.
    ///
    /// # Errors
    /// As [`Exchange::query`].
    pub async fn explain(self, caller: &Caller, query: Query, item: ItemId) -> Result<Vec<u8>, Error> {
        self.ask(caller, query, Some(Only::Item(item))).await
    }

    async fn ask(self, caller: &Caller, query: Query, only: Option<Only<'_>>) -> Result<Vec<u8>, Error> {
        query.check()?;
        let grant = self.judge(caller, Operation::Query, Action::Query).await?;
        if let Err(refused) = self.allowed(&grant, &query) {
            return Err(self.refuse_caller(caller, Action::Query, refused).await?);
        }
        if !matches!(only, Some(Only::Items(_))) {
            self.not_spent(caller, &grant, Action::Query).await?;
        }
        let binding = query.binding()?;
        let after = query.cursor.as_deref().map(|c| self.open_cursor(c, &grant, binding)).transpose()?;
        let asked_as = query.request_id.clone();
        let request_id = asked_as.unwrap_or_else(|| RequestId::new(self.0.clock.now(), &*self.0.random));
        let question =
            Question { caller, grant: &grant, query: &query, after, only, request_id: &request_id };
        until_it_holds(|| self.answer_once(&question)).await
    }

    async fn answer_once(self, question: &Question<'_>) -> Result<Vec<u8>, Error> {
        let (mut found, mut basis) = self.found(question).await?;
        let disclosing = self.0.grant_book.disclosing(question.grant.hash());
        let mut _one_by_one = None;
        if found.discloses() {
            _one_by_one = disclosing.try_lock().ok();
            if _one_by_one.is_none() {
                drop(found);
                _one_by_one = Some(disclosing.lock().await);
                // Whoever waited finds anew: much may have changed.
                (found, basis) = self.found(question).await?;
            }
        }
        self.answer(question, found, basis).await
    }

    /// What the grant says of this query, beyond its state.
    fn allowed(self, grant: &VerifiedGrant, query: &Query) -> Result<(), Refused> {
        let grant = grant.grant();
        if query.include_embeddings && !grant.embedding_access {
            return Err(Refused::Embeddings);
        }
        let fits = |purpose: &String| grant.purpose_codes.is_empty() || grant.purpose_codes.contains(purpose);
        if query.purpose.as_ref().is_some_and(|purpose| !fits(purpose)) {
            return Err(Refused::Purpose);
        }
        limits::check_profile(grant, self.0.profile(&grant.redaction_profile))?;
        Ok(())
    }

    /// What the view has of a question, by what is disclosed under its grant now, and what that rests on.
    async fn found(self, question: &Question<'_>) -> Result<(Found, ViewBasis), Error> {
        let Question { grant, query, after, only, .. } = *question;
        let before = self.0.grant_book.allowance(grant.hash());
        let built = self.0.view(grant, query.include_embeddings, &before).await?;
        let meaning = self.0.meaning(&built, grant.grant(), query).await;
        Ok(built.find(|view| match only {
            None => find(view, &before, query, meaning.as_ref(), after),
            Some(Only::Item(item)) => find_item(view, &before, query, item),
            Some(Only::Items(items)) => find_items(view, &before, query, items),
        }))
    }

    /// Writes the answer out, and lets it out with its receipt.
    async fn answer(self, question: &Question<'_>, found: Found, basis: ViewBasis) -> Result<Vec<u8>, Error> {
        let Question { caller, grant, query, only, request_id, .. } = *question;
        let answer = found.load(&self.0.views.written, |version| self.0.load(version)).map_err(why)?;
        let answer = match answer {
            Some(answer) => answer,
            None => return self.overtaken().await,
        };
        let response_id = RequestId::new(self.0.clock.now(), &*self.0.random);
        let next =
            answer.next().map(|position| self.seal_cursor(position, grant, query.binding()?)).transpose()?;
        let unsent = answer.write(Frame { request_id: request_id.clone(), response_id, next_cursor: next });
        let mut draft = self.answer_draft(Action::Query, &basis, &unsent);
        draft.rules = ["grant.active", "grant.filter", "projection.profile"].map(str::to_owned).to_vec();
        if let Some(purpose) = &query.purpose {
            draft.more.insert("purpose".to_owned(), json!(purpose));
        }
        let mut asked = query.clone();
        asked.request_id = Some(request_id.clone());
        draft.input_hash = Some(match only {
            None => Hash::of_canonical(&asked)?,
            Some(Only::Item(item_id)) => Hash::of_canonical(&Explained { item_id, query: &asked })?,
            Some(Only::Items(items)) => Hash::of_canonical(&NamedItems { items, query: &asked })?,
        });
        let price: Price = match only {
            Some(Only::Items(_)) => |_| 0,
            None | Some(Only::Item(_)) => budget::cost,
        };
        let basis = Basis { view: basis, shown: unsent.shown().to_vec(), operation: Operation::Query };
        let bytes = self.send_at(price, caller, basis, draft, unsent, |_| Ok(())).await?;
        metrics::counter!("oap_queries_total").increment(1);
        Ok(bytes)
    }

    /// An item changed since it was found. Waits until what is in memory knows of it.
    pub(crate) async fn overtaken<T>(self) -> Result<T, Error> {
        self.0.caught_up().await?;
        Err(Error::Overtaken)
    }

    /// What the receipt of any answer from a view says.
    pub(crate) fn answer_draft<T>(self, action: Action, basis: &ViewBasis, unsent: &Unsent<T>) -> Draft {
        let grant = &basis.grant;
        let mut draft = self.0.draft(action, grant.grant().grantee.as_str());
        draft.more = facts(grant.grant(), grant.hash(), &grant.ancestors());
        draft.more.insert("profile_hash".to_owned(), json!(basis.profile_hash));
        draft.output_hash = Some(unsent.output_hash());
        draft.tags = unsent.tags();
        draft
    }

    /// Makes the receipt of an answer durable, and lets the answer out with it.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when something changed since the answer was made; [`Error::Refused`] with a receipt.
    pub(crate) async fn send<T: Body>(
        self,
        caller: &Caller,
        view: ViewBasis,
        operation: Operation,
        receipt: Draft,
        unsent: Unsent<T>,
    ) -> Result<Vec<u8>, Error> {
        self.send_noting(caller, view, operation, receipt, unsent, |_| Ok(())).await
    }

    /// The same; what else is so once the answer leaves is written down in the same transaction.
    ///
    /// # Errors
    /// As [`Exchange::send`], and those of `note`.
    async fn send_noting<T: Body>(
        self,
        caller: &Caller,
        view: ViewBasis,
        operation: Operation,
        receipt: Draft,
        unsent: Unsent<T>,
        note: impl FnOnce(&mut Writing<'_, '_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<Vec<u8>, Error> {
        let basis = Basis { view, shown: unsent.shown().to_vec(), operation };
        self.send_at(budget::cost, caller, basis, receipt, unsent, note).await
    }

    /// The same, at this price.
    async fn send_at<T: Body>(
        self,
        price: Price,
        caller: &Caller,
        basis: Basis,
        receipt: Draft,
        unsent: Unsent<T>,
        note: impl FnOnce(&mut Writing<'_, '_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<Vec<u8>, Error> {
        let (receipt, keys) = self.commit_answer(caller, receipt, price, basis, note).await?;
        Ok(respond(unsent, &receipt, keys.current())?)
    }

    /// Makes the receipt durable, together with what it says: that the grant was in force, what was disclosed for the
    /// first time, and that the proof is used up. Everything that the answer rests on is read again here: the grant and
    /// those that it was made from, what the owner owes, every item that is shown, and what may still be disclosed.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when something changed since the answer was made; [`Error::Refused`] with a receipt.
    async fn commit_answer(
        self,
        caller: &Caller,
        receipt: Draft,
        price: Price,
        basis: Basis,
        note: impl FnOnce(&mut Writing<'_, '_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(Stored<Receipt>, Arc<Keyring>), Error> {
        let action = receipt.action;
        let grant = basis.view.grant.clone();
        let chain = chain_of(&grant.grant().granter.scope);
        let entry = self.0.grant_book.chain(grant.hash());
        let (authenticated, proof) = (caller.authenticated.clone(), caller.proof);
        let committed = self
            .0
            .record(move |w| {
                let standing = w.standing(entry)?;
                verify(&authenticated, basis.operation, &standing, w.keys.document(), w.now)
                    .map_err(Error::Judged)?;
                authenticated.still(w.keys.document(), w.now).map_err(Error::Judged)?;
                w.still_so(&basis)?;
                let shown: Vec<ItemId> = basis.shown.iter().map(|shown| shown.item).collect();
                let got_before = w.disclose(&standing, &shown)?;
                w.decided(receipt.decision, &basis.view.decided)?;
                w.charge(&grant, price(got_before))?;
                if let Some(key) = proof {
                    PROOFS.put(w.tx, &key, &w.now.plus(REMEMBERED))?;
                }
                note(w)?;
                // The answer is signed with the keys in use here.
                Ok((w.receipt(&chain, receipt)?, w.keys.clone()))
            })
            .await;
        match committed {
            // It ended just before: refused like any query after it.
            Err(Error::Judged(refused)) => Err(self.refuse_caller(caller, action, refused).await?),
            Err(Error::Spent) => Err(self.refuse_caller(caller, action, Refused::Budget).await?),
            committed => committed,
        }
    }

    /// The vector of an item that the grantee got: 32-bit floats, little-endian. Anything else is not there.
    ///
    /// # Errors
    /// [`Error::Refused`] without the right to embeddings; [`Error::NotFound`].
    pub async fn vector(self, caller: &Caller, item: ItemId) -> Result<Vec<u8>, Error> {
        let grant = self.judge(caller, Operation::Query, Action::Vector).await?;
        if !grant.grant().embedding_access {
            return Err(self.refuse_caller(caller, Action::Vector, Refused::Embeddings).await?);
        }
        self.0.profile(&grant.grant().redaction_profile).ok_or(Error::NotFound)?;
        until_it_holds(|| self.vector_once(caller, &grant, item)).await
    }

    async fn vector_once(
        self,
        caller: &Caller,
        grant: &VerifiedGrant,
        item: ItemId,
    ) -> Result<Vec<u8>, Error> {
        let before = self.0.grant_book.allowance(grant.hash());
        let built = self.0.view(grant, true, &before).await?;
        let (unsent, basis) = built.find(|view| vector(view, &before, item));
        let unsent = unsent.ok_or(Error::NotFound)?;
        let mut draft = self.answer_draft(Action::Vector, &basis, &unsent);
        draft.rules = ["grant.active", "grant.embedding_access"].map(str::to_owned).to_vec();
        self.send(caller, basis, Operation::Query, draft, unsent).await
    }
}

impl Writing<'_, '_> {
    /// That what an answer was made of is still so: no gate has changed, nothing that it shows has another link by
    /// now (every change of an item is one), and nothing has ended.
    fn still_so(&self, basis: &Basis) -> Result<(), Error> {
        if obligations::revision(self.tx)? != basis.view.obligations {
            return Err(Error::Overtaken);
        }
        if basis.view.ends.is_some_and(|end| end <= self.now) {
            return Err(Error::Overtaken);
        }
        basis.shown.iter().try_for_each(|shown| self.ends_with(shown.item, shown.last_link))
    }

    /// That the chain of an item ends with that link: then nothing of the item changed since.
    ///
    /// # Errors
    /// [`Error::Overtaken`].
    pub(crate) fn ends_with(&self, item: ItemId, last_link: u32) -> Result<(), Error> {
        let next = last_link.checked_add(1).ok_or(Error::NotFound)?;
        if LINKS.contains(self.tx, &(item, next))? || !LINKS.contains(self.tx, &(item, last_link))? {
            return Err(Error::Overtaken);
        }
        Ok(())
    }
}
