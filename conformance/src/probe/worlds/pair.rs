//! Two fillings that differ only in what a grant hides: whoever has the grant must not be able to tell them apart.

mod asked;

use super::super::Failed;
use super::super::context::{Context, expect};
use super::super::declared::Place;
use super::super::wire::Reply;
use super::Finding;
use super::fill::Lived;
use super::fresh::{Names, blank, blank_event, difference, loose};
use super::live::exchange;
use crate::model::{Difference, Disclosed, Model};
use crate::world::{CONTACTS, Canaries, Grant, Item, Setting, World};
use asked::{Ask, Asked, Must, NO_ITEM, OF_ALL, Offers};
use oap_identity::{Hash, Timestamp, json as strict};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a run may take: what looks the same must do so until then, for its end may come while it is asked for.
const RUN: Duration = Duration::from_secs(3600);

/// Headers of which each reply has its own, and the one that says its size, which is looked at without it.
const FRESH: [&str; 4] = ["content-length", "date", "oap-request-id", "x-request-id"];
/// Pages that are walked after the first.
const PAGES: usize = 3;
/// How often both sides are asked once more where their headers differ: what differs on one side too tells nothing.
const AGAIN: usize = 3;
/// So long a token is used.
const RENEWED: Duration = Duration::from_secs(30);
/// What is asked again after a change on one side: what was answered, and what was refused for something else than that there is nothing.
const AGAIN_AT: [u16; 3] = [200, 400, 403];

/// What is seen of an item now, and when the run is over at the latest.
fn seen(model: &Model, grant: &Value, item: &Item, setting: &Setting) -> [Option<Value>; 2] {
    [setting.now, setting.now.plus(RUN)].map(|at| seen_at(model, grant, item, setting, at))
}

fn seen_at(model: &Model, grant: &Value, item: &Item, setting: &Setting, at: Timestamp) -> Option<Value> {
    let mut model = model.clone();
    model.granted(grant);
    model.captured(NO_ITEM, &item.draft, setting.now, &item.planted);
    let grant_id = grant["grant_id"].as_str().unwrap_or_default();
    // What it may ask for it is shown.
    let all = json!({"max_results": 100, "include_embeddings": grant["embedding_access"] == true});
    let listed = model.query(grant_id, &all, at, &Disclosed::default());
    let answer = listed.answer()?;
    let shown = answer.items.get(NO_ITEM)?;
    // The conditions of queries see what is shown alone; the shown leaves are all.
    Some(json!({"shown": shown, "chain": answer.chain.get(NO_ITEM)}))
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
    let offers = Offers::of(context).await?;
    world.grants = vec![grant.clone()];
    world.grants.extend(asked::others(&grant, offers));
    let principal = manifest["principal"].as_str().unwrap_or_default();
    let did = principal.parse().map_err(|_| Failed::Wrong("the manifest has no principal".to_owned()))?;
    let model = Model::new(did, manifest, Vec::new());
    let mut drawn = grant.draft.clone();
    drawn["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
    drawn["granter"] = json!(format!("{principal}#{}", world.scope));
    drawn["grantee"] = json!("did:web:somebody.example");
    drawn["issued_at"] = json!(setting.now);
    // What one of the grants shows is not hidden.
    drawn["embedding_access"] = json!(offers.vectors);
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
    let subscriptions = asked::subscriptions(contexts);
    let mut pair = Pair {
        level: format!("level {} of {}", grant.draft["trust_level"], grant.draft["redaction_profile"]),
        // Two that show nothing look the same.
        is_shown: world.items().any(|item| look(item).iter().all(Option::is_some)),
        fresh: BTreeMap::new(),
        receipts: [Value::Null, Value::Null],
        names: [(&sides[0], &subscriptions[0]), (&sides[1], &subscriptions[1])]
            .map(|(side, subscription)| names(side, subscription)),
        exchanged: None,
        sides,
    };
    // The second one as it was drawn: what is seen is of one scope.
    let drawn = [(&world, &pair.sides[0]), (&twin, &pair.sides[1])];
    let hidden = drawn.map(|(drawn, side)| hidden(drawn, side, &look));
    let shown = drawn.map(|(drawn, side)| shown(drawn, side, &look));
    let [first, second] = hidden.each_ref().map(|all| all.first().map_or(NO_ITEM, |(_, id)| id.as_str()));
    let mut asks = asked::requests(context, &grant.queries, offers);
    if are_two {
        asks.extend(OF_ALL.map(|path| Asked::of(Ask::Anybody(asked::get(path.to_owned())))));
        asks.push(Asked::of(Ask::Anybody(asked::get(context.at(Place::Status).to_owned()))));
    }
    asks.extend(asked::spent(context));
    // What is hidden is as if it were not there.
    for ids in [[first, NO_ITEM], [NO_ITEM, second]] {
        asks.extend(asked::of_hidden(ids, offers));
    }
    asks.extend(asked::further(context, offers, &shown, &subscriptions));
    let mut again = pair.round(asks, findings).await?;
    // What becomes of what is hidden on one side alone shows on neither.
    let [of_one, of_other] = &hidden;
    let is_second = !of_other.is_empty();
    let (context, items) = if is_second { (beside, of_other) } else { (context, of_one) };
    let Some(item) = items.first() else { return Ok(pair.is_shown) };
    if let Some(command) = correction(item, &context.word(), &look) {
        // What is over may be refused.
        let _ = context.try_owner(command).await?;
    }
    let Some(gone) = deleted(context, items).await? else {
        // What is over is gone already.
        let ends = |item: &Item| ["expires_at", "ttl_days"].iter().any(|end| !item.draft[end].is_null());
        if items.iter().all(|(item, _)| ends(item)) {
            return Ok(pair.is_shown);
        }
        return Err(Failed::Skipped("the owner's side deletes nothing of what is hidden".to_owned()));
    };
    let side = &mut pair.sides[usize::from(is_second)];
    side.model.deleted(std::slice::from_ref(&gone), context.now());
    // But for the one that was corrected, of which the model does not know.
    let others = items.iter().skip(1).map(|(_, id)| id.as_str()).collect();
    asked_by_another(side, &others).await?;
    pair.level += ", once something of that was corrected, deleted and shown to another on one side";
    let ids = if is_second { [first, gone.as_str()] } else { [gone.as_str(), second] };
    again.extend(asked::of_hidden(ids, offers));
    if offers.events {
        again.push(asked::ended(&subscriptions));
    }
    pair.round(again, findings).await.map(|_| pair.is_shown)
}

/// Two sides that are asked the same.
struct Pair<'a> {
    sides: [Lived<'a>; 2],
    /// Whether the grant shows something.
    is_shown: bool,
    /// What findings say of it.
    level: String,
    /// Headers that each reply of a door has of its own, such as a proxy makes.
    fresh: BTreeMap<String, BTreeSet<String>>,
    /// The receipt of the last answer of each side.
    receipts: [Value; 2],
    /// The names that differ between the sides, and what stands for them.
    names: [Names; 2],
    /// When all grants were exchanged last.
    exchanged: Option<Timestamp>,
}

impl Pair<'_> {
    /// What both sides reply; nothing where one has no such grant. Headers that differ on one side, too, are fresh.
    async fn replies(&mut self, grant: usize, asks: &[Ask; 2]) -> Result<Option<[Reply; 2]>, Failed> {
        let [one, other] = &self.sides;
        let (Some(of_one), Some(of_other)) = (one.grants.get(&grant), other.grants.get(&grant)) else {
            return Ok(None);
        };
        let first = asks[0].told(one, of_one, &self.receipts[0]).await?;
        let second = asks[1].told(other, of_other, &self.receipts[1]).await?;
        let fresh = self.fresh.entry(asks[0].door()).or_insert_with(|| FRESH.map(str::to_owned).into());
        let [of_first, of_second] = &self.names;
        let both = [(&first, of_first), (&second, of_second)];
        if first.status == second.status && !headers_apart(both, fresh).is_empty() {
            for _ in 0..AGAIN {
                let again = asks[0].told(one, of_one, &self.receipts[0]).await?;
                fresh.extend(headers_apart([(&first, of_first), (&again, of_first)], fresh));
                let again = asks[1].told(other, of_other, &self.receipts[1]).await?;
                fresh.extend(headers_apart([(&second, of_second), (&again, of_second)], fresh));
            }
        }
        Ok(Some([first, second]))
    }

    /// Has tokens for all grants of both sides: one may have been for a minute.
    async fn renew(&mut self, findings: &mut Vec<Finding>) -> Result<(), Failed> {
        let now = self.sides[0].context.now();
        if self.exchanged.is_some_and(|last| now < last.plus(RENEWED)) {
            return Ok(());
        }
        for side in &mut self.sides {
            for grant in side.grants.keys().copied().collect::<Vec<_>>() {
                exchange(side, grant, findings).await?;
            }
        }
        self.exchanged = Some(now);
        Ok(())
    }

    /// Asks both sides, the pages behind each answer too; what was answered.
    async fn round(&mut self, asks: Vec<Asked>, findings: &mut Vec<Finding>) -> Result<Vec<Asked>, Failed> {
        let mut answered = Vec::new();
        self.exchanged = None;
        for asked in asks {
            self.renew(findings).await?;
            let mut asks = asked.asks.clone();
            for page in 0..=PAGES {
                let Some(replies) = self.replies(asked.grant, &asks).await? else { break };
                let shows = |reply: &Reply| {
                    let items = reply.json()["items"].as_array().map_or(0, Vec::len);
                    reply.status == 200 && (items > 0 || !self.is_shown)
                };
                let [ask, _] = &asks;
                let fits = match asked.must {
                    Must::Agree => true,
                    // Of the pages behind it whatever the first one says.
                    Must::Answer => page > 0 || replies.iter().all(|reply| reply.status == 200),
                    Must::List => page > 0 || replies.iter().all(shows),
                };
                expect(fits, || {
                    let statuses = replies.each_ref().map(|reply| reply.status);
                    format!(
                        "{}: {ask} is not answered with what the grant shows: status {statuses:?}",
                        self.level
                    )
                })?;
                if page == 0 && replies.iter().all(|reply| AGAIN_AT.contains(&reply.status)) {
                    answered.push(asked.clone());
                }
                let fresh = self.fresh.get(&ask.door()).cloned().unwrap_or_default();
                if let Some((at, why)) = apart(replies.each_ref(), &self.names, &fresh) {
                    findings.push(Finding {
                        seed: self.sides[0].world.seed,
                        grant: format!(
                            "{}, over two fillings that differ in what it hides alone",
                            self.level
                        ),
                        query: json!(format!("{ask}, under grant {}", asked.grant)),
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
                let [Some(first), Some(second)] = [0, 1].map(|side| asks[side].behind(&replies[side])) else {
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

/// The ids of the items that the grant shows, in one order on both sides.
fn shown(drawn: &World, lived: &Lived<'_>, look: &dyn Fn(&Item) -> [Option<Value>; 2]) -> Vec<String> {
    let shown = drawn.items().enumerate().filter(|(_, item)| look(item).iter().all(Option::is_some));
    shown.filter_map(|(number, _)| lived.ids.get(&number).cloned()).collect()
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

/// The names that differ between the fillings, and what stands for them.
fn names(lived: &Lived<'_>, subscription: &str) -> Names {
    let mut names = Names::default();
    names.put(subscription, "subscription");
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
        // A receipt under a grant that was made from it names it so.
        if let Ok(hash) = Hash::of_canonical(&live.session.grant) {
            names.put(&hash.to_string(), &format!("hash of grant {number}"));
        }
    }
    names
}

/// The names of the headers that two replies have otherwise, but for these.
fn headers_apart([first, second]: [(&Reply, &Names); 2], fresh: &BTreeSet<String>) -> BTreeSet<String> {
    let values = |(reply, names): (&Reply, &Names), name: &String| -> Vec<String> {
        let values = reply.headers.iter().filter(|(n, _)| n == name);
        let mut values: Vec<String> = values.map(|(_, value)| names.replaced(value)).collect();
        values.sort();
        values
    };
    let names: BTreeSet<&String> =
        first.0.headers.iter().chain(&second.0.headers).map(|(name, _)| name).collect();
    let apart = |name: &&String| !fresh.contains(*name) && values(first, name) != values(second, name);
    names.into_iter().filter(apart).cloned().collect()
}

/// The bytes of a reply, but for those that are the gateway's own; of an event its data is compared, and not how much stands around it.
fn size(reply: &Reply) -> Option<usize> {
    (!is_stream(reply)).then(|| reply.bytes.len().saturating_sub(loose(&reply.json())))
}

fn is_stream(reply: &Reply) -> bool {
    reply.header("content-type").is_some_and(|media| media.starts_with("text/event-stream"))
}

/// The numbers of a vector, where a reply is one: no text.
fn vector(reply: &Reply) -> Option<Vec<f32>> {
    let is_text = str::from_utf8(&reply.bytes).is_ok();
    let number = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).map(f32::from_le_bytes).ok();
    reply.bytes.chunks(4).map(number).collect::<Option<Vec<f32>>>().filter(|_| !is_text)
}

/// Where two vectors of one size differ. A model that is asked for other texts along with one may round what it says of that otherwise.
fn vectors_apart(one: &[f32], other: &[f32]) -> Option<(String, String)> {
    let all = || one.iter().chain(other);
    let usual = (all().map(|number| number * number).sum::<f32>() / all().count().max(1) as f32).sqrt();
    // To a hundredth, or a thousandth of what numbers of it usually are.
    let differ = |(one, other): (&f32, &f32)| {
        (one - other).abs() > one.abs().max(other.abs()) / 100.0 + usual / 1_000.0
            || one.is_nan() != other.is_nan()
    };
    let at = one.iter().zip(other).position(differ)?;
    Some((format!("number {at} of the vector"), format!("{:?} and {:?}", one.get(at), other.get(at))))
}

/// Where two replies can be told apart.
fn apart(replies: [&Reply; 2], names: &[Names; 2], fresh: &BTreeSet<String>) -> Option<(String, String)> {
    let [first, second] = replies;
    if first.status != second.status {
        return Some(("the status".to_owned(), format!("{} and {}", first.status, second.status)));
    }
    let sizes = [first, second].map(size);
    if sizes[0] != sizes[1] {
        return Some(("the size".to_owned(), format!("{:?} and {:?} bytes", sizes[0], sizes[1])));
    }
    let [of_first, of_second] = names;
    let differing = headers_apart([(first, of_first), (second, of_second)], fresh);
    if !differing.is_empty() {
        let headers = |reply: &Reply| -> Vec<(String, String)> {
            reply.headers.iter().filter(|(name, _)| differing.contains(name)).cloned().collect()
        };
        return Some(("the headers".to_owned(), format!("{:?} and {:?}", headers(first), headers(second))));
    }
    if let (Some(one), Some(other)) = (vector(first), vector(second)) {
        return vectors_apart(&one, &other);
    }
    let lines = |reply: &Reply, names: &Names| -> Vec<Value> {
        if is_stream(reply) {
            return vec![blank_event(&reply.bytes, names)];
        }
        // A document may stand on many lines.
        if strict::parse(&reply.bytes).is_ok() {
            return vec![blank(&reply.bytes, names)];
        }
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

    fn differ(one: &[u8], other: &[u8]) -> bool {
        let reply = |bytes: &[u8]| Reply { status: 200, headers: Vec::new(), bytes: bytes.to_vec() };
        let names = [Names::default(), Names::default()];
        apart([&reply(one), &reply(other)], &names, &BTreeSet::new()).is_some()
    }

    #[test]
    fn vectors_are_compared_by_their_numbers() {
        let vector = |numbers: [f32; 2]| numbers.map(f32::to_le_bytes).concat();
        assert!(!differ(&vector([0.6, -0.8]), &vector([0.6001, -0.8])));
        assert!(differ(&vector([0.6, -0.8]), &vector([0.62, -0.8])));
        assert!(differ(&vector([0.6, -0.8]), &vector([f32::NAN, -0.8])));
    }

    #[test]
    fn a_document_on_several_lines_is_compared() {
        let told =
            |number: u64| format!("{{\n  \"request_id\": \"x\",\n  \"n\": {number}\n}}\n").into_bytes();
        assert!(!differ(&told(1), &told(1)));
        assert!(differ(&told(1), &told(2)));
        assert!(differ(b": 37 items\n\n", b": 38 items\n\n"));
    }

    #[test]
    fn how_long_a_place_in_the_status_list_is_tells_nothing() {
        let told = |place: u64, more: &str| {
            json!({"status": {"status_list": {"idx": place}}, "more": more}).to_string().into_bytes()
        };
        assert!(!differ(&told(7, "a"), &told(131_071, "a")));
        assert!(differ(&told(7, "a"), &told(7, "ab")));
        assert!(differ(&told(7, "a"), &told(7, "b")));
    }

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
