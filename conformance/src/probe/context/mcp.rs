//! `/mcp` as a grantee's agent calls it (protocol section 11): one message, one proof.

use super::{Context, Session, owned};
use crate::probe::Failed;
use crate::probe::wire::{Reply, Request};
use serde_json::{Value, json};

/// Where it is.
pub(in crate::probe) const MCP: &str = "/mcp";
/// What a caller sends beside the message (MCP, streamable HTTP).
const HEADERS: [(&str, &str); 3] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", "2025-06-18"),
];
/// Where a refusal of a tool has its code.
const CODE: &str = "dev.oap-memory/code";

/// A call of a tool, beside these headers.
pub(in crate::probe) fn call(mut headers: Vec<(String, String)>, tool: &str, arguments: &Value) -> Request {
    let params = json!({"name": tool, "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    headers.extend(owned(HEADERS.map(|(name, value)| (name, value.to_owned()))));
    Request { method: "POST", path: MCP.to_owned(), headers, body: Some(message.to_string().into_bytes()) }
}

/// What a call came to, as the query endpoint would say it: a refusal of a tool is an answer there.
pub(in crate::probe) fn said(reply: &Reply) -> Reply {
    let body = reply.json();
    let result = &body["result"];
    if reply.status != 200 || (result["isError"] != true && result["structuredContent"].is_object()) {
        let bytes = match reply.status {
            200 => result["structuredContent"].to_string().into_bytes(),
            _ => reply.bytes.clone(),
        };
        return Reply { bytes, ..reply.clone() };
    }
    // What is no call of a tool that there is has an error of JSON-RPC's own.
    let code = result["_meta"][CODE].as_str().unwrap_or("invalid_input").to_owned();
    let status = match code.as_str() {
        "auth_required" => 401,
        "policy_block" => 403,
        "not_found" => 404,
        "conflict" => 409,
        "budget_exhausted" | "rate_limited" => 429,
        "maintenance" => 503,
        _ => 400,
    };
    let message = &result["content"][0]["text"];
    let bytes = json!({"error": code, "message": message, "request_id": ""}).to_string().into_bytes();
    Reply { status, headers: reply.headers.clone(), bytes }
}

/// The ids of the items that the text of an answer has, in its order.
pub(in crate::probe) fn told(reply: &Reply) -> Vec<String> {
    let body = reply.json();
    let text = body["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let begun = text.split("<memory-item ").skip(1);
    let id = |element: &str| element.split("id=\"").nth(1)?.split('"').next().map(str::to_owned);
    begun.filter_map(id).collect()
}

/// Whether a query can be said by a tool: without what the tools do not take, and with lists as short as those of a tool may be. Their schemas let
/// `integrity` be null.
pub(in crate::probe) fn takes(query: &Value) -> bool {
    let longest = |name: &str, usual: usize, most: usize| {
        query[name].as_array().is_none_or(|list| list.len() <= usual || list.len() > most)
    };
    ["include_embeddings", "request_id"].iter().all(|name| query.get(*name).is_none())
        && query.get("integrity").is_none_or(Value::is_string)
        && query["query"].as_str().is_none_or(|words| words.is_empty() || !words.trim().is_empty())
        && longest("kinds", 6, 256)
        && longest("labels_any", 32, 256)
}

/// The tool that a query is asked of, and what it is called with: words are looked for by one, what has none is listed by another.
fn tool(query: &Value) -> (&'static str, Value) {
    let mut arguments = query.clone();
    if query["query"] == "" {
        arguments.as_object_mut().map(|members| members.remove("query"));
    }
    let tool = if arguments.get("query").is_some() { "memory_recall" } else { "memory_query" };
    (tool, arguments)
}

impl Context<'_> {
    /// A call of a tool under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub(in crate::probe) async fn call(
        &self,
        session: &Session,
        name: &str,
        arguments: &Value,
    ) -> Result<Reply, Failed> {
        let made =
            || Ok(call(owned(self.credentials(session, &session.grantee, "POST", MCP)?), name, arguments));
        self.send_each(made).await
    }

    /// A query under a session, as a call of a tool.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub(in crate::probe) async fn query_by_mcp(
        &self,
        session: &Session,
        query: &Value,
    ) -> Result<Reply, Failed> {
        let (name, arguments) = tool(query);
        self.call(session, name, &arguments).await
    }
}
