//! The graph of the MCP reference server: an item about a subject is an observation of that entity, an item about
//! nothing one of an entity of its own. The server joins entities of one name.

use super::{Exporter, Form, LINES, labels, said};
use serde_json::{Value, json};

pub(super) const EXPORTER: Exporter = Exporter { form: Form::McpMemory, layout: LINES, write };

fn write(item: &Value) -> String {
    lines(item).iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

fn lines(item: &Value) -> Vec<Value> {
    let structured = &item["content"]["structured"];
    if let (Some(from), Some(to), Some(how)) =
        (structured["from"].as_str(), structured["to"].as_str(), structured["relationType"].as_str())
    {
        return vec![json!({"type": "relation", "from": from, "to": to, "relationType": how})];
    }
    let name = item["subject_entity_id"].as_str().or_else(|| item["item_id"].as_str()).unwrap_or_default();
    let kind = structured["entityType"].as_str().or_else(|| item["kind"].as_str()).unwrap_or("memory");
    let observation = structured["observation"].as_str().map_or_else(|| said(item), str::to_owned);
    let mut lines =
        vec![json!({"type": "entity", "name": name, "entityType": kind, "observations": [observation]})];
    for label in labels(item) {
        lines.push(json!({"type": "relation", "from": name, "to": label, "relationType": "labelled"}));
    }
    lines
}
