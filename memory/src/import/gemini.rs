//! Google Takeout, My Activity of Gemini Apps, as JSON.

use super::{Draft, File, Sink, json, skipped, text, time};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

pub(super) const ABOUT: &str = "each prompt and each answer becomes a conversation turn with its time; answers are HTML and \
    become plain text; Takeout keeps no threads; other activities (feedback, canvases, files) are left out";

const FROM: &str = "gemini";
/// Longest line of the text that HTML becomes.
const WIDTH: usize = 10_000;

pub(super) fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    json::each(file, &[], sink, |_, number, value, sink| entry(&value, &format!("{name}[{number}]"), sink));
}

fn entry(entry: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let of_gemini =
        |value: &Value| value.as_str().is_some_and(|text| text.contains("Gemini") || text == "Bard");
    let products = entry["products"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !of_gemini(&entry["header"]) && !products.iter().any(of_gemini) {
        return sink(skipped(place.to_owned(), "an activity of another product"));
    }
    let answers: Vec<&str> = entry["safeHtmlItem"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["html"].as_str())
        .collect();
    let title = text(entry, "title");
    let asked = title.strip_prefix("Prompted ").or_else(|| (!answers.is_empty()).then_some(title));
    let Some(asked) = asked.map(str::trim).filter(|asked| !asked.is_empty()) else {
        return sink(skipped(place.to_owned(), "no prompt"));
    };
    let at = time(&entry["time"]);
    let source = format!("{FROM}:{}:{}", text(entry, "time"), oap_identity::Hash::of(title.as_bytes()));
    let turn = |role: &str, said: &str| {
        Draft::new("conversation_turn", said, FROM)
            .structured(Map::from_iter([("role".to_owned(), json!(role))]))
            .tag("link", entry.get("titleUrl"))
            .at(at)
    };
    turn("user", asked).send(format!("{source}:user"), place.to_owned(), sink)?;
    for (number, html) in answers.iter().enumerate() {
        let place = format!("{place}.safeHtmlItem[{number}]");
        match html2text::config::plain_no_decorate().string_from_read(html.as_bytes(), WIDTH) {
            Ok(said) if !said.trim().is_empty() => {
                turn("assistant", said.trim()).send(format!("{source}:assistant:{number}"), place, sink)?;
            }
            Ok(_) => sink(skipped(place, "no text in it"))?,
            Err(error) => sink(super::refused(place, error))?,
        }
    }
    ControlFlow::Continue(())
}
