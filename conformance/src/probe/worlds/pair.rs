//! Two fillings that differ only in what a grant hides: whoever has the grant must not be able to tell them apart.

use super::super::Failed;
use super::super::context::{Context, expect};
use super::super::declared::Place;
use super::super::wire::{Reply, Request};
use super::Finding;
use super::fill::{Live, Lived};
use super::fresh::{Names, blank, difference};
use crate::model::{Difference, Disclosed, Model};
use crate::world::{Canaries, Grant, Item, Setting, World};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
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

/// One grant of a world, over the world and over its twin.
///
/// # Errors
/// When the run is over.
pub(in super::super) async fn pair(
    context: &Context<'_>,
    manifest: &Value,
    world: &World,
    setting: &Setting,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let mut world = world.apart(setting);
    let Some(mut grant) = chosen(&world).cloned() else { return Ok(()) };
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
    world.grants = vec![grant.clone()];
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
    let other = twin.in_scope(&format!("w{}", context.word().get(..11).unwrap_or_default()));
    let sides = [
        Lived::fill(context, &world, manifest, &canaries).await?,
        Lived::fill(context, &other, manifest, &canaries).await?,
    ];
    let level = format!("level {} of {}", grant.draft["trust_level"], grant.draft["redaction_profile"]);
    // Two that show nothing look the same.
    let is_shown = world.items().any(|item| look(item).iter().all(Option::is_some));
    let [Some(one), Some(other)] = sides.each_ref().map(|side| side.grants.get(&0)) else { return Ok(()) };
    // Headers that a proxy makes anew for each reply.
    let mut fresh: BTreeSet<String> = FRESH.map(str::to_owned).into();
    let mut asks: Vec<[Request; 2]> =
        requests(context, &grant.queries).into_iter().map(|ask| [ask.clone(), ask]).collect();
    asks.extend(of_hidden([(&world, &sides[0]), (&twin, &sides[1])], &look));
    for (number, mut asks) in asks.into_iter().enumerate() {
        for _ in 0..=PAGES {
            let replies = replies([one, other], &asks, context, &mut fresh).await?;
            let answered = |reply: &Reply| {
                let items = reply.json()["items"].as_array().map_or(0, Vec::len);
                reply.status == 200 && (items > 0 || !is_shown)
            };
            // The first one lists all.
            expect(number > 0 || replies.iter().all(answered), || {
                format!("{level}: a listing is not answered with what the grant shows")
            })?;
            let names = sides.each_ref().map(names);
            if let Some((at, why)) = apart(replies.each_ref(), &names, &fresh) {
                let [ask, _] = &asks;
                let body = String::from_utf8_lossy(ask.body.as_deref().unwrap_or_default());
                findings.push(Finding {
                    seed: world.seed,
                    grant: format!("{level}, over two fillings that differ in what it hides alone"),
                    query: json!(format!("{} {body}", ask.path)),
                    difference: Difference { at, why },
                });
                break;
            }
            let [Some(first), Some(second)] = [0, 1].map(|side| behind(&asks[side], &replies[side])) else {
                break;
            };
            asks = [first, second];
        }
    }
    Ok(())
}

/// One of the grants that the owner issues. Worlds of successive seeds come to every level of every profile so.
fn chosen(world: &World) -> Option<&Grant> {
    let issued = || world.grants.iter().filter(|grant| grant.parent.is_none());
    let turn = world.seed % (issued().count().max(1) as u64);
    issued().nth(usize::try_from(turn).unwrap_or(0))
}

/// What both sides reply. Headers that differ on one side, too, are fresh.
async fn replies(
    sides: [&Live; 2],
    asks: &[Request; 2],
    context: &Context<'_>,
    fresh: &mut BTreeSet<String>,
) -> Result<[Reply; 2], Failed> {
    let replies = [told(context, sides[0], &asks[0]).await?, told(context, sides[1], &asks[1]).await?];
    let [first, second] = &replies;
    if first.status == second.status && !headers_apart(first, second, fresh).is_empty() {
        for _ in 0..AGAIN {
            for (number, first) in replies.iter().enumerate() {
                let again = told(context, sides[number], &asks[number]).await?;
                fresh.extend(headers_apart(first, &again, fresh));
            }
        }
    }
    Ok(replies)
}

/// The same query for the page behind this answer, where there is one.
fn behind(ask: &Request, reply: &Reply) -> Option<Request> {
    let answer = reply.json();
    let cursor = answer["next_cursor"].as_str()?;
    let mut query: Value = serde_json::from_slice(ask.body.as_deref()?).ok()?;
    query["cursor"] = json!(cursor);
    Some(Request { body: Some(query.to_string().into_bytes()), ..ask.clone() })
}

/// What is asked of an item that the grant hides, by the id that it has on each side; nothing where a side has none.
fn of_hidden(
    sides: [(&World, &Lived<'_>); 2],
    look: &dyn Fn(&Item) -> [Option<Value>; 2],
) -> Vec<[Request; 2]> {
    let ids = sides.map(|(world, lived)| {
        let mut items = world.items().enumerate();
        let hidden = items.find(|(_, item)| look(item) == [None, None]);
        hidden.and_then(|(number, _)| lived.ids.get(&number))
    });
    let [Some(one), Some(other)] = ids else { return Vec::new() };
    let get = |path: String| Request { method: "GET", path, ..Request::default() };
    ["/oap/memory/vec/", "/oap/audit?item_id="]
        .map(|path| [one, other].map(|id| get(format!("{path}{id}"))))
        .into()
}

/// A reply to one side.
async fn told(context: &Context<'_>, live: &Live, ask: &Request) -> Result<Reply, Failed> {
    let made = || {
        let key = &live.session.grantee;
        let headers = context.credentials(&live.session, key, ask.method, &ask.path)?;
        let mut request = ask.clone();
        request.headers.extend(headers.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(request)
    };
    context.send_each(made).await
}

/// What is asked of both.
fn requests(context: &Context<'_>, queries: &[Value]) -> Vec<Request> {
    let headers = vec![("content-type".to_owned(), "application/oap+json".to_owned())];
    let post = |body: Value| Request {
        method: "POST",
        path: context.at(Place::Query).to_owned(),
        headers: headers.clone(),
        body: Some(body.to_string().into_bytes()),
    };
    let plain = |method, path: &str| Request { method, path: path.to_owned(), ..Request::default() };
    let mut all: Vec<Request> = queries.iter().cloned().map(post).collect();
    all.extend(
        [json!({"max_results": 2}), json!({"query": "", "cursor": "AAAA"}), json!({"nothing": 1})].map(post),
    );
    all.push(plain("POST", context.at(Place::Export)));
    all.push(plain("GET", "/oap/memory/vec/mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"));
    all.push(plain("GET", "/oap/audit"));
    all.push(plain("GET", context.at(Place::Status)));
    all
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
    if let Some(live) = lived.grants.get(&0) {
        names.put(live.session.grantee.did().as_str().trim_start_matches("did:key:"), "grantee");
        names.put(live.id(), "grant");
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
