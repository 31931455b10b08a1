//! Google Takeout, My Activity of Gemini Apps, as JSON or as a page of HTML.

mod page;

use super::{
    Draft, File, Format, Importer, Likeness, Looks, Reach, Sink, json, looks::Shape, skipped, text, time,
};
use oap_identity::Timestamp;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::ops::ControlFlow;

const ABOUT: &str = "each prompt and each answer becomes a conversation turn with its time, from JSON or HTML and in \
    any language whose name for a prompt is known; answers are HTML and become plain text; Takeout keeps no threads; other \
    activities (feedback, canvases, files) are left out";

const FROM: &str = "gemini";
/// Longest line of the text that HTML becomes.
const WIDTH: usize = 10_000;
/// Longest title's prefix, in bytes: `Gesendeter Prompt:`.
const MAX_PREFIX: usize = 64;
/// What Google calls a prompt, in lower case.
const PROMPT: [&str; 10] = [
    "prompt",
    "プロンプト",
    "프롬프트",
    "提示",
    "提問",
    "提问",
    "запрос",
    "requête",
    "petición",
    "polecenie",
];

pub(super) const IMPORTER: Importer =
    Importer { format: Format::Gemini, about: ABOUT, general: false, account_id: None, recognises, read };

fn recognises(looks: &Looks) -> Likeness {
    let page = looks.shape == Shape::Html
        && looks.text.contains("outer-cell")
        && (looks.text.contains("Gemini") || looks.name.contains("Gemini"));
    let headed = looks.has("Gemini") && looks.member("header") && looks.member("title");
    Likeness::sure(page || headed || looks.has("GeminiApps") || looks.member("safeHtmlItem"))
}

fn read(file: File, sink: Sink) {
    let File { name, bytes, mapping } = file;
    let mut first = [0];
    loop {
        match bytes.read(&mut first) {
            Ok(1) if first[0].is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(&first[0]) => {}
            Ok(1) => break,
            _ => return,
        }
    }
    let mut bytes = first.chain(bytes);
    if first == *b"<" {
        return page::read(name, &mut bytes, sink);
    }
    let file = File { name, bytes: &mut bytes, mapping };
    json::each(file, &[], sink, |_, number, value, sink| entry(&value, &format!("{name}[{number}]"), sink));
}

fn of_gemini(product: &str) -> bool {
    product.contains("Gemini") || product == "Bard"
}

fn entry(entry: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let named = |value: &Value| value.as_str().is_some_and(of_gemini);
    let products = entry["products"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !named(&entry["header"]) && !products.iter().any(named) {
        return sink(skipped(place.to_owned(), "an activity of another product"));
    }
    let answers: Vec<&str> = entry["safeHtmlItem"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["html"].as_str())
        .collect();
    let activity = Activity {
        title: text(entry, "title"),
        when: text(entry, "time"),
        at: time(&entry["time"]),
        link: entry.get("titleUrl").cloned(),
        answers,
    };
    activity.send(place, sink)
}

/// One prompt with its answers.
struct Activity<'a> {
    title: &'a str,
    when: &'a str,
    at: Option<Timestamp>,
    link: Option<Value>,
    answers: Vec<&'a str>,
}

impl Activity<'_> {
    fn send(&self, place: &str, sink: Sink) -> ControlFlow<()> {
        let asked = asked(self.title).or_else(|| (!self.answers.is_empty()).then_some(self.title));
        let Some(asked) = asked.map(str::trim).filter(|asked| !asked.is_empty()) else {
            return sink(skipped(place.to_owned(), "no prompt"));
        };
        let source = format!("{FROM}:{}:{}", self.when, oap_identity::Hash::of(self.title.as_bytes()));
        let turn = |role: &str, said: &str| {
            Draft::new("conversation_turn", said, FROM)
                .structured(Map::from_iter([("role".to_owned(), json!(role))]))
                .tag("link", self.link.as_ref())
                .at(self.at)
                .reach(Reach::World)
        };
        turn("user", asked).send(format!("{source}:user"), place.to_owned(), sink)?;
        for (number, html) in self.answers.iter().enumerate() {
            let place = format!("{place}.safeHtmlItem[{number}]");
            match plain(html) {
                Ok(said) if !said.trim().is_empty() => {
                    turn("assistant", said.trim()).send(
                        format!("{source}:assistant:{number}"),
                        place,
                        sink,
                    )?;
                }
                Ok(_) => sink(skipped(place, "no text in it"))?,
                Err(error) => sink(super::refused(place, error))?,
            }
        }
        ControlFlow::Continue(())
    }
}

/// What was asked, without what Google puts before it: `Prompted …`, `Gesendeter Prompt: …`.
fn asked(title: &str) -> Option<&str> {
    if let Some(asked) = title.strip_prefix("Prompted").filter(|rest| rest.starts_with(char::is_whitespace)) {
        return Some(asked);
    }
    let (prefix, asked) = title.split_once([':', '：'])?;
    let lower = prefix.to_lowercase();
    (prefix.len() <= MAX_PREFIX && PROMPT.iter().any(|word| lower.contains(word))).then_some(asked)
}

/// HTML as text.
fn plain(html: &str) -> Result<String, html2text::Error> {
    html2text::config::plain_no_decorate().string_from_read(html.as_bytes(), WIDTH)
}
