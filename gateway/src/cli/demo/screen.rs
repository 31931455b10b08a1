//! Text in 80 columns.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde_json::{Map, Value};

/// Columns of the screen.
const COLUMNS: u16 = 80;
/// Columns before every text.
const INDENT: u16 = 3;
/// Columns of one of two sides.
const SIDE: u16 = 36;

/// Where the story is told.
#[derive(Clone, Copy)]
pub(super) struct Screen {
    /// Nothing is said: JSON is asked for.
    pub(super) quiet: bool,
}

impl Screen {
    /// Prints lines as they are.
    pub(super) fn say(self, text: &str) {
        use std::io::Write;
        if !self.quiet {
            let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
        }
    }

    /// A title, after an empty line.
    pub(super) fn title(self, text: &str) {
        self.say(&format!("\n{text}"));
    }

    /// An empty line.
    pub(super) fn gap(self) {
        self.say("");
    }

    /// A paragraph.
    pub(super) fn text(self, text: &str) {
        self.say(&lay(&[&[text.to_owned()]], &[COLUMNS - INDENT]));
    }

    /// Commands, and what stands between them.
    pub(super) fn commands(self, text: &str) {
        let lines = text.lines().map(|line| format!("   {line}").trim_end().to_owned());
        self.say(&lines.collect::<Vec<_>>().join("\n"));
    }

    /// A wide column and a narrow one.
    pub(super) fn pairs(self, rows: &[[String; 2]]) {
        self.say(&lay(rows, &[SIDE + 14, SIDE - 14]));
    }

    /// Two sides with their titles, an empty line between rows.
    pub(super) fn columns(self, titles: [&str; 2], rows: &[[String; 2]]) {
        let rule = || "-".repeat(usize::from(SIDE));
        let mut all = vec![titles.map(str::to_owned), [rule(), rule()]];
        for (n, row) in rows.iter().enumerate() {
            if n > 0 {
                all.push([String::new(), String::new()]);
            }
            all.push(row.clone());
        }
        self.say(&lay(&all, &[SIDE, SIDE]));
    }
}

/// Rows in columns of such widths. A word is never cut that fits into its column.
fn lay(rows: &[impl AsRef<[String]>], widths: &[u16]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(COLUMNS);
    for row in rows {
        table.add_row(row.as_ref());
    }
    for (column, width) in table.column_iter_mut().zip(widths) {
        column.set_padding((0, 2));
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width + 2)));
    }
    let indent = " ".repeat(usize::from(INDENT));
    let lines = table.lines().map(|line| format!("{indent}{line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// What an item says to people: its text, and what is known of a person or event in it.
pub(super) fn plain(item: &Value) -> String {
    let content = &item["content"];
    let mut parts: Vec<String> = content["text"].as_str().map(str::to_owned).into_iter().collect();
    let is_entity = |members: &Map<String, Value>| parts.is_empty() || members.contains_key("entity_type");
    if let Some(entity) = content["structured"].as_object().filter(|members| is_entity(members)) {
        let members = entity.iter().filter(|(name, _)| !name.starts_with("entity_"));
        parts.extend(members.map(|(name, value)| format!("{name}: {}", leaves(value).join(", "))));
    }
    parts.join("\n")
}

fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(leaves).collect(),
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        _ => Vec::new(),
    }
}

/// How many details of a text are hidden: `[email]`, `[secret]`.
pub(super) fn marks(text: &str) -> usize {
    text.matches('[').count()
}
