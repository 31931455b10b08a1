//! The MCP reference server for memory: a graph as JSON Lines.

use super::{Draft, File, Format, Importer, Likeness, Looks, MAX_LINE, Sink, refused, text};
use oap_memory::lines::lines;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

const ABOUT: &str = "each observation of an entity becomes a fact about it, each relation a fact; an entity without \
    observations becomes a fact of its type; the format has no times";

const FROM: &str = "mcp-memory";
pub(super) const IMPORTER: Importer =
    Importer { format: Format::McpMemory, about: ABOUT, general: false, account_id: None, recognises, read };

fn recognises(looks: &Looks) -> Likeness {
    let entity = looks.has("\"type\":\"entity\"") && looks.member("observations");
    Likeness::sure(entity || looks.has("\"type\":\"relation\""))
}

fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    let read = lines(&mut *file.bytes, MAX_LINE, |number, line| {
        let place = format!("{name}:{number}");
        let Some(line) = line else { return sink(refused(place, "the line is too long")) };
        if line.trim_ascii().is_empty() {
            return ControlFlow::Continue(());
        }
        match oap_identity::json::parse(line) {
            Ok(value) => object(&value, &place, sink),
            Err(error) => sink(refused(place, error)),
        }
    });
    if let Err(reason) = read {
        let _ = sink(refused(name, reason));
    }
}

fn object(object: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    match text(object, "type") {
        "entity" => entity(object, place, sink),
        "relation" => relation(object, place, sink),
        _ => sink(refused(place.to_owned(), "neither an entity nor a relation")),
    }
}

fn entity(entity: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let (name, kind) = (text(entity, "name"), text(entity, "entityType"));
    if name.is_empty() {
        return sink(refused(place.to_owned(), "an entity needs a name"));
    }
    let observations: Vec<&str> =
        entity["observations"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fact = |said: &str, observation: Option<&str>| {
        let mut structured = Map::from_iter([("entity".to_owned(), json!(name))]);
        if !kind.is_empty() {
            structured.insert("entityType".to_owned(), json!(kind));
        }
        if let Some(observation) = observation {
            structured.insert("observation".to_owned(), json!(observation));
        }
        Draft::new("fact", said, FROM).structured(structured).subject(Some(name)).label(kind)
    };
    if observations.is_empty() {
        let said = format!("{name} is a {kind}");
        return fact(&said, None).send(format!("{FROM}:entity:{name}"), place.to_owned(), sink);
    }
    for observation in observations {
        let source = format!("{FROM}:entity:{name}:{}", oap_identity::Hash::of(observation.as_bytes()));
        fact(&format!("{name}: {observation}"), Some(observation)).send(source, place.to_owned(), sink)?;
    }
    ControlFlow::Continue(())
}

fn relation(relation: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let (from, to, how) = (text(relation, "from"), text(relation, "to"), text(relation, "relationType"));
    if from.is_empty() || to.is_empty() || how.is_empty() {
        return sink(refused(place.to_owned(), "a relation needs from, to and relationType"));
    }
    let structured = [("from", from), ("to", to), ("relationType", how)];
    Draft::new("fact", &format!("{from} {} {to}", how.replace('_', " ")), FROM)
        .label("relation")
        .structured(structured.iter().map(|(n, v)| ((*n).to_owned(), json!(v))).collect::<Map<_, _>>())
        .subject(Some(from))
        .send(format!("{FROM}:relation:{from}:{how}:{to}"), place.to_owned(), sink)
}
