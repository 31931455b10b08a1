//! Two fillings that differ only in what a grant hides: whoever has the grant must not be able to tell them apart.

use super::super::Failed;
use super::super::context::{Context, expect, mcp};
use super::super::declared::Place;
use super::super::refusals::Family;
use super::super::wire::{Reply, Request};
use super::Finding;
use super::fill::{Live, Lived};
use super::fresh::{Names, blank, difference};
use super::live::exchange;
use crate::model::{Difference, Disclosed, Model};
use crate::world::{CONTACTS, Canaries, Grant, Item, Setting, World};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// How long a run may take: what looks the same must do so until then, for its end may come while it is asked for.
const RUN: Duration = Duration::from_secs(3600);

/// Headers of which each reply has its own.
const FRESH: [&str; 3] = ["date", "oap-request-id", "x-request-id"];
/// Pages that are walked after the first.
const PAGES: usize = 3;
/// How often both sides are asked once more where their headers differ: what differs on one side too tells nothing.
const AGAIN: usize = 3;

/// What is seen of an item now, and when the run is over at the latest.
fn seen(model: &Model, grant: &Value, item: &Item, setting: &Setting) -> [Option<Value>; 2] {
    [setting.now, setting.now.plus(RUN)].map(|at| seen_at(model, grant, item, setting, at))
}

fn seen_at(model: &Model, grant: &Value, item: &Item, setting: &Setting, at: Timestamp) -> Option<Value> {
    const ID: &str = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
    let mut model = model.clone();
    model.granted(grant);
    model.captured(ID, &item.draft, setting.now, &item.planted);
    let grant_id = grant["grant_id"].as_str().unwrap_or_default();
    let listed = model.query(grant_id, &json!({"max_results": 100}), at, &Disclosed::default());
    let answer = listed.answer()?;
    let shown = answer.items.get(ID)?;
    // The conditions of queries see what is shown alone; the shown leaves are all.
    Some(json!({"shown": shown, "chain": answer.chain.get(ID)}))
}

/// One grant of a world, over the world and over its twin, in two scopes of one gateway or each in a gateway of its own; whether it shows something.
///
/// # Errors
/// When the run is over.
pub(in super::super) async fn pair(
    contexts: [&Context<'_>; 2],
    manifest: &Value,
    world: &World,
    setting: &Setting,
    findings: &mut Vec<Finding>,
) -> Result<bool, Failed> {
    let [context, beside] = contexts;
    let mut world = world.apart(setting);
    let Some(mut grant) = chosen(&world).cloned() else { return Ok(false) };
    // Nothing but what is shown is to decide.
    for (name, value) in
        [("operations", json!(["query", "export"])), ("max_items", json!(setting.max_items.min(100)))]
    {
        grant.draft[name] = value;
    }
    for name in ["budget", "purpose_codes", "delegable", "embedding_access"] {
        grant.draft.as_object_mut().map(|members| members.remove(name));
    }
    grant.queries.iter_mut().filter_map(Value::as_object_mut).for_each(|query| {
        query.remove("max_results");
    });
    // Ranks of items that are as near as each other go by their ids, which are fresh.
    let listing = |query: &Value| query["query"].as_str().is_none_or(|words| words.trim().is_empty());
    grant.queries.retain(|query| !context.declared().embeddings || listing(query));
    let mut scant = Grant { grantee: grant.grantee + 1, queries: Vec::new(), ..grant.clone() };
    scant.draft["budget"] = json!({"queries": BUDGET});
    world.grants = vec![grant.clone(), scant];
    let principal = manifest["principal"].as_str().unwrap_or_default();
    let did = principal.parse().map_err(|_| Failed::Wrong("the manifest has no principal".to_owned()))?;
    let model = Model::new(did, manifest, Vec::new());
    let mut drawn = grant.draft.clone();
    drawn["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
    drawn["granter"] = json!(format!("{principal}#{}", world.scope));
    drawn["grantee"] = json!("did:web:somebody.example");
    drawn["issued_at"] = json!(setting.now);
    let look = |item: &Item| seen(&model, &drawn, item, setting);
    let twin =
        world.twin(!world.seed, setting, &|item| look(item) != [None, None], &|a, b| look(a) == look(b));
    let canaries = Canaries::default();
    let are_two = !std::ptr::eq(context, beside);
    let other = if are_two {
        twin.clone()
    } else {
        twin.in_scope(&format!("w{}", context.word().get(..11).unwrap_or_default()))
    };
    let sides = [
        Lived::fill(context, &world, manifest, &canaries).await?,
        Lived::fill(beside, &other, manifest, &canaries).await?,
    ];
    let mut pair = Pair {
        level: format!("level {} of {}", grant.draft["trust_level"], grant.draft["redaction_profile"]),
        // Two that show nothing look the same.
        is_shown: world.items().any(|item| look(item).iter().all(Option::is_some)),
        fresh: FRESH.map(str::to_owned).into(),
        receipts: [Value::Null, Value::Null],
        sides,
    };
    // The second one as it was drawn: what is seen is of one scope.
    let hidden =
        [(&world, &pair.sides[0]), (&twin, &pair.sides[1])].map(|(drawn, side)| hidden(drawn, side, &look));
    let first = hidden.each_ref().map(|all| all.first().map(|(_, id)| id.clone()));
    let mut asks = requests(context, &grant.queries);
    asks.extend(ways(context, &grant.queries).await?);
    asks.push(Asked::of(Ask::Plain(get("/oap/audit".to_owned()))));
    if are_two {
        asks.extend(OF_ALL.map(|path| Asked::of(Ask::Anybody(get(path.to_owned())))));
        asks.push(Asked::of(Ask::Anybody(get(context.at(Place::Status).to_owned()))));
    }
    asks.extend(spent(context));
    asks.extend(of_hidden(&first));
    let mut again = pair.round(asks, findings).await?;
    // What becomes of what is hidden on one side alone shows on neither.
    let [of_one, of_other] = &hidden;
    let [first, second] = first;
    let is_second = !of_other.is_empty();
    let (context, items) = if is_second { (beside, of_other) } else { (context, of_one) };
    let Some(item) = items.first() else { return Ok(pair.is_shown) };
    if let Some(command) = correction(item, &context.word(), &look) {
        // What is over may be refused.
        let _ = context.try_owner(command).await?;
    }
    let Some(gone) = deleted(context, items).await? else { return Ok(pair.is_shown) };
    let side = &mut pair.sides[usize::from(is_second)];
    side.model.deleted(std::slice::from_ref(&gone), context.now());
    // But for the one that was corrected, of which the model does not know.
    let others = items.iter().skip(1).map(|(_, id)| id.as_str()).collect();
    asked_by_another(side, &others).await?;
    pair.level += ", once something of that was corrected, deleted and shown to another on one side";
    again.extend(of_hidden(&if is_second { [first, Some(gone)] } else { [Some(gone), second] }));
    pair.round(again, findings).await.map(|_| pair.is_shown)
}

/// What anybody is told of a gateway, beside its status list.
const OF_ALL: [&str; 2] = ["/.well-known/oap-memory.json", "/.well-known/did.json"];
/// Queries of the second grant, which is the first one with a budget.
const BUDGET: usize = 2;

/// What is asked of a side.
#[derive(Debug, Clone)]
enum Ask {
    /// A request with the token.
    Plain(Request),
    /// The same without one.
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
            Self::Plain(ask) | Self::Anybody(ask) => {
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

/// What is asked of both sides, under a grant of the world.
#[derive(Debug, Clone)]
struct Asked {
    grant: usize,
    asks: [Ask; 2],
}

impl Asked {
    /// The same of both, under the first grant.
    fn of(ask: Ask) -> Self {
        Self { grant: 0, asks: [ask.clone(), ask] }
    }
}

/// Two sides that are asked the same.
struct Pair<'a> {
    sides: [Lived<'a>; 2],
    /// Whether the grant shows something.
    is_shown: bool,
    /// What findings say of it.
    level: String,
    /// Headers that each reply has of its own, such as a proxy makes.
    fresh: BTreeSet<String>,
    /// The receipt of the last answer of each side.
    receipts: [Value; 2],
}

impl Pair<'_> {
    /// What both sides reply; nothing where one has no such grant. Headers that differ on one side, too, are fresh.
    async fn replies(&mut self, grant: usize, asks: &[Ask; 2]) -> Result<Option<[Reply; 2]>, Failed> {
        let [one, other] = &self.sides;
        let (Some(of_one), Some(of_other)) = (one.grants.get(&grant), other.grants.get(&grant)) else {
            return Ok(None);
        };
        let first = told(one, of_one, &asks[0], &self.receipts[0]).await?;
        let second = told(other, of_other, &asks[1], &self.receipts[1]).await?;
        if first.status == second.status && !headers_apart(&first, &second, &self.fresh).is_empty() {
            for _ in 0..AGAIN {
                let again = told(one, of_one, &asks[0], &self.receipts[0]).await?;
                self.fresh.extend(headers_apart(&first, &again, &self.fresh));
                let again = told(other, of_other, &asks[1], &self.receipts[1]).await?;
                self.fresh.extend(headers_apart(&second, &again, &self.fresh));
            }
        }
        Ok(Some([first, second]))
    }

    /// Asks both sides, the pages behind each answer too; what was answered.
    async fn round(&mut self, asks: Vec<Asked>, findings: &mut Vec<Finding>) -> Result<Vec<Asked>, Failed> {
        let mut answered = Vec::new();
        // A token may have been for a minute.
        for side in &mut self.sides {
            for grant in side.grants.keys().copied().collect::<Vec<_>>() {
                exchange(side, grant, findings).await?;
            }
        }
        for (number, asked) in asks.into_iter().enumerate() {
            let mut asks = asked.asks.clone();
            for page in 0..=PAGES {
                let Some(replies) = self.replies(asked.grant, &asks).await? else { break };
                let shows = |reply: &Reply| {
                    let items = reply.json()["items"].as_array().map_or(0, Vec::len);
                    reply.status == 200 && (items > 0 || !self.is_shown)
                };
                // The first one lists all.
                expect(number > 0 || replies.iter().all(shows), || {
                    format!("{}: a listing is not answered with what the grant shows", self.level)
                })?;
                if page == 0 && replies.iter().all(|reply| reply.status == 200) {
                    answered.push(asked.clone());
                }
                let names = self.sides.each_ref().map(names);
                if let Some((at, why)) = apart(replies.each_ref(), &names, &self.fresh) {
                    let [ask, _] = &asks;
                    findings.push(Finding {
                        seed: self.sides[0].world.seed,
                        grant: format!(
                            "{}, over two fillings that differ in what it hides alone",
                            self.level
                        ),
                        query: json!(ask.to_string()),
                        difference: Difference { at, why },
                    });
                    break;
                }
                for (kept, reply) in self.receipts.iter_mut().zip(&replies) {
                    let answer = reply.json();
                    if answer["items"].is_array() && answer["receipt"].is_object() {
                        kept.clone_from(&answer["receipt"]);
                    }
                }
                let [Some(first), Some(second)] = [0, 1].map(|side| behind(&asks[side], &replies[side]))
                else {
                    break;
                };
                asks = [first, second];
            }
        }
        Ok(answered)
    }
}

/// One of the grants that the owner issues. Worlds of successive seeds come to every level of every profile so.
fn chosen(world: &World) -> Option<&Grant> {
    let issued = || world.grants.iter().filter(|grant| grant.parent.is_none());
    let turn = world.seed % (issued().count().max(1) as u64);
    issued().nth(usize::try_from(turn).unwrap_or(0))
}

/// Items that the grant hides, with their ids; no contacts, which what is shown may name.
fn hidden<'w>(
    drawn: &'w World,
    lived: &Lived<'_>,
    look: &dyn Fn(&Item) -> [Option<Value>; 2],
) -> Vec<(&'w Item, String)> {
    let hidden = drawn.items().enumerate().skip(CONTACTS);
    let hidden = hidden.filter(|(_, item)| look(item) == [None, None]);
    hidden.filter_map(|(number, item)| Some((item, lived.ids.get(&number)?.clone()))).collect()
}

/// A command of the owner's that gives a hidden item another text, where it is hidden then, too.
fn correction(
    (item, id): &(&Item, String),
    text: &str,
    look: &dyn Fn(&Item) -> [Option<Value>; 2],
) -> Option<Value> {
    let mut other = (*item).clone();
    other.draft["content"]["text"] = json!(text);
    other.planted.spans.clear();
    (look(&other) == [None, None])
        .then(|| json!({"do": "correct", "item_id": id, "item": {"content": {"text": text}}}))
}

/// The owner deletes the last of these items that is not refused; its id.
async fn deleted(context: &Context<'_>, items: &[(&Item, String)]) -> Result<Option<String>, Failed> {
    for (_, id) in items.iter().rev() {
        if context.try_owner(json!({"do": "delete", "item_ids": [id]})).await?.is_ok() {
            return Ok(Some(id.clone()));
        }
    }
    Ok(None)
}

/// Another grantee is granted what the first one is not, on this side alone, and is shown of these items what the model says.
async fn asked_by_another(lived: &Lived<'_>, hidden: &BTreeSet<&str>) -> Result<(), Failed> {
    let context = lived.context;
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, "", 4);
    draft["filter"] = json!({});
    draft["scope"] = json!(lived.world.scope);
    let session = context.session(grantee, draft).await?;
    // What is only thought of decides nothing.
    let mut model = lived.model.clone();
    model.granted(&session.grant);
    let query = json!({"max_results": 100});
    let grant_id = session.grant["grant_id"].as_str().unwrap_or_default();
    let listed = model.query(grant_id, &query, context.now(), &Disclosed::default());
    let must: BTreeSet<&str> =
        listed.answer().into_iter().flat_map(|answer| answer.items.keys()).map(String::as_str).collect();
    let answer = context.answer(&session, &query).await?;
    let shown: BTreeSet<&str> = answer["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["item_id"].as_str())
        .collect();
    // Which of more than there is room for are shown is left open here.
    let is_whole = (must.len() as u64) < session.grant["max_items"].as_u64().unwrap_or(0);
    expect(!is_whole || hidden.iter().all(|id| must.contains(id) == shown.contains(id)), || {
        format!("to another grantee, of {hidden:?}: {shown:?} are shown, must be {must:?}")
    })
}

/// The same query for the page behind this answer, where there is one.
fn behind(ask: &Ask, reply: &Reply) -> Option<Ask> {
    let answer = reply.json();
    let places = ["/next_cursor", "/output/next_cursor", "/result/structuredContent/next_cursor"];
    let cursor = places.iter().find_map(|place| answer.pointer(place)?.as_str())?;
    let turned = |query: &Value| {
        let mut query = query.clone();
        query["cursor"] = json!(cursor);
        query
    };
    Some(match ask {
        Ask::Plain(ask) => {
            let query = turned(&serde_json::from_slice(ask.body.as_deref()?).ok()?);
            Ask::Plain(Request { body: Some(query.to_string().into_bytes()), ..ask.clone() })
        }
        Ask::Action(query) => Ask::Action(turned(query)),
        Ask::Tool(query) => Ask::Tool(turned(query)),
        Ask::Anybody(_) | Ask::Exchange | Ask::State | Ask::Countersigned => return None,
    })
}

/// What one side replies, under a grant of it.
async fn told(lived: &Lived<'_>, live: &Live, ask: &Ask, receipt: &Value) -> Result<Reply, Failed> {
    let (context, session) = (lived.context, &live.session);
    match ask {
        Ask::Plain(ask) => {
            let made = || {
                let headers = context.credentials(session, &session.grantee, ask.method, &ask.path)?;
                let mut request = ask.clone();
                request.headers.extend(headers.into_iter().map(|(name, value)| (name.to_owned(), value)));
                Ok(request)
            };
            context.send_each(made).await
        }
        Ask::Anybody(ask) => context.send(ask.clone()).await,
        Ask::Action(query) => Ok(context.query_by_envelope(session, query).await?.1),
        Ask::Tool(query) => context.query_by_mcp(session, query).await,
        Ask::Exchange => context.exchange(&session.grantee, &session.grant).await,
        Ask::State => context.state_of(&session.grantee, &session.grant).await,
        Ask::Countersigned => context.countersign(&session.grantee, receipt).await,
    }
}

fn get(path: String) -> Request {
    Request { method: "GET", path, ..Request::default() }
}

fn post(context: &Context<'_>, query: &Value) -> Ask {
    Ask::Plain(Request {
        method: "POST",
        path: context.at(Place::Query).to_owned(),
        headers: vec![("content-type".to_owned(), "application/oap+json".to_owned())],
        body: Some(query.to_string().into_bytes()),
    })
}

fn export(context: &Context<'_>) -> Ask {
    let path = context.at(Place::Export).to_owned();
    Ask::Plain(Request { method: "POST", path, ..Request::default() })
}

/// What is asked of an item that the grant hides, by the id that it has on each side; nothing where a side has none.
fn of_hidden(ids: &[Option<String>; 2]) -> Vec<Asked> {
    let [Some(one), Some(other)] = ids else { return Vec::new() };
    let asked =
        |path: &str| Asked { grant: 0, asks: [one, other].map(|id| Ask::Plain(get(format!("{path}{id}")))) };
    ["/oap/memory/vec/", "/oap/audit?item_id="].map(asked).into()
}

/// What is asked of both at the endpoints.
fn requests(context: &Context<'_>, queries: &[Value]) -> Vec<Asked> {
    let more = [json!({"max_results": 2}), json!({"query": "", "cursor": "AAAA"}), json!({"nothing": 1})];
    let mut all: Vec<Ask> = queries.iter().chain(&more).map(|query| post(context, query)).collect();
    all.push(export(context));
    all.push(Ask::Plain(get("/oap/memory/vec/mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1".to_owned())));
    all.extend([Ask::Exchange, Ask::State, Ask::Countersigned]);
    all.into_iter().map(Asked::of).collect()
}

/// What is asked of both by the other ways: a listing, words where some are asked for, a cursor that is none.
async fn ways(context: &Context<'_>, queries: &[Value]) -> Result<Vec<Asked>, Failed> {
    let has_words = |query: &&Value| query["query"].as_str().is_some_and(|words| !words.trim().is_empty());
    let words = queries.iter().find(|query| has_words(query) && mcp::takes(query)).cloned();
    let asks = [json!({"max_results": 2}), json!({"query": "", "cursor": "AAAA"})].into_iter().chain(words);
    let asks: Vec<Value> = asks.collect();
    let mut all: Vec<Ask> = asks.iter().cloned().map(Ask::Action).collect();
    match Family::Mcp.offered(context).await {
        Ok(()) => all.extend(asks.into_iter().map(Ask::Tool)),
        Err(Failed::NotDeclared(_)) => {}
        Err(other) => return Err(other),
    }
    Ok(all.into_iter().map(Asked::of).collect())
}

/// The budget of the second grant is spent, and one is told so.
fn spent(context: &Context<'_>) -> Vec<Asked> {
    let mut asks = vec![post(context, &json!({"max_results": 100})); BUDGET + 1];
    asks.extend([export(context), Ask::State, Ask::Plain(get("/oap/audit".to_owned()))]);
    asks.into_iter().map(|ask| Asked { grant: 1, ..Asked::of(ask) }).collect()
}

/// The names that differ between the fillings, and what stands for them.
fn names(lived: &Lived<'_>) -> Names {
    let mut names = Names::default();
    names.put(&lived.world.scope, "scope");
    let times = lived.world.items().map(|item| item.draft["provenance"]["captured_at"].to_string());
    for (id, at) in lived.ids.values().zip(times) {
        // Items that look the same have one time, and no two others have.
        names.put(id, &format!("item of {at}"));
    }
    for (number, live) in &lived.grants {
        let grantee = &live.session.grantee;
        names.put(grantee.did().as_str().trim_start_matches("did:key:"), &format!("grantee {number}"));
        names.put(&grantee.public().thumbprint(), &format!("key {number}"));
        names.put(live.id(), &format!("grant {number}"));
    }
    names
}

/// The names of the headers that two replies have otherwise, but for these.
fn headers_apart(first: &Reply, second: &Reply, fresh: &BTreeSet<String>) -> BTreeSet<String> {
    let values = |reply: &Reply, name: &String| -> Vec<String> {
        let mut values: Vec<String> =
            reply.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.clone()).collect();
        values.sort();
        values
    };
    let names: BTreeSet<&String> =
        first.headers.iter().chain(&second.headers).map(|(name, _)| name).collect();
    let apart = |name: &&String| !fresh.contains(*name) && values(first, name) != values(second, name);
    names.into_iter().filter(apart).cloned().collect()
}

/// Where two replies can be told apart.
fn apart(replies: [&Reply; 2], names: &[Names; 2], fresh: &BTreeSet<String>) -> Option<(String, String)> {
    let [first, second] = replies;
    if first.status != second.status {
        return Some(("the status".to_owned(), format!("{} and {}", first.status, second.status)));
    }
    if first.bytes.len() != second.bytes.len() {
        return Some((
            "the size".to_owned(),
            format!("{} and {} bytes", first.bytes.len(), second.bytes.len()),
        ));
    }
    let differing = headers_apart(first, second, fresh);
    if !differing.is_empty() {
        let headers = |reply: &Reply| -> Vec<(String, String)> {
            reply.headers.iter().filter(|(name, _)| differing.contains(name)).cloned().collect()
        };
        return Some(("the headers".to_owned(), format!("{:?} and {:?}", headers(first), headers(second))));
    }
    let lines = |reply: &Reply, names: &Names| -> Vec<Value> {
        let lines = reply.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut lines: Vec<Value> = lines.map(|line| blank(line, names)).collect();
        // A bundle has its items in the order of their ids, which are fresh.
        lines.sort_by_key(|line| line["item"]["item_id"].to_string());
        lines
    };
    let (first, second) = (json!(lines(first, &names[0])), json!(lines(second, &names[1])));
    (first != second).then(|| difference(&first, &second, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Size;

    #[test]
    fn every_level_of_every_profile_is_paired() {
        let setting = Setting::of(&json!({}), Timestamp::from_millis(1_777_636_800_000));
        let cells = |grants: &[Grant]| -> BTreeSet<String> {
            let cell = |grant: &Grant| {
                format!("{} {}", grant.draft["redaction_profile"], grant.draft["trust_level"])
            };
            grants.iter().filter(|grant| grant.parent.is_none()).map(cell).collect()
        };
        let worlds: Vec<World> =
            (0..21).map(|seed| World::new(seed, &setting, Size { items: 1, queries: 1 })).collect();
        let all: BTreeSet<String> = worlds.iter().flat_map(|world| cells(&world.grants)).collect();
        let paired: Vec<Grant> = worlds.iter().filter_map(chosen).cloned().collect();
        assert!(all.len() > 15, "{all:?}");
        assert_eq!(cells(&paired), all);
    }
}
