//! `openapi.json`: every endpoint of the owner's as OpenAPI 3.1, made of the types that serve it.

use super::agents::{ToolAnswer, ToolCall};
use super::{Row, Shapes, all};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Where schemas stand in the document.
const SCHEMAS: &str = "/components/schemas";

/// The OpenAPI 3.1 document of the owner's endpoints.
#[must_use]
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = SCHEMAS.into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for row in all() {
        let at = paths.entry(row.path).or_insert_with(|| json!({}));
        at[row.method.as_str().to_ascii_lowercase()] = operation(&row, &mut generator);
    }
    for (path, operation) in for_agents(&mut generator) {
        paths.insert(path.to_owned(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "OAP memory gateway: the owner's interface",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What the owner of a memory gateway does with it. Every request has a trust token, bound to an agent's key, and \
                a proof of possession of that key (protocol section 10). And what the owner's own agents call with their API keys.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {"Refused": refused()},
            "securitySchemes": {
                "trustToken": {
                    "type": "apiKey", "in": "header", "name": "Authorization",
                    "description": "`DPoP ` and a trust token (OAP-CORE 10.1).",
                },
                "agentKey": {
                    "type": "http", "scheme": "bearer", "bearerFormat": "oapk_",
                    "description": "The API key of one of the owner's agents.",
                },
                "agentKeyHeader": {
                    "type": "apiKey", "in": "header", "name": "X-API-Key",
                    "description": "The same, in a header of its own.",
                },
                "grantToken": {
                    "type": "apiKey", "in": "header", "name": "Authorization",
                    "description": "`DPoP ` and the token that a grant was exchanged for (protocol section 5.1).",
                },
                "proof": {
                    "type": "apiKey", "in": "header", "name": "DPoP",
                    "description": "A fresh proof of possession for this request (RFC 9449).",
                },
            },
        },
    })
}

/// One endpoint.
fn operation(row: &Row, generator: &mut SchemaGenerator) -> Value {
    let Shapes { place, query, body, answer } = (row.shapes)(generator);
    let mut parameters = Vec::new();
    if let (Some(place), Some(name)) = (place, varies(row.path)) {
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": place}));
    }
    if let Some(query) = query {
        let required = query.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (name, schema) in query.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let needed = required.iter().any(|required| required == name);
            parameters.push(json!({"name": name, "in": "query", "required": needed, "schema": schema}));
        }
    }
    let mut operation = json!({
        "operationId": row.name,
        "summary": row.about,
        "security": [{"trustToken": [], "proof": []}],
        "x-oap-permission": row.permission,
        "responses": {
            row.status.to_string(): {"description": "Done.", "content": {row.media_type: {"schema": answer}}},
            "default": {"$ref": "#/components/responses/Refused"},
        },
    });
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = body {
        operation["requestBody"] =
            json!({"required": true, "content": {super::MEDIA_TYPE: {"schema": body}}});
    }
    operation
}

/// What the owner's agents call, and grantees' agents.
fn for_agents(generator: &mut SchemaGenerator) -> [(&'static str, Value); 3] {
    let (call, answer) = (generator.subschema_for::<ToolCall>(), generator.subschema_for::<ToolAnswer>());
    let version = json!({
        "name": "MCP-Protocol-Version", "in": "header", "required": false, "schema": {"type": "string"},
        "description": "The revision of MCP that is spoken.",
    });
    let accept = json!({
        "name": "Accept", "in": "header", "required": true, "schema": {"type": "string"},
        "description": "Names application/json and text/event-stream.",
    });
    // An agent that holds its own key proves that, and needs no other.
    let keys = || vec![json!({"agentKey": []}), json!({"agentKeyHeader": []}), json!({"proof": []})];
    let mut credentials = keys();
    credentials.push(json!({"grantToken": [], "proof": []}));
    let json_of = |schema: Value| json!({"application/json": {"schema": schema}});
    let id = json!({"type": ["string", "integer"]});
    let request = json!({
        "type": "object", "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0"}, "id": id, "method": {"type": "string"}, "params": {"type": "object"},
        },
    });
    let response = json!({
        "type": "object", "required": ["jsonrpc", "id"],
        "properties": {
            "jsonrpc": {"const": "2.0"}, "id": {"type": ["string", "integer", "null"]}, "result": {"type": "object"},
            "error": {
                "type": "object", "required": ["code", "message"],
                "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
            },
        },
    });
    let refused = json!({"$ref": "#/components/responses/Refused"});
    let call = json!({
        "operationId": "AgentCall",
        "summary": "Uses a memory tool, as one of the owner's agents",
        "security": keys(),
        "requestBody": {"required": true, "content": {super::MEDIA_TYPE: {"schema": call}}},
        "responses": {
            "200": {"description": "Done.", "content": {super::MEDIA_TYPE: {"schema": answer}}},
            "default": refused,
        },
    });
    let mcp = json!({
        "operationId": "Mcp",
        "summary": "One message of the Model Context Protocol, over streamable HTTP without sessions",
        "description": "Of an agent of the owner's, all memory tools; under a grant, memory_recall, memory_query and memory_explain on \
            its view. An access token of OAuth stands in place of an agent's key. Callers with an Origin are not served, unless the \
            owner listed it.",
        "security": credentials,
        "parameters": [accept, version],
        "requestBody": {"required": true, "content": json_of(request)},
        "responses": {
            "200": {"description": "The answer.", "content": json_of(response)},
            "202": {"description": "A notification was taken."},
            "default": refused,
        },
    });
    [
        ("/oap/agent/call", json!({"post": call})),
        ("/mcp", json!({"post": mcp})),
        ("/.well-known/brain/sparql", json!({"get": sparql("AskBrain"), "post": sparql("TellBrain")})),
    ]
}

/// The query side of the SPARQL 1.1 Protocol, by one of its methods.
fn sparql(name: &str) -> Value {
    let text = || json!({"schema": {"type": "string"}});
    let graphs = |name: &str| {
        json!({
            "name": name, "in": "query", "required": false, "explode": true,
            "schema": {"type": "array", "items": {"type": "string", "format": "iri"}},
            "description": "A graph of the dataset that is asked (SPARQL 1.1 Protocol, section 2.1.4).",
        })
    };
    let answers = [
        "application/sparql-results+json",
        "application/sparql-results+xml",
        "text/csv",
        "text/tab-separated-values",
        "text/turtle",
        "application/n-triples",
        "application/rdf+xml",
    ];
    let content: Map<String, Value> = answers.into_iter().map(|answer| (answer.to_owned(), text())).collect();
    let mut parameters = vec![graphs("default-graph-uri"), graphs("named-graph-uri")];
    let mut operation = json!({
        "operationId": name,
        "summary": "Asks what an agent sees as a graph, in SPARQL 1.1",
        "description": "Without a query, a GET answers with the service description.",
        "security": [{"agentKey": []}, {"agentKeyHeader": []}, {"proof": []}],
        "responses": {
            "200": {"description": "The answer, in the format that Accept likes best.", "content": content},
            "default": {"$ref": "#/components/responses/Refused"},
        },
    });
    if name == "AskBrain" {
        let schema = json!({"type": "string"});
        parameters.push(json!({"name": "query", "in": "query", "required": false, "schema": schema}));
    } else {
        let form = json!({"schema": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}}});
        operation["requestBody"] = json!({"required": true, "content": {
            "application/sparql-query": text(), "application/x-www-form-urlencoded": form,
        }});
    }
    operation["parameters"] = Value::Array(parameters);
    operation
}

/// The name of the part of a path that varies.
fn varies(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once('{')?;
    Some(rest.split_once('}')?.0)
}

/// What every refusal is.
fn refused() -> Value {
    json!({
        "description": "Refused; the message names the fix.",
        "content": {super::MEDIA_TYPE: {"schema": {
            "type": "object",
            "required": ["error", "message", "request_id"],
            "properties": {
                "error": {"type": "string", "description": "A code of OAP-CORE appendix B."},
                "message": {"type": "string"},
                "request_id": {"type": "string", "description": "The request, as it is logged."},
            },
        }}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn what_is_referred_to_is_there() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for reference in found {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
    }

    /// Two types of one name would get a number.
    #[test]
    fn each_schema_has_a_name_of_its_own() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let numbered = |name: &&String| name.ends_with(|c: char| c.is_ascii_digit());
        assert_eq!(schemas.keys().find(numbered), None);
    }

    #[test]
    fn each_operation_has_a_name_and_a_place_of_its_own() {
        let rows = all();
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
        let places: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row.method.as_str(), row.path)).collect();
        assert_eq!((names.len(), places.len()), (rows.len(), rows.len()));
    }

    #[test]
    fn parameters_of_the_address_are_told_one_by_one() {
        let document = document();
        let explain = &document["paths"]["/oap/owner/items/{id}/explain"]["get"]["parameters"];
        let told: Vec<(&str, &str, bool)> = explain
            .as_array()
            .unwrap()
            .iter()
            .map(|p| (p["name"].as_str().unwrap(), p["in"].as_str().unwrap(), p["required"] == true))
            .collect();
        assert_eq!(told, [("id", "path", true), ("level", "query", true), ("profile", "query", true)]);
    }
}
