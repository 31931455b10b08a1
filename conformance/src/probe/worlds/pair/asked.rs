//! What both sides are asked, and what one of them replies.

use super::super::fill::{Live, Lived};
use crate::probe::Failed;
use crate::probe::context::{Context, mcp};
use crate::probe::declared::Place;
use crate::probe::refusals::Family;
use crate::probe::wire::{Reply, Request};
use crate::world::Grant;
use oap_identity::SubscriptionId;
use serde_json::{Value, json};
use std::fmt;

/// An item that there is not.
pub(super) const NO_ITEM: &str = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
/// What anybody is told of a gateway, beside its status list.
pub(super) const OF_ALL: [&str; 2] = ["/.well-known/oap-memory.json", "/.well-known/did.json"];
/// The log of a grantee.
const LOG: &str = "/oap/audit";
/// What stands before the id of an item whose vector is asked for.
const VECTOR: &str = "/oap/memory/vec/";
/// Where grantees subscribe.
const SUBSCRIBE: &str = "/oap/memory/subscribe";
/// Parts of a path that say which door it is: what follows them is a name.
const DOOR: usize = 4;
/// Seconds between two events: no tick comes while a pair is asked.
const WINDOW: u32 = 86_400;

/// The grant with a budget; the one that has what the first one lacks, and can be passed on; what its grantee makes of that.
const SCANT: usize = 1;
const MORE: usize = 2;
const BELOW: usize = 3;
/// Queries of the grant with a budget.
const BUDGET: usize = 2;
/// Purposes that a grant names, and one that it does not.
const STATED: &str = "travel";
const STATED_TOO: &str = "diary";
const UNSTATED: &str = "surveys";

/// What a gateway offers that it need not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offers {
    /// Tools at `/mcp`.
    tools: bool,
    /// Vectors of items.
    pub(super) vectors: bool,
    /// Subscriptions.
    pub(super) events: bool,
}

impl Offers {
    /// As far as it can be asked.
    pub(super) async fn of(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            tools: is_offered(context, Family::Mcp).await?,
            vectors: context.declared().embeddings,
            events: is_offered(context, Family::Subscriptions).await?,
        })
    }
}

async fn is_offered(context: &Context<'_>, family: Family) -> Result<bool, Failed> {
    match family.offered(context).await {
        Ok(()) => Ok(true),
        Err(Failed::NotDeclared(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

/// The grants that are asked under beside a first one. All show the same.
pub(super) fn others(grant: &Grant, offers: Offers) -> [Grant; 3] {
    let of = |number: usize| Grant { grantee: grant.grantee + number, queries: Vec::new(), ..grant.clone() };
    let (mut scant, mut more) = (of(SCANT), of(MORE));
    scant.draft["budget"] = json!({"queries": BUDGET});
    more.draft["purpose_codes"] = json!([STATED, STATED_TOO]);
    more.draft["delegable"] = json!({"max_depth": 1});
    if offers.vectors {
        more.draft["embedding_access"] = json!(true);
    }
    if offers.events {
        more.draft["operations"] = json!(["query", "export", "subscribe"]);
    }
    // It differs from the one above in this alone.
    let draft = json!({"operations": ["query", "export"], "purpose_codes": [STATED]});
    [scant, more, Grant { parent: Some(MORE), draft, ..of(BELOW) }]
}

/// What is asked of a side.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    /// A request with the token.
    Plain(Request),
    /// The same for a stream of events, read as far as the first one.
    Event(Request),
    /// A request without a token.
    Anybody(Request),
    /// A query as the action `memory.query`.
    Action(Value),
    /// A query by a tool at `/mcp`.
    Tool(Value),
    /// The grant is exchanged once more.
    Exchange,
    /// What its grantee is told of its state.
    State,
    /// The receipt of the last answer is signed by the grantee, too.
    Countersigned,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(ask) | Self::Event(ask) | Self::Anybody(ask) => {
                let body = String::from_utf8_lossy(ask.body.as_deref().unwrap_or_default());
                write!(f, "{} {body}", ask.path)
            }
            Self::Action(query) => write!(f, "memory.query {query}"),
            Self::Tool(query) => write!(f, "a tool {query}"),
            Self::Exchange => f.write_str("an exchange"),
            Self::State => f.write_str("the state of the grant"),
            Self::Countersigned => f.write_str("a countersignature"),
        }
    }
}

impl Ask {
    /// Where it is asked, whatever about.
    pub(super) fn door(&self) -> String {
        match self {
            Self::Plain(ask) | Self::Event(ask) | Self::Anybody(ask) => {
                let path = ask.path.split('?').next().unwrap_or_default();
                path.split('/').take(DOOR).collect::<Vec<_>>().join("/")
            }
            Self::Action(_) => "memory.query".to_owned(),
            Self::Tool(_) => "a tool".to_owned(),
            Self::Exchange | Self::State | Self::Countersigned => self.to_string(),
        }
    }

    /// Whether every grant permits it.
    fn is_permitted(&self) -> bool {
        match self {
            Self::Exchange | Self::State => true,
            Self::Action(query) | Self::Tool(query) => *query == listing(),
            Self::Plain(_) | Self::Event(_) | Self::Anybody(_) | Self::Countersigned => false,
        }
    }

    /// The same query for the page behind this answer, where there is one.
    pub(super) fn behind(&self, reply: &Reply) -> Option<Self> {
        let answer = reply.json();
        let places = ["/next_cursor", "/output/next_cursor", "/result/structuredContent/next_cursor"];
        let cursor = places.iter().find_map(|place| answer.pointer(place)?.as_str())?;
        let turned = |query: &Value| {
            let mut query = query.clone();
            query["cursor"] = json!(cursor);
            query
        };
        Some(match self {
            Self::Plain(ask) => {
                let query = turned(&serde_json::from_slice(ask.body.as_deref()?).ok()?);
                Self::Plain(Request { body: Some(query.to_string().into_bytes()), ..ask.clone() })
            }
            Self::Action(query) => Self::Action(turned(query)),
            Self::Tool(query) => Self::Tool(turned(query)),
            Self::Event(_) | Self::Anybody(_) | Self::Exchange | Self::State | Self::Countersigned => {
                return None;
            }
        })
    }

    /// What one side replies, under a grant of it.
    pub(super) async fn told(
        &self,
        lived: &Lived<'_>,
        live: &Live,
        receipt: &Value,
    ) -> Result<Reply, Failed> {
        let (context, session) = (lived.context, &live.session);
        let (key, grant) = (&session.grantee, &session.grant);
        match self {
            Self::Plain(ask) | Self::Event(ask) => {
                let made = || {
                    let headers = context.credentials(session, key, ask.method, &ask.path)?;
                    let mut request = ask.clone();
                    request.headers.extend(headers.into_iter().map(|(name, value)| (name.to_owned(), value)));
                    Ok(request)
                };
                if matches!(self, Self::Event(_)) {
                    context.send_for_event(made).await
                } else {
                    context.send_each(made).await
                }
            }
            Self::Anybody(ask) => context.send(ask.clone()).await,
            Self::Action(query) => Ok(context.query_by_envelope(session, query).await?.1),
            Self::Tool(query) => context.query_by_mcp(session, query).await,
            Self::Exchange => context.present(key, grant, grant, &live.above).await,
            Self::State => context.state_of(key, grant).await,
            Self::Countersigned => context.countersign(key, receipt).await,
        }
    }
}

/// What is asked of both sides, under a grant of the world.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) grant: usize,
    pub(super) asks: [Ask; 2],
    pub(super) must: Must,
}

/// What must become of a request beside that it is the same on both sides: two that refuse everything look the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// Whatever both say.
    Agree,
    /// It is answered.
    Answer,
    /// It is answered with what the grant shows.
    List,
}

impl Asked {
    /// The same of both, under the first grant.
    pub(super) fn of(ask: Ask) -> Self {
        Self::under(0, ask)
    }

    /// The same of both.
    fn under(grant: usize, ask: Ask) -> Self {
        Self::each(grant, [ask.clone(), ask])
    }

    /// Of each side its own.
    fn each(grant: usize, asks: [Ask; 2]) -> Self {
        let must = if asks[0].is_permitted() { Must::Answer } else { Must::Agree };
        Self { grant, asks, must }
    }

    /// The same, which must be answered.
    fn answered(self) -> Self {
        Self { must: Must::Answer, ..self }
    }

    /// The same of both, the first time for what the grant shows: two that show nothing look the same. Where there is room for few, items are shown by
    /// their times then, and not by their ids.
    fn listed(grant: usize, asks: Vec<Ask>) -> impl Iterator<Item = Self> {
        let asks = asks.into_iter().enumerate();
        asks.map(move |(number, ask)| {
            let asked = Self::under(grant, ask);
            if number == 0 { Self { must: Must::List, ..asked } } else { asked }
        })
    }
}

pub(super) fn get(path: String) -> Request {
    Request { method: "GET", path, ..Request::default() }
}

fn post(path: &str, document: &Value) -> Ask {
    Ask::Plain(Request {
        method: "POST",
        path: path.to_owned(),
        headers: vec![("content-type".to_owned(), "application/oap+json".to_owned())],
        body: Some(document.to_string().into_bytes()),
    })
}

fn query(context: &Context<'_>, query: &Value) -> Ask {
    post(context.at(Place::Query), query)
}

fn export(context: &Context<'_>) -> Ask {
    let path = context.at(Place::Export).to_owned();
    Ask::Plain(Request { method: "POST", path, ..Request::default() })
}

/// A query that lists, by the other ways.
fn listing() -> Value {
    json!({"max_results": 2})
}

fn log() -> Ask {
    Ask::Plain(get(LOG.to_owned()))
}

/// What is asked of both under the first grant.
pub(super) fn requests(context: &Context<'_>, queries: &[Value], offers: Offers) -> Vec<Asked> {
    let more = [json!({"max_results": 2}), json!({"query": "", "cursor": "AAAA"}), json!({"nothing": 1})];
    let mut all: Vec<Ask> = queries.iter().chain(&more).map(|asked| query(context, asked)).collect();
    all.push(Ask::Plain(get(format!("{VECTOR}{NO_ITEM}"))));
    all.extend([Ask::Exchange, Ask::State, Ask::Countersigned]);
    all.extend(ways(queries, offers));
    let export = Asked::under(0, export(context)).answered();
    Asked::listed(0, all).chain([export, Asked::under(0, log()).answered()]).collect()
}

/// What is asked by the other ways: a listing, words where some are asked for, a cursor that is none.
fn ways(queries: &[Value], offers: Offers) -> Vec<Ask> {
    let has_words = |query: &&Value| query["query"].as_str().is_some_and(|words| !words.trim().is_empty());
    let words = queries.iter().find(|query| has_words(query) && mcp::takes(query)).cloned();
    let asks = [listing(), json!({"query": "", "cursor": "AAAA"})].into_iter().chain(words);
    let asks: Vec<Value> = asks.collect();
    let mut all: Vec<Ask> = asks.iter().cloned().map(Ask::Action).collect();
    if offers.tools {
        all.extend(asks.into_iter().map(Ask::Tool));
    }
    all
}

/// The budget of the second grant is spent, and one is told so.
pub(super) fn spent(context: &Context<'_>) -> Vec<Asked> {
    let mut asks = vec![query(context, &json!({"max_results": 100})); BUDGET + 1];
    asks.extend([export(context), Ask::State, log()]);
    asks.into_iter().map(|ask| Asked::under(SCANT, ask)).collect()
}

/// What is asked of an item that the grants hide, or that there is not, by the id that it has on each side.
pub(super) fn of_hidden(ids: [&str; 2], offers: Offers) -> Vec<Asked> {
    let asked =
        |grant: usize, path: &str| Asked::each(grant, ids.map(|id| Ask::Plain(get(format!("{path}{id}")))));
    let mut all = vec![asked(0, VECTOR), asked(0, &format!("{LOG}?item_id="))];
    if offers.vectors {
        all.push(asked(MORE, VECTOR));
    }
    all
}

/// What is asked under the grant that has what the first one lacks, and under the one that is made from it. `shown` are the items that both show, and
/// `names` the names of a subscription, by the ids and names that they have on each side.
pub(super) fn further(
    context: &Context<'_>,
    offers: Offers,
    shown: &[Vec<String>; 2],
    names: &[String; 2],
) -> Vec<Asked> {
    let stating = |purpose: &str| json!({"max_results": 100, "purpose": purpose});
    let mut more = vec![
        query(context, &stating(STATED)),
        Ask::Action(json!({"max_results": 2, "purpose": STATED_TOO})),
        query(context, &stating(UNSTATED)),
    ];
    if offers.tools {
        more.push(Ask::Tool(stating(STATED_TOO)));
    }
    if offers.vectors {
        more.push(query(context, &json!({"max_results": 100, "include_embeddings": true})));
    }
    let below = vec![
        query(context, &stating(STATED)),
        Ask::Countersigned,
        query(context, &stating(STATED_TOO)),
        Ask::Exchange,
        Ask::State,
        log(),
    ];
    let mut all: Vec<Asked> = Asked::listed(MORE, more).chain(Asked::listed(BELOW, below)).collect();
    all.push(Asked::under(BELOW, export(context)).answered());
    if offers.vectors {
        all.extend(vectors(shown));
    }
    if offers.events {
        all.extend(events(names));
    }
    all.push(Asked::under(MORE, log()));
    all
}

/// The vectors of items, and one of them under the grant that is made from the other.
fn vectors([of_one, of_other]: &[Vec<String>; 2]) -> Vec<Asked> {
    let asked = |grant: usize, ids: [&String; 2]| {
        Asked::each(grant, ids.map(|id| Ask::Plain(get(format!("{VECTOR}{id}")))))
    };
    let ids: Vec<[&String; 2]> = of_one.iter().zip(of_other).map(|(one, other)| [one, other]).collect();
    let below = ids.first().map(|ids| asked(BELOW, *ids));
    ids.iter().map(|ids| asked(MORE, *ids)).chain(below).collect()
}

/// A name for a subscription of each side.
pub(super) fn subscriptions(contexts: [&Context<'_>; 2]) -> [String; 2] {
    contexts.map(|context| SubscriptionId::new(context.now(), context.random()).to_string())
}

/// A grantee subscribes, is told what there is, and then what there is beside that.
fn events(names: &[String; 2]) -> Vec<Asked> {
    let made = names.each_ref().map(|name| post(SUBSCRIBE, &json!({"subscription": name, "window": WINDOW})));
    let read = |last: Option<&str>| {
        names.each_ref().map(|name| {
            let headers = last.map(|last| ("last-event-id".to_owned(), last.to_owned()));
            let path = format!("{SUBSCRIBE}/{name}/events");
            Ask::Event(Request { headers: headers.into_iter().collect(), ..get(path) })
        })
    };
    let [made, first, next] = [made, read(None), read(Some("1"))].map(|asks| Asked::each(MORE, asks));
    vec![made.answered(), first.answered(), next]
}

/// The subscription is ended.
pub(super) fn ended(names: &[String; 2]) -> Asked {
    let end = |name: &String| post(&format!("{SUBSCRIBE}/{name}/end"), &json!({}));
    Asked::each(MORE, names.each_ref().map(end))
}
