//! Documents that are no profile of the owner's own, each beside one that is (protocol section 7).

use super::super::context::{Context, expect};
use super::super::wire::Refused;
use super::super::{Failed, Probe, Severity};
use super::malformed::{Case, add, without};
use super::{owned, probe};
use crate::world::{OWN, read_profile, whole_name};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Probe> {
    vec![owned("refused-profiles", &["ME-01"], Severity::Major, probe!(profiles))]
}

/// What the first of the probes' profiles is no profile with.
const BAD: &[Case] = &[
    ("no name", |p| without(p, "name")),
    ("a name of another beginning", |p| p["name"] = json!("org.example.profile.x.v1")),
    ("a name without a version", |p| p["name"] = json!("oap.profile.projection.x")),
    ("a name with a word for a version", |p| p["name"] = json!("oap.profile.projection.x.vone")),
    ("a name of a version alone", |p| p["name"] = json!("oap.profile.projection.v1")),
    ("a name with an empty part", |p| p["name"] = json!("oap.profile.projection..v1")),
    ("no description", |p| without(p, "description")),
    ("a minimum_level beyond the levels", |p| p["minimum_level"] = json!(5)),
    ("a minimum_level that is a word", |p| p["minimum_level"] = json!("known")),
    ("a member that a profile does not have", |p| p["maximum_level"] = json!(3)),
    ("no levels", |p| without(p, "level")),
    ("four levels", |p| drop(p["level"].as_array_mut().and_then(Vec::pop))),
    ("six levels", |p| add(&mut p["level"], json!({}))),
    ("four levels of its entity", |p| drop(p["entity"]["level"].as_array_mut().and_then(Vec::pop))),
    ("six levels of its entity", |p| add(&mut p["entity"]["level"], json!({}))),
    ("an entity of no type", |p| without(&mut p["entity"], "type")),
    ("an entity without levels", |p| without(&mut p["entity"], "level")),
    ("a member that a level does not have", |p| p["level"][3]["shown"] = json!([])),
    ("fields that are no list", |p| p["level"][3]["fields"] = json!("kind")),
    ("a field that is a number", |p| p["level"][3]["fields"] = json!([1])),
    ("a field without a path", |p| p["level"][3]["fields"] = json!([{"when": ["kind=fact"]}])),
    ("a member that a field does not have", |p| {
        p["level"][3]["fields"] = json!([{"path": "kind", "until": ["kind=fact"]}]);
    }),
    ("a text that is neither hidden nor full", |p| p["level"][4]["text"] = json!("shown")),
    ("a text that is a flag", |p| p["level"][4]["text"] = json!(true)),
    ("spans that are no list", |p| p["level"][1]["text"] = json!({"spans": "email"})),
    ("a text of nothing", |p| p["level"][1]["text"] = json!({})),
    ("a text that says more than spans", |p| {
        p["level"][1]["text"] = json!({"spans": ["email", "secret"], "full": true});
    }),
    ("a class of spans that there is not", |p| {
        p["level"][1]["text"] = json!({"spans": ["email", "rumour"]});
    }),
    ("a class of spans that is a number", |p| p["level"][1]["text"] = json!({"spans": [1]})),
    // It is shown only where the text is shown whole.
    ("mixed spans", |p| add(&mut p["level"][2]["text"]["spans"], json!("mixed"))),
    // Levels are cumulative.
    ("less text at the last level", |p| p["level"][4]["text"] = json!("hidden")),
    ("text and then none", |p| p["level"][2]["text"] = json!("hidden")),
    ("a whole text and then spans", |p| p["level"][1]["text"] = json!("full")),
    ("a class less than the level below", |p| p["level"][2]["text"] = json!({"spans": ["email", "card"]})),
    ("an empty path", |p| p["level"][3]["fields"] = json!([""])),
    ("a path with an empty step", |p| p["level"][3]["fields"] = json!(["provenance..made_by"])),
    ("a path that ends with a dot", |p| p["level"][3]["fields"] = json!(["provenance."])),
    ("a path without its bracket", |p| p["level"][3]["fields"] = json!(["labels["])),
    ("a path with a word behind a bracket", |p| p["level"][3]["fields"] = json!(["labels[]x"])),
    ("elements of nothing", |p| p["level"][3]["fields"] = json!(["content.structured.[]"])),
    ("elements by a word", |p| p["level"][3]["fields"] = json!(["content.structured.a[b]"])),
    ("elements by a value alone", |p| p["level"][3]["fields"] = json!(["content.structured.a[=b]"])),
    ("elements by a value and a space", |p| p["level"][3]["fields"] = json!(["content.structured.a[ =b]"])),
    ("elements by one member and nothing", |p| {
        p["level"][3]["fields"] = json!(["content.structured.a[b=c,]"])
    }),
    ("a member that contacts do not have", |p| {
        p["entity"]["level"][3]["fields"] = json!(["content.structured.due_at"]);
    }),
    ("a member below one that contacts do not have", |p| {
        p["entity"]["level"][3]["fields"] = json!(["content.structured.shoes[size=42].colour"]);
    }),
    ("conditions that are text", |p| p["level"][2]["fields"][0]["when"] = json!("kind=fact")),
    ("a condition without a value", |p| p["level"][2]["fields"][0]["when"] = json!(["kind"])),
    ("a condition without a path", |p| p["level"][2]["fields"][0]["when"] = json!(["=fact"])),
    ("a condition with an empty step", |p| {
        p["level"][2]["fields"][1]["unless"] = json!(["content..private=true"]);
    }),
    ("a condition that is a number", |p| p["level"][2]["fields"][1]["unless"] = json!([1])),
];

/// What it still is one with.
const GOOD: &[Case] = &[
    ("nothing changed", |_| {}),
    ("no entity", |p| without(p, "entity")),
    ("levels that add nothing", |p| {
        (p["level"][1], p["level"][2], p["level"][3]) = (json!({}), json!({}), json!({}));
    }),
    ("text shown whole from the first level on", |p| {
        p["level"] = json!([{"text": "full"}, {}, {}, {}, {"fields": ["*"]}]);
    }),
    ("the same classes at two levels", |p| {
        p["level"][2]["text"] = p["level"][1]["text"].clone();
    }),
    ("a least level that is the last", |p| p["minimum_level"] = json!(4)),
    ("members that every entity has", |p| {
        p["entity"]["level"][3]["fields"] =
            json!(["content.structured.external_ids", "content.structured.id"]);
    }),
    // What stands elsewhere in an item is no member of the entity.
    ("a tag of one's own", |p| p["entity"]["level"][3]["fields"] = json!(["provenance.structured.due_at"])),
    ("entities of a type of one's own", |p| {
        p["entity"]["type"] = json!("org.example.shoe");
        p["entity"]["level"][3]["fields"] = json!(["content.structured.size", "provenance.made_by"]);
    }),
    ("elements by two members", |p| {
        p["level"][3]["fields"] = json!(["content.structured.a[b=c,d=true].e", "labels[]"]);
    }),
];

/// What the owner's side says of a changed copy of a profile, under a name of its own.
async fn taken(
    context: &Context<'_>,
    own: &Value,
    change: fn(&mut Value),
) -> Result<Result<Value, Refused>, Failed> {
    let mut document = own.clone();
    document["name"] = json!(whole_name(&format!("probe_{}", context.word())));
    change(&mut document);
    context.try_owner(json!({"do": "profile", "profile": document})).await
}

/// A document of another form is refused.
async fn profiles(context: &Context<'_>) -> Result<(), Failed> {
    let [own, _] = OWN.map(read_profile);
    // Who takes none says nothing of those that may not be.
    let plain = taken(context, &own, |_| {}).await?;
    plain.map_err(|Refused(why)| Failed::Skipped(format!("the owner's side takes no profile: {why}")))?;
    for (what, change) in GOOD {
        if let Err(Refused(why)) = taken(context, &own, *change).await? {
            return Err(Failed::Wrong(format!("a profile with {what} was refused (protocol 7): {why}")));
        }
    }
    for (what, change) in BAD {
        let done = taken(context, &own, *change).await?;
        expect(done.is_err(), || format!("a profile with {what} was taken (protocol 7)"))?;
    }
    Ok(())
}
