//! mem0, as its `get_all` returns it.

use super::{Exporter, Form, Layout, labels, said};
use serde_json::{Value, json};

pub(super) const EXPORTER: Exporter = Exporter {
    form: Form::Mem0,
    layout: Layout::File { before: "{\"results\":[\n", between: ",\n", after: "\n]}\n" },
    write,
};

fn write(item: &Value) -> String {
    json!({
        "id": item["item_id"],
        "memory": said(item),
        "user_id": item["owner_did"],
        "categories": labels(item),
        "metadata": {
            "kind": item["kind"], "subject": item["subject_entity_id"], "scope": item["scope_id"],
            "confidence": item["provenance"]["confidence"], "structured": item["content"]["structured"],
        },
        "created_at": item["provenance"]["captured_at"],
        "updated_at": Value::Null,
    })
    .to_string()
}
