//! `oap-memory item show --history`

use super::{output, who};
use serde_json::Value;

/// The versions of an item, what each changed, and to whom which was shown.
pub(super) fn people(answer: &Value) -> String {
    let mut text = format!("{} ({})\n", output::text(answer, "/item_id"), output::text(answer, "/status"));
    for event in answer["events"].as_array().into_iter().flatten() {
        let member = |member: &str| output::text(event, member);
        text.push_str(&format!(
            "\n{}  version {}  {}\n    by {}\n",
            member("/at"),
            member("/version"),
            member("/event"),
            member("/actor")
        ));
        if event["content"] == "not kept any more" {
            text.push_str("    what it said is not kept any more\n");
        }
        let changes = &event["changes"];
        for (sign, member) in [('+', "labels_added"), ('-', "labels_removed"), ('~', "other")] {
            let names = texts(&changes[member]);
            if !names.is_empty() {
                let what = if sign == '~' { "changed" } else { "label" };
                text.push_str(&format!("    {sign} {what} {}\n", names.join(" ")));
            }
        }
        for (sign, member) in [('-', "/text/before"), ('+', "/text/after")] {
            if let Some(says) = changes.pointer(member).and_then(Value::as_str) {
                text.push_str(&format!("    {sign} {}\n", output::short(says, 72)));
            }
        }
    }
    let disclosed = answer["disclosed"].as_array().cloned().unwrap_or_default();
    if disclosed.is_empty() {
        text.push_str("\nnever shown to anybody");
    } else {
        let rows = disclosed.iter().map(|line| {
            let mut row =
                ["/grantee", "/version", "/times", "/first", "/last"].map(|m| output::text(line, m)).to_vec();
            row.push(who::seen_at(line));
            row
        });
        text.push('\n');
        text.push_str(&output::table(&["shown to", "version", "times", "first", "last", "level"], rows));
    }
    if answer["complete"] == false {
        text.push_str("\nonly the newest receipts were looked at");
    }
    output::fitted(&text)
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
