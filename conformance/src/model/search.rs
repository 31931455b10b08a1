//! Which items a question must find, and which it may: ranking is bounded by what it must not do (protocol section 6).
//!
//! How words are brought to a common form is the gateway's own. So a long word that stands by itself in what is shown must find the item, and
//! an item of which no word resembles one of the question must not be found, unless it was captured when the question names, or vectors say
//! otherwise.

use super::view::Visible;
use oap_identity::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// A word of so many characters is none that a gateway takes for meaningless, such as "where".
const LONG: usize = 9;
/// Words with so many first characters in common may have one stem.
const STEM: usize = 3;
/// Turns of a conversation this close together may be matched in their context, give or take.
const CONVERSATION: Duration = Duration::from_secs(60 * 60);

/// A time that the gateway set itself is known give or take, and so is its date.
const ABOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The months by the letters that each of their names begins with.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// English words and forms of them that do not begin alike, which a gateway may know to be one word.
const IRREGULAR: &str = "\
    arise/arose blow/blew break/broke/broken bring/brought buy/bought catch/caught come/came dig/dug \
    draw/drew drink/drank/drunk drive/drove eat/ate fall/fell feed/fed feel/felt fight/fought find/found \
    fly/flew/flown foot/feet freeze/froze/frozen get/got/gotten give/gave go/gone/went grow/grew hang/hung \
    hold/held keep/kept know/knew lead/led leave/left light/lit make/made man/men meet/met mouse/mice \
    pay/paid person/people ride/rode run/ran say/said see/saw seek/sought sell/sold shake/shook \
    sing/sang/sung sink/sank/sunk sit/sat speak/spoke/spoken stand/stood steal/stole/stolen stick/stuck \
    swear/swore/sworn swim/swam/swum take/took teach/taught tear/tore/torn tell/told think/thought \
    tooth/teeth wake/woke/woken wear/wore/worn weave/wove/woven weep/wept wife/wives win/won write/wrote";

/// Whether an item may be found, and whether it must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub may: BTreeSet<String>,
    pub must: BTreeSet<String>,
}

/// What a question finds among items. With a model of embeddings anything may be near.
pub(super) fn find(question: &str, items: &[&Visible], embeddings: bool) -> Found {
    let asked = words(question);
    let sought: Vec<(&String, Vec<&str>)> = asked.iter().map(|word| (word, families(word))).collect();
    let whole: BTreeSet<String> = alone(question).filter(|word| word.chars().count() >= LONG).collect();
    let resembles = |visible: &&&Visible| {
        let has = words(&visible.text);
        sought.iter().any(|(asked, families)| has.iter().any(|word| alike(asked, families, word)))
    };
    let near: Vec<&&Visible> = items.iter().filter(resembles).collect();
    let turn = |visible: &Visible| visible.shown("kind") == Some("conversation_turn");
    let in_context = |visible: &Visible| {
        turn(visible)
            && near.iter().any(|other| {
                let (a, b) = (visible.captured.min(other.captured), visible.captured.max(other.captured));
                turn(other) && b <= a.plus(CONVERSATION)
            })
    };
    let may = items.iter().filter(|visible| {
        embeddings
            || in_context(visible)
            || near.iter().any(|other| other.id == visible.id)
            || may_name(&asked, visible.captured)
    });
    let must = items.iter().filter(|visible| alone(&visible.certain).any(|word| whole.contains(&word)));
    Found {
        may: may.map(|visible| visible.id.clone()).collect(),
        must: must.map(|visible| visible.id.clone()).collect(),
    }
}

/// The words of a text, however they are separated.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// The words of ASCII letters that stand by themselves, between spaces or at an end, maybe before a full stop or comma.
fn alone(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',', ';', '!', '?']))
        .filter(|word| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphabetic()))
        .map(str::to_ascii_lowercase)
}

/// Whether a word may be a form of another one, which has these families.
fn alike(asked: &str, families: &[&str], word: &str) -> bool {
    begin_alike(asked, word) || families.iter().any(|family| is_of(family, word))
}

/// The irregular words that a word may be a form of: most are of none.
fn families(word: &str) -> Vec<&'static str> {
    IRREGULAR.split(' ').filter(|family| is_of(family, word)).collect()
}

fn is_of(family: &str, word: &str) -> bool {
    family.split('/').any(|form| word.starts_with(form) || begin_alike(form, word))
}

/// Whether two words may have one stem.
fn begin_alike(a: &str, b: &str) -> bool {
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    a == b || common >= STEM
}

/// Whether a question may name the year or the month in which something was captured. The beginning of 1970 stands for a time that is hidden.
fn may_name(asked: &BTreeSet<String>, captured: Timestamp) -> bool {
    let dates = [captured.minus(ABOUT), captured, captured.plus(ABOUT)].map(Timestamp::date);
    let mut parts = dates.iter().flat_map(|date| date.split('-').take(2));
    captured.millis() != 0
        && parts.any(|part| {
            let month = part.parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
            asked.contains(part)
                || month.is_some_and(|month| asked.iter().any(|word| word.starts_with(month)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Timestamp;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn visible(id: &str, kind: &str, text: &str, at: i64) -> Visible {
        Visible {
            id: id.to_owned(),
            item: json!({"kind": kind}),
            free: BTreeMap::new(),
            chain: Vec::new(),
            captured: Timestamp::from_seconds(at),
            clocked: false,
            text: text.to_owned(),
            certain: text.to_owned(),
            exportable: true,
        }
    }

    #[test]
    fn a_long_word_that_is_shown_must_find_and_a_strange_one_must_not() {
        let a = visible("a", "fact", "met the cartographer.\n", 0);
        let b = visible("b", "fact", "cartography\n", 0);
        let c = visible("c", "fact", "tea\n", 0);
        let all = [&a, &b, &c];
        let found = find("Cartographer", &all, false);
        assert_eq!(found.must, ["a".to_owned()].into());
        assert_eq!(found.may, ["a".to_owned(), "b".to_owned()].into());
        assert_eq!(find("zeppelins", &all, false), Found::default());
        assert_eq!(find("zeppelins", &all, true).may.len(), 3);
        assert!(find("tea", &all, false).must.is_empty(), "short words may carry no meaning");
        assert_eq!(find("taught", &[&visible("a", "fact", "teaching", 0)], false).may.len(), 1);
    }

    #[test]
    fn a_question_may_name_when_something_was_captured() {
        // 2023-05-31T12:00:00Z
        let (may, hidden) = (visible("a", "fact", "x", 1_685_534_400), visible("b", "fact", "x", 0));
        let found = |question: &str| find(question, &[&may, &hidden], false).may;
        for question in ["in May", "2023", "notes of 2023-05-31", "on 1 June"] {
            assert_eq!(found(question), ["a".to_owned()].into(), "{question}");
        }
        for question in ["in July", "2022", "1970", "January"] {
            assert!(found(question).is_empty(), "{question}");
        }
    }

    #[test]
    fn turns_are_matched_in_their_context() {
        let (a, b) = (
            visible("a", "conversation_turn", "holidaymaking", 0),
            visible("b", "conversation_turn", "Lisbon", 60),
        );
        let far = visible("c", "conversation_turn", "Porto", 90_000);
        assert_eq!(
            find("holidaymaking", &[&a, &b, &far], false).may,
            ["a".to_owned(), "b".to_owned()].into()
        );
    }
}
