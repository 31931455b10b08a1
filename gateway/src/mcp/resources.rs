//! What an assistant may attach to a conversation without a tool: facts, topics and the status of the memory. Each is what a tool
//! answers, as its text, with the same receipt.

use crate::api::agents::ToolCall;
use oap_agents::Tool;
use oap_identity::ItemId;
use percent_encoding::percent_decode_str;
use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Map, Value, json};

/// Facts of a topic.
const FACTS: usize = 50;
const TEXT: &str = "text/plain";
const STATUS: &str = "memory://status";
const FACT: &str = "memory://facts/";
const TOPIC: &str = "memory://topics/";

/// What has an address of its own.
pub(super) fn resources() -> Vec<Resource> {
    let status = Resource::new(STATUS, "status").with_title(Tool::Status.title());
    vec![status.with_description("How much memory there is, about what and by whom.").with_mime_type(TEXT)]
}

/// What has an address once it has a name.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, title: &str, description: &str| {
        let template = ResourceTemplate::new(uri, name).with_title(title);
        template.with_description(description).with_mime_type(TEXT)
    };
    vec![
        template(
            "memory://facts/{item_id}",
            "fact",
            "A fact",
            "An item of the memory: what it says, where it comes from, and what it said before.",
        ),
        template(
            "memory://topics/{topic}",
            "topic",
            "A topic",
            "The newest items about a topic; memory://status names the topics.",
        ),
    ]
}

/// The call whose answer a resource is; `None` where nothing has that address.
pub(super) fn call(uri: &str) -> Option<ToolCall> {
    let named = |prefix: &str| {
        let name = percent_decode_str(uri.strip_prefix(prefix)?).decode_utf8().ok()?;
        (!name.is_empty()).then(|| name.into_owned())
    };
    let (tool, arguments) = if uri == STATUS {
        (Tool::Status, json!({}))
    } else if uri.starts_with(FACT) {
        let item: ItemId = named(FACT)?.parse().ok()?;
        (Tool::Explain, json!({"item_id": item}))
    } else {
        (Tool::Query, json!({"topic": named(TOPIC)?, "limit": FACTS}))
    };
    Some(ToolCall { tool, arguments: members(arguments) })
}

pub(super) fn members(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_call_or_none() {
        let of = |uri: &str| call(uri).map(|call| (call.tool, Value::Object(call.arguments)));
        assert_eq!(of("memory://status"), Some((Tool::Status, json!({}))));
        let id = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
        assert_eq!(of(&format!("memory://facts/{id}")), Some((Tool::Explain, json!({"item_id": id}))));
        let tea = json!({"topic": "tea time/é", "limit": FACTS});
        assert_eq!(of("memory://topics/tea%20time%2F%C3%A9"), Some((Tool::Query, tea)));
        for uri in [
            "",
            "memory:",
            "memory://facts/",
            "memory://facts/none",
            "memory://topics/",
            "memory://topics/%FF",
            "file:///etc/passwd",
        ] {
            assert_eq!(of(uri), None, "{uri}");
        }
        assert!(resources().iter().all(|resource| call(&resource.uri).is_some()));
        for template in templates() {
            let (prefix, _) = template.uri_template.split_once('{').unwrap();
            assert!(call(&format!("{prefix}{id}")).is_some(), "{prefix}");
        }
    }
}
