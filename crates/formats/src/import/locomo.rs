//! Conversations in the form of LoCoMo (Maharana et al., ACL 2024), one item a turn.
//!
//! `session_<n>` is a list of turns with `speaker`, `dia_id` and `text`; `session_<n>_date_time` its time, such as
//! `1:56 pm on 8 May, 2023`. Turns are half a minute apart, so that their order is that of their times. `blip_caption` is what
//! a model saw in the image that a turn shows: it stands below the turn's text, on a line of its own.

use super::{File, Format, Found, Importer, Likeness, Looks, Reach, Record, Sink, json};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::Duration;

const FROM: &str = "locomo";

const ABOUT: &str = "each turn of each session becomes a conversation turn with speaker, session and turn id; times are the \
    session's, half a minute apart; the caption of an image stands below its turn's text; questions, summaries and the images \
    themselves are left out";

/// Time between two turns.
const TURN: Duration = Duration::from_secs(30);

pub(super) const IMPORTER: Importer =
    Importer { format: Format::Locomo, about: ABOUT, general: false, account_id: None, recognises, read };

fn recognises(looks: &Looks) -> Likeness {
    Likeness::sure(looks.member("dia_id") || looks.member("session_1"))
}

/// Reads a conversation, a list of them, or the form of the original data with `conversation` inside.
fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    json::each(file, &[], sink, |_, number, value, sink| {
        let inner = value.get("conversation").filter(|inner| inner.is_object()).unwrap_or(&value);
        let thread = value["sample_id"].as_str().map_or_else(|| format!("{name}[{number}]"), str::to_owned);
        let turns = items(inner, &[FROM]);
        if turns.is_empty() {
            return sink(super::skipped(format!("{name}[{number}]"), "no sessions in it"));
        }
        for mut item in turns {
            let turn = item["content"]["structured"]["turn"].as_str().unwrap_or_default().to_owned();
            item["provenance"]["imported_from"] = json!(FROM);
            item["provenance"]["thread"] = json!(thread);
            let place = format!("{name}[{number}].{turn}");
            let source = format!("{FROM}:{thread}:{turn}");
            let record = Record { source, reach: Reach::File, account: None, group: None, place, item };
            sink(Found::Record(Box::new(record)))?;
        }
        ControlFlow::Continue(())
    });
}

/// The turns of a conversation as items, oldest first, all with these labels.
#[must_use]
pub fn items(conversation: &Value, labels: &[&str]) -> Vec<Value> {
    let mut items = Vec::new();
    for session in 1.. {
        let Some(turns) = conversation[format!("session_{session}")].as_array() else {
            // A session may have a time and no turns; the last one has neither.
            if conversation.get(format!("session_{session}_date_time")).is_none() {
                break;
            }
            continue;
        };
        let time = conversation[format!("session_{session}_date_time")].as_str().and_then(parse_time);
        let mut at = time.unwrap_or(Timestamp::from_seconds(i64::from(session) * 86_400));
        for turn in turns {
            if let (Some(speaker), Some(text)) = (turn["speaker"].as_str(), turn["text"].as_str()) {
                let caption = turn["blip_caption"].as_str().filter(|caption| !caption.trim().is_empty());
                let caption = caption.map(|caption| format!("\nImage: {caption}")).unwrap_or_default();
                items.push(json!({
                    "kind": "conversation_turn",
                    "content": {
                        "text": format!("{speaker}: {text}{caption}"),
                        "structured": {"speaker": speaker, "turn": turn["dia_id"], "session": session},
                    },
                    "provenance": {"captured_at": at},
                    "labels": labels,
                }));
            }
            at = at.plus(TURN);
        }
    }
    items
}

/// `1:56 pm on 8 May, 2023`
fn parse_time(text: &str) -> Option<Timestamp> {
    let (clock, date) = text.split_once(" on ")?;
    let (time, half) = clock.trim().split_once(' ')?;
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = hour % 12 + if half.eq_ignore_ascii_case("pm") { 12 } else { 0 };
    let (day_month, year) = date.trim().split_once(',')?;
    let (day, month) = day_month.split_once(' ')?;
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let name = month.to_lowercase();
    let month = MONTHS.iter().position(|m| name.starts_with(m))? + 1;
    let (day, year): (u32, u32) = (day.parse().ok()?, year.trim().parse().ok()?);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_sessions() {
        let time = |text| parse_time(text).map(|t| t.to_string());
        assert_eq!(time("1:56 pm on 8 May, 2023").as_deref(), Some("2023-05-08T13:56:00.000Z"));
        assert_eq!(time("12:09 am on 13 September, 2023").as_deref(), Some("2023-09-13T00:09:00.000Z"));
        assert_eq!(time("noon"), None);
    }

    #[test]
    fn captions_stand_below_the_text() {
        let turn = |caption: Value| json!({"speaker": "Ada", "dia_id": "D1:1", "text": "Look!", "blip_caption": caption});
        let session = [json!("a photo of an oven"), json!(" "), json!(7), Value::Null].map(turn);
        let items = items(&json!({"session_1": session}), &[]);
        let texts: Vec<&str> = items.iter().map(|i| i["content"]["text"].as_str().unwrap()).collect();
        assert_eq!(
            texts,
            ["Ada: Look!\nImage: a photo of an oven", "Ada: Look!", "Ada: Look!", "Ada: Look!"]
        );
    }

    #[test]
    fn turns_in_order() {
        let text = include_str!("../../../../examples/demo/conversation.json");
        let items = items(&serde_json::from_str(text).unwrap(), &["conversation"]);
        assert_eq!(items.len(), 12);
        let times: Vec<&str> =
            items.iter().map(|i| i["provenance"]["captured_at"].as_str().unwrap()).collect();
        assert!(times.is_sorted());
        assert!(items[0]["content"]["text"].as_str().unwrap().starts_with("Alice: Morning"));
    }
}
