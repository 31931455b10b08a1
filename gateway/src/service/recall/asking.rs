//! One gateway, asked under one grant.

use super::showing::{Shown, show};
use super::witnessed::{self, Unwitnessed};
use super::{Grant, Source, Wanted};
use crate::error::Error;
use crate::state::gateway::{Gateway, blocking};
use crate::state::lies::{AnswerEvidence, PeerIncident};
use crate::state::remotes::Session;
use oap_agents::foreign::Via;
use oap_client::prover::{Claim, Pending};
use oap_client::{ClientError, Prover, Remote, locate};
use oap_federation::verdict::{Code, Lie, MAX_DEADLINE, Verdict, Why};
use oap_grants::{dpop, exchange};
use oap_identity::outgoing::Allowance;
use oap_identity::resolve::{ResolveError, WebPolicy};
use oap_identity::{Did, RequestId};
use oap_memory::answer::MAX_RESULTS;
use oap_memory::evidence::EvidenceError;
use oap_memory::log::inclusion::Known;
use serde_json::{Value, json};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Longest answer of another gateway, in bytes: of a query, an exchange or a document of its.
pub const MAX_PEER_ANSWER: usize = 2 << 20;
/// What an answer to a recall may take. Whoever asks has a part of the time of each recall; what is kept outlasts this one.
const ANSWER: Allowance = Allowance { bytes: MAX_PEER_ANSWER, time: MAX_DEADLINE };
/// A token is not used for the last part of its life.
const SPARE: Duration = Duration::from_secs(30);

/// The principal, as somebody else's grantee, with the key in use.
pub(crate) struct OwnKey<'a>(pub(crate) &'a Gateway);

impl Prover for OwnKey<'_> {
    fn did(&self) -> &Did {
        self.0.principal()
    }

    fn prove<'a>(&'a self, claim: Claim<'a>) -> Pending<'a, String> {
        let (keys, now, random) = (self.0.keys(), self.0.clock.now(), &*self.0.random);
        let proof = match claim {
            Claim::Control { endpoint, grant } => {
                exchange::prove(keys.current(), endpoint, grant, now, random)
            }
            Claim::Possession { method, url, token } => {
                dpop::prove(keys.current(), dpop::Request { method, url }, token, now, random)
            }
        };
        Box::pin(ready(proof.map_err(ClientError::from)))
    }
}

/// Why nothing came that can be believed.
struct Failure {
    error: ClientError,
    /// What is kept of the answer, where one came.
    answer: Option<AnswerEvidence>,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self { error, answer: None }
    }
}

/// Asks within its part of the time. The turn of the whole recall lasts until no work for it is under way any more.
///
/// # Errors
/// [`Error::Panicked`].
pub(super) async fn ask(
    gateway: &Arc<Gateway>,
    wanted: &Arc<Wanted>,
    grant: &Grant,
    budget: Duration,
    turn: Arc<OwnedSemaphorePermit>,
) -> Result<Source, Error> {
    let asked = tokio::time::timeout(budget, asked(gateway, wanted, grant, turn)).await;
    let failure = match asked {
        Err(_) => return Ok(Source::new(grant, Verdict::Slow)),
        Ok(Ok(source)) => return Ok(source),
        Ok(Err(Stopped::Failed(failure))) => failure,
        Ok(Err(Stopped::Unwitnessed(unwitnessed))) => return Ok(unbelieved(grant, unwitnessed)),
        Ok(Err(Stopped::Broken(error))) => return Err(error),
    };
    let verdict = verdict(&failure.error, &grant.granter);
    // No token outlives what it was refused for, or a lie.
    gateway.remotes.forget(&grant.hash);
    let incident = incident(&failure.error, &verdict, grant, failure.answer);
    Ok(Source { incident, ..Source::new(grant, verdict) })
}

/// The incident that a lie is, for the owner; nothing else is one.
pub(crate) fn incident(
    error: &ClientError,
    verdict: &Verdict,
    grant: &Grant,
    answer: Option<AnswerEvidence>,
) -> Option<PeerIncident> {
    let Verdict::Lied(lie) = verdict else { return None };
    Some(PeerIncident {
        peer: grant.granter.clone(),
        grant: grant.hash,
        lie: *lie,
        check: check_of(error).map(str::to_owned),
        says: error.to_string(),
        answer,
    })
}

/// What became of an answer that is proved, and whose granter's log is not signed as the owner demands.
fn unbelieved(grant: &Grant, unwitnessed: Unwitnessed) -> Source {
    let Unwitnessed { verdict, says, evidence } = unwitnessed;
    let incident = match &verdict {
        Verdict::Lied(lie) => Some(PeerIncident {
            peer: grant.granter.clone(),
            grant: grant.hash,
            lie: *lie,
            check: None,
            says,
            answer: evidence,
        }),
        _ => {
            tracing::info!(peer = %grant.granter, %says, "an answer is not witnessed");
            None
        }
    };
    Source { incident, ..Source::new(grant, verdict) }
}

/// Why asking ended.
enum Stopped {
    /// By what the other gateway did.
    Failed(Failure),
    /// By what is known of the other gateway's log.
    Unwitnessed(Unwitnessed),
    /// By what this program did.
    Broken(Error),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ClientError> for Stopped {
    fn from(error: ClientError) -> Self {
        Self::Failed(error.into())
    }
}

/// Asks with what is known of the gateway, and once more with nothing known of it where that may be out of date: its token, or its keys.
async fn asked(
    gateway: &Arc<Gateway>,
    wanted: &Arc<Wanted>,
    grant: &Grant,
    turn: Arc<OwnedSemaphorePermit>,
) -> Result<Source, Stopped> {
    let known = gateway.remotes.session(&grant.hash, gateway.clock.now());
    let had_token = known.is_some();
    match once(gateway, wanted, grant, known, turn.clone()).await {
        Err(Stopped::Failed(failure)) if may_be_stale(&failure.error, had_token) => {
            gateway.remotes.forget(&grant.hash);
            gateway.resolver.forget(&grant.granter);
            once(gateway, wanted, grant, None, turn).await
        }
        done => done,
    }
}

/// Whether what is remembered of a gateway may be the reason: a token that it does not take any more, or a document with former keys.
pub(crate) fn may_be_stale(error: &ClientError, had_token: bool) -> bool {
    match error {
        ClientError::Refused { .. } => had_token,
        ClientError::Manifest(..) => true,
        ClientError::Evidence(error) => {
            [".signature", ".signer", ".compromised"].iter().any(|end| error.id().ends_with(end))
        }
        _ => false,
    }
}

async fn once(
    gateway: &Arc<Gateway>,
    wanted: &Arc<Wanted>,
    grant: &Grant,
    known: Option<Arc<Session>>,
    turn: Arc<OwnedSemaphorePermit>,
) -> Result<Source, Stopped> {
    let session = match known {
        Some(session) => session,
        None => open(gateway, grant, ANSWER).await.map_err(Failure::from)?,
    };
    let mut query = json!({
        "query": wanted.words,
        "max_results": wanted.most.clamp(1, usize::from(MAX_RESULTS)),
        "request_id": RequestId::new(gateway.clock.now(), &*gateway.random),
    });
    if !wanted.kinds.is_empty() {
        query["kinds"] = json!(wanted.kinds);
    }
    if !wanted.labels.is_empty() {
        query["labels_any"] = json!(wanted.labels);
    }
    let prover = OwnKey(gateway);
    let given = session.remote.resume(session.ticket.clone()).ask(&prover, &query).await?;
    let answer = AnswerEvidence::of(&given.bytes);
    let documents = session.remote.documents(&given).await;
    let documents = documents.map_err(|error| Failure { error, answer: answer.clone() })?;
    // Up to 100 items and their chains: not beside what others wait for.
    let (grantee, via) = (gateway.principal.clone(), Via { peer: grant.granter.clone(), grant: grant.hash });
    let (wanted, source) = (wanted.clone(), Source::new(grant, Verdict::Answered));
    let asked = session.clone();
    let judged = blocking(move || {
        let _turn = turn;
        let checked = asked.remote.resume(asked.ticket.clone()).judge(given, &documents, &grantee, &query);
        Ok(checked.map(|checked| {
            let known = Known::of(&checked.answer["receipt"]);
            let receipt = Some(Box::new(checked.verified.receipt));
            let source = Source { receipt, ..source };
            (of_answer(&checked.answer, &checked.verified.items, &via, &wanted, source), known)
        }))
    });
    let judged = judged.await.map_err(Stopped::Broken)?;
    let (source, known) = judged.map_err(|error| Failure { error, answer })?;
    let held = witnessed::hold(gateway, &session, grant, known).await.map_err(Stopped::Broken)?;
    held.map_err(Stopped::Unwitnessed)?;
    Ok(source)
}

/// What is known of the gateway of a grant, or what is found of it now.
///
/// # Errors
/// [`ClientError`].
pub(crate) async fn session(gateway: &Arc<Gateway>, grant: &Grant) -> Result<Arc<Session>, ClientError> {
    match gateway.remotes.session(&grant.hash, gateway.clock.now()) {
        Some(session) => Ok(session),
        None => open(gateway, grant, ANSWER).await,
    }
}

/// Finds the gateway of a grant, checks what it publishes, and exchanges the grant for a token. Each answer may take `allowed`.
pub(crate) async fn open(
    gateway: &Arc<Gateway>,
    grant: &Grant,
    allowed: Allowance,
) -> Result<Arc<Session>, ClientError> {
    let policy = if gateway.config.allow_local_dids { WebPolicy::AllowLocal } else { WebPolicy::Public };
    let (resolver, clock) = (gateway.resolver.clone(), gateway.clock.clone());
    let origin = locate::origin(&grant.document, &grant.above, &resolver, policy, clock.now()).await;
    let origin = origin.map_err(reaching)?;
    let client = resolver.client().clone();
    let remote =
        Remote::discover_within(client, resolver, clock, origin.as_str(), &grant.granter, allowed).await?;
    let session = remote.exchange(&OwnKey(gateway), &grant.document, &grant.above).await;
    let ticket = session.map_err(reaching)?.ticket();
    let life = Duration::from_secs(u64::try_from(ticket.expires_in()).unwrap_or_default());
    let until = gateway.clock.now().plus(life.saturating_sub(SPARE));
    let session = Arc::new(Session { remote, ticket, until });
    gateway.remotes.keep(grant.hash, session.clone());
    Ok(session)
}

/// A grant that does not hold, before anything is answered under it, is nobody's lie: it is over, or a key of its granter's is.
fn reaching(error: ClientError) -> ClientError {
    let over = || ClientError::Refused {
        own: false,
        status: 403,
        code: Code::grant().as_str().to_owned(),
        message: "the grant does not hold any more".to_owned(),
    };
    if matches!(error, ClientError::Terms(_)) { over() } else { error }
}

/// What a checked answer shows.
fn of_answer(
    answer: &Value,
    verified: &[oap_memory::evidence::VerifiedItem],
    via: &Via,
    wanted: &Wanted,
    mut source: Source,
) -> Source {
    let visible = answer.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    source.items = verified.len();
    for (item, verified) in visible.iter().zip(verified) {
        match show(item, verified, via, wanted) {
            Shown::Is(foreign, bytes) => source.found.push((*foreign, bytes)),
            Shown::Stopped => source.stopped += 1,
            Shown::Not => {}
        }
    }
    source
}

/// What became of it. A lie is what the other gateway published or signed, or should have; what breaks off is none.
pub(crate) fn verdict(error: &ClientError, granter: &Did) -> Verdict {
    match error {
        ClientError::Refused { status: 300..=399, .. } => Verdict::Unreachable(Why::Redirected),
        ClientError::Refused { code, .. } => Verdict::Refused(Code::of(code)),
        ClientError::Unreachable(..) | ClientError::UnknownAuthority(..) => {
            Verdict::Unreachable(Why::Connection)
        }
        ClientError::Malformed(..) | ClientError::Json(_) => Verdict::Unreachable(Why::Unreadable),
        ClientError::Resolve(ResolveError::Document(did, _)) if did == granter => {
            Verdict::Lied(Lie::Document)
        }
        ClientError::Resolve(_) => Verdict::Unreachable(Why::NoDocument),
        ClientError::Manifest(..) => Verdict::Lied(Lie::Manifest),
        ClientError::OtherGateway(..) => Verdict::Lied(Lie::OtherGateway),
        ClientError::NoPlace => Verdict::Unreachable(Why::NoPlace),
        ClientError::NotPublic(_) => Verdict::Unreachable(Why::NotPublic),
        ClientError::Evidence(EvidenceError::Future(_)) => Verdict::Unreachable(Why::Clock),
        ClientError::Evidence(_) => Verdict::Lied(Lie::Proof),
        ClientError::Terms(_) => Verdict::Lied(Lie::Terms),
        ClientError::Mismatch(_) => Verdict::Lied(Lie::OtherAnswer),
        ClientError::Log(_) => Verdict::Unreachable(Why::Unwitnessed),
        ClientError::Prover(_) | ClientError::Signed(_) | ClientError::Key(_) => {
            Verdict::Unreachable(Why::OwnKey)
        }
    }
}

/// The check that failed, by its stable name.
fn check_of(error: &ClientError) -> Option<&'static str> {
    match error {
        ClientError::Evidence(error) => Some(error.id()),
        ClientError::Terms(error) => Some(error.id()),
        _ => None,
    }
}
