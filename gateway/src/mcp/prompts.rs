//! What a person picks in an assistant: a request in words, with what the memory has on it.

use super::resources::members;
use crate::api::agents::ToolCall;
use oap_agents::Tool;
use rmcp::model::{Prompt, PromptArgument};
use serde_json::{Map, Value, json};

/// Items that go with a request.
const FACTS: usize = 50;
const BRIEF: &str = "brief";
const REVIEW: &str = "review";
const ON: &str = "on";

/// The requests that there are.
pub(super) fn prompts() -> Vec<Prompt> {
    let on = PromptArgument::new(ON).with_title("On what").with_required(true);
    let on = on.with_description("A person, a project, a matter: words that the memory is searched by.");
    vec![
        Prompt::new(BRIEF, Some("What the memory has on something, and how sure it is."), Some(vec![on]))
            .with_title("Brief me on ..."),
        Prompt::new(REVIEW, Some("What agents wrote and the owner has not confirmed."), None)
            .with_title("Review what needs verification"),
    ]
}

/// A request: its words, and the call whose answer goes with it.
pub(super) struct Request {
    pub(super) words: &'static str,
    /// What the person said it is about.
    pub(super) on: Option<String>,
    pub(super) call: ToolCall,
}

/// The request of a name, with its arguments.
///
/// # Errors
/// What is wrong, and what it must be.
pub(super) fn request(name: &str, mut arguments: Map<String, Value>) -> Result<Request, &'static str> {
    match name {
        BRIEF => {
            let Some(Value::String(on)) = arguments.remove(ON) else {
                return Err("arguments.on: must be text: what to brief on");
            };
            Ok(Request {
                words: "Brief me on what I ask for below, from my memory alone: what is known, how sure it is and whose word it is, what \
                    is out of date or contradicts itself, and what is missing.",
                call: ToolCall {
                    tool: Tool::Recall,
                    arguments: members(json!({"query": on, "limit": FACTS})),
                },
                on: Some(on),
            })
        }
        REVIEW => Ok(Request {
            words: "Go with me through what my agents wrote and I have not confirmed. For each, say whether it is to be confirmed, corrected or \
                forgotten, and why. Correct and forget with the tools where I agree; to confirm, give me the command \
                `oap-memory item confirm ID`.",
            on: None,
            call: ToolCall {
                tool: Tool::Query,
                arguments: members(json!({"needs_verification": true, "limit": FACTS})),
            },
        }),
        _ => Err("name: no prompt of this server; prompts/list names them"),
    }
}
