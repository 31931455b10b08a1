//! The network between the gateways of a history. What goes over it is seen; pairs of gateways are cut off from each other, lose answers, or
//! get everything twice.
//!
//! One gateway acts at a time. So whoever comes to another's door is the one that acts, and whoever comes to that one's own is asked by it.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response, StatusCode, request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use oap_federation::ask::AccessRequest;
use oap_federation::reply::LetterResult;
use oap_federation::{Content, Letter, LetterKind, Reply, SignedLetter, UnverifiedLetter};
use oap_gateway::Gateway;
use oap_identity::{AskId, LetterId, Timestamp};
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use tower::ServiceExt;

/// How many gateways a history has.
pub const HOUSES: usize = 3;
/// How long something may be remembered of a gateway that was not there: failures to resolve a DID, for 30 seconds.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Most bytes of a request or an answer.
const MOST: usize = 8 << 20;

/// What is between two gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Up,
    /// Nobody reaches the other.
    Cut,
    /// What is posted has its effect, and its answer is lost.
    Deaf,
    /// What is posted comes twice; the first answer goes back.
    Twice,
}

/// What the network does that no gateway would: with it a model that sees nothing is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Letters of this type have no effect, and are answered as if they had.
    Swallows(LetterKind),
    /// Letters of this type come once more, under another name.
    Doubles(LetterKind),
    /// Every query is answered as the first one was.
    Replays,
}

/// A letter that came to a gateway.
#[derive(Debug, Clone)]
pub struct SeenLetter {
    pub to: usize,
    pub letter: Value,
    /// The reply, where it was taken at all.
    pub reply: Option<Value>,
    /// Whether the reply goes back.
    pub back: bool,
    /// Of one that comes twice, whether both were answered alike, byte for byte.
    pub even: bool,
}

/// A query that was answered.
#[derive(Debug, Clone)]
pub struct SeenQuery {
    pub from: usize,
    pub to: usize,
    /// The moment at which it came.
    pub began: u64,
    pub answer: Value,
    pub back: bool,
}

#[derive(Debug, Clone)]
pub enum Seen {
    Letter(Box<SeenLetter>),
    Query(Box<SeenQuery>),
}

#[derive(Clone)]
struct Standing {
    router: Router,
    gateway: Arc<Gateway>,
}

struct State {
    actor: usize,
    now: Timestamp,
    links: [[Link; HOUSES]; HOUSES],
    /// When a pair last had trouble with each other.
    trouble: [[Option<Timestamp>; HOUSES]; HOUSES],
    houses: [Option<Standing>; HOUSES],
    seen: Vec<Seen>,
    moment: u64,
    fault: Fault,
    first_answer: Option<Bytes>,
}

pub struct Wire(Mutex<State>);

/// Whoever comes to a door.
struct Comer {
    from: usize,
    link: Link,
    standing: Standing,
    began: u64,
    fault: Fault,
}

fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or(Value::Null)
}

async fn ask(router: &Router, head: request::Parts, body: Bytes) -> io::Result<(StatusCode, Bytes)> {
    let request = Request::from_parts(head, Body::from(body));
    let response = router.clone().oneshot(request).await.map_err(io::Error::other)?;
    let (head, body) = response.into_parts();
    Ok((head.status, axum::body::to_bytes(body, MOST).await.map_err(io::Error::other)?))
}

fn response(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
}

impl Wire {
    pub fn new(now: Timestamp, fault: Fault) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            actor: 0,
            now,
            links: [[Link::Up; HOUSES]; HOUSES],
            trouble: [[None; HOUSES]; HOUSES],
            houses: [None, None, None],
            seen: Vec::new(),
            moment: 0,
            fault,
            first_answer: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Opens a door on loopback; the DID of whoever is behind it.
    pub async fn listen(self: &Arc<Self>, number: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let wire = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let wire = wire.clone();
                let service = service_fn(move |request| wire.clone().take(number, request));
                let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    // That connections break off is what it is for.
                    let _ = serving.await;
                });
            }
        });
        format!("did:web:localhost%3A{port}")
    }

    /// Who is behind a door from now on.
    pub fn stands(&self, number: usize, router: Router, gateway: Arc<Gateway>) {
        self.state().houses[number] = Some(Standing { router, gateway });
    }

    /// Nobody is.
    pub fn falls(&self, number: usize) {
        self.state().houses[number] = None;
    }

    /// Says who acts from now on.
    pub fn acts(&self, number: usize) {
        self.state().actor = number;
    }

    pub fn set(&self, a: usize, b: usize, is: Link) {
        let mut state = self.state();
        (state.links[a][b], state.links[b][a]) = (is, is);
    }

    pub fn goes_on(&self, now: Timestamp) {
        self.state().now = now;
    }

    /// A new moment, later than all before.
    pub fn moment(&self) -> u64 {
        let mut state = self.state();
        state.moment += 1;
        state.moment
    }

    /// What was seen since the last time.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().seen)
    }

    /// Whether two reach each other, and did so lately.
    pub fn is_calm(&self, a: usize, b: usize) -> bool {
        let state = self.state();
        let lately = |at: Option<Timestamp>| at.is_some_and(|at| state.now < at.plus(REMEMBERED));
        state.links[a][b] != Link::Cut
            && state.links[a][b] != Link::Deaf
            && !lately(state.trouble[a][b])
            && !lately(state.trouble[b][a])
    }

    fn comes(&self, to: usize) -> io::Result<Comer> {
        let mut state = self.state();
        let from = state.actor;
        let link = if from == to { Link::Up } else { state.links[from][to] };
        if link == Link::Cut {
            state.trouble[from][to] = Some(state.now);
            return Err(gone());
        }
        state.moment += 1;
        let standing = state.houses[to].clone().ok_or_else(gone)?;
        Ok(Comer { from, link, standing, began: state.moment, fault: state.fault })
    }

    fn had_trouble(&self, from: usize, to: usize) {
        let mut state = self.state();
        state.trouble[from][to] = Some(state.now);
    }

    async fn take(self: Arc<Self>, to: usize, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let comer = self.comes(to)?;
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(Body::new(body), MOST).await.map_err(io::Error::other)?;
        let is_post = head.method == Method::POST;
        let (status, answer) = match head.uri.path() {
            "/oap/peer/letter" => self.letter(to, &comer, head, body).await?,
            "/oap/memory/query" => self.query(to, &comer, head, body).await?,
            _ => ask(&comer.standing.router, head, body).await?,
        };
        if is_post && comer.link == Link::Deaf {
            self.had_trouble(comer.from, to);
            return Err(gone());
        }
        Ok(response(status, answer))
    }

    async fn letter(
        &self,
        to: usize,
        comer: &Comer,
        head: request::Parts,
        body: Bytes,
    ) -> io::Result<(StatusCode, Bytes)> {
        let letter = read(&body);
        let is = |kind: LetterKind| letter["type"] == kind.as_str();
        let first = match comer.fault {
            Fault::Swallows(kind) if is(kind) => (StatusCode::OK, swallowed(&body, &comer.standing.gateway)),
            _ => ask(&comer.standing.router, head.clone(), body.clone()).await?,
        };
        if first.0 != StatusCode::OK {
            self.had_trouble(comer.from, to);
        }
        let seen = |answer: &(StatusCode, Bytes), back: bool, even: bool| {
            let reply = (answer.0 == StatusCode::OK).then(|| read(&answer.1));
            Seen::Letter(Box::new(SeenLetter { to, letter: letter.clone(), reply, back, even }))
        };
        let back = comer.link != Link::Deaf;
        self.state().seen.push(seen(&first, back, true));
        if comer.link == Link::Twice {
            let second = ask(&comer.standing.router, head.clone(), body).await?;
            let both = first.0 == StatusCode::OK && second.0 == StatusCode::OK;
            let even = !both || first.1 == second.1;
            self.state().seen.push(seen(&second, false, even));
        }
        if let Fault::Doubles(kind) = comer.fault
            && is(kind)
        {
            let sender = self.state().houses[comer.from].clone().ok_or_else(gone)?;
            ask(&comer.standing.router, head, doubled(&letter, &sender.gateway)).await?;
        }
        Ok(first)
    }

    async fn query(
        &self,
        to: usize,
        comer: &Comer,
        head: request::Parts,
        body: Bytes,
    ) -> io::Result<(StatusCode, Bytes)> {
        let before = self.state().first_answer.clone().filter(|_| comer.fault == Fault::Replays);
        let first = match before {
            Some(before) => (StatusCode::OK, before),
            None => ask(&comer.standing.router, head.clone(), body.clone()).await?,
        };
        let mut answers = vec![(first.clone(), comer.link != Link::Deaf)];
        if comer.link == Link::Twice {
            answers.push((ask(&comer.standing.router, head, body).await?, false));
        }
        let mut state = self.state();
        for ((status, answer), back) in answers {
            if status == StatusCode::OK {
                let (from, began) = (comer.from, comer.began);
                let answer = read(&answer);
                state.seen.push(Seen::Query(Box::new(SeenQuery { from, to, began, answer, back })));
            }
        }
        if first.0 == StatusCode::OK && state.first_answer.is_none() {
            state.first_answer = Some(first.1.clone());
        }
        Ok(first)
    }
}

/// What a gateway would sign that took a letter, which this one never sees.
fn swallowed(letter: &[u8], gateway: &Gateway) -> Bytes {
    let hash = UnverifiedLetter::parse(letter).unwrap().hash();
    let at = read(letter)["issued_at"].as_str().unwrap().parse().unwrap();
    let reply = Reply::new(LetterResult::taken(), hash, gateway.principal().clone(), at);
    reply.sign(gateway.keys().current()).unwrap().into()
}

/// What a letter says, in another one of the same sender's.
fn doubled(letter: &Value, sender: &Gateway) -> Bytes {
    let text = |member: &str| letter[member].as_str().unwrap();
    let kind: LetterKind = serde_json::from_value(letter["type"].clone()).unwrap();
    let mut content = Content::read(kind, letter["body"].clone()).unwrap();
    if let Content::AccessRequest(request) = &mut content {
        let AccessRequest { request, ask } = request.as_mut();
        (*request, ask.max_items) = (AskId::from_bytes([9; 16]), ask.max_items + 1);
    }
    let letter = Letter {
        id: LetterId::from_bytes([9; 16]),
        from: text("from").parse().unwrap(),
        to: text("to").parse().unwrap(),
        issued_at: text("issued_at").parse().unwrap(),
        expires_at: text("expires_at").parse().unwrap(),
        content,
    };
    SignedLetter::sign(&letter, sender.keys().current()).unwrap().bytes().to_vec().into()
}
