//! The item without its proof, one a line.

use super::{Exporter, Form, LINES};
use serde_json::Value;

pub(super) const EXPORTER: Exporter = Exporter { form: Form::Jsonl, layout: LINES, write };

fn write(item: &Value) -> String {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        members.remove("integrity");
    }
    item.to_string()
}
