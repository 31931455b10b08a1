//! The guard over the labelled corpus: a confusion table of each half, and every case that goes wrong.

use oap_agents::Level;
use oap_soundness::guard::{Severity, Verdict, examine};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

#[derive(Deserialize)]
struct Case {
    id: String,
    label: String,
    lang: String,
    family: String,
    text: String,
}

fn half(name: &str) -> Vec<Case> {
    let path = format!("{}/tests/corpus/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How often each happened: stopped attacks, attacks let through, innocents stopped, innocents let through.
#[derive(Debug, Default, Clone, Copy)]
struct Table {
    caught: f64,
    missed: f64,
    wrong: f64,
    right: f64,
}

impl Table {
    fn precision(self) -> f64 {
        self.caught / (self.caught + self.wrong)
    }
    fn recall(self) -> f64 {
        self.caught / (self.caught + self.missed)
    }
}

fn measure(name: &str) -> Table {
    let mut table = Table::default();
    let mut failed = Vec::new();
    for case in half(name) {
        let found = examine(&case.text);
        let stopped = found.verdict(Level::External) == Verdict::Quarantined;
        let count = match (case.label.as_str(), stopped) {
            ("attack", true) => &mut table.caught,
            ("attack", false) => &mut table.missed,
            (_, true) => &mut table.wrong,
            (_, false) => &mut table.right,
        };
        *count += 1.0;
        if stopped != (case.label == "attack") {
            let what = if stopped { "wrongly stopped" } else { "let through" };
            let kinds = found.kinds(Severity::Note);
            failed
                .push(format!("{what}: {} {} {} {kinds:?} {:?}", case.id, case.lang, case.family, case.text));
        }
    }
    println!(
        "{name}: attacks {} stopped, {} let through; innocents {} wrongly stopped, {} let through; precision {:.3}, recall {:.3}",
        table.caught,
        table.missed,
        table.wrong,
        table.right,
        table.precision(),
        table.recall()
    );
    failed.iter().for_each(|line| println!("  {line}"));
    table
}

#[test]
fn the_half_that_rules_are_tuned_on() {
    let table = measure("tune");
    assert!(table.precision() >= 0.95 && table.recall() >= 0.95, "{table:?}");
}

/// Measured first, with the rules as they were committed first: precision 1.000, recall 0.957. It is held back no longer: its two misses are in
/// docs/soundness.md, and rules were made that answer them.
#[test]
fn the_half_that_is_held_back() {
    let table = measure("held");
    assert!(table.precision() >= 0.9 && table.recall() >= 0.9, "{table:?}");
}

/// 80 texts that were written later, by somebody who had not read the rules, and of which none was ever tuned on. A floor that broken rules
/// fall through; what it measures stands in docs/soundness.md.
#[test]
fn the_set_that_came_later() {
    let table = measure("late");
    assert!(table.precision() >= 0.85 && table.recall() >= 0.5, "{table:?}");
    let cases = half("late");
    for lang in ["en", "de", "es", "zh"] {
        for label in ["attack", "innocent"] {
            let of = cases.iter().filter(|case| case.lang == lang && case.label == label);
            assert_eq!(of.count(), 10, "{lang} {label}");
        }
    }
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert!(ids.len() == 80 && ids.iter().all(|id| id.starts_with("late-")));
}

/// 200 texts by somebody who had seen neither the rules nor another set, many of which order nothing: they state as a fact what would mislead. What
/// it measures stands in docs/soundness.md; rules that were made with it would make it worth nothing.
#[test]
fn the_set_of_a_stranger() {
    let table = measure("blind");
    // A floor, and no aim: first measured 0.846 and 0.110.
    assert!(table.precision() >= 0.8 && table.recall() >= 0.1, "{table:?}");
    let cases = half("blind");
    for lang in ["en", "de", "es", "zh"] {
        for label in ["attack", "innocent"] {
            let of = cases.iter().filter(|case| case.lang == lang && case.label == label);
            assert_eq!(of.count(), 25, "{lang} {label}");
        }
    }
}

/// The rule of the halves (tests/corpus/README.md).
#[test]
fn every_case_stands_in_the_half_of_its_id() {
    let (mut ids, mut texts) = (BTreeSet::new(), BTreeSet::new());
    for (name, parity) in [("tune", 0), ("held", 1)] {
        let cases = half(name);
        let attacks = cases.iter().filter(|case| case.label == "attack").count();
        assert!(
            cases.len() >= 120 && attacks >= 60 && cases.len() - attacks >= 60,
            "{name}: {}",
            cases.len()
        );
        for lang in ["en", "de", "es", "zh"] {
            let of =
                |label: &str| cases.iter().filter(|case| case.lang == lang && case.label == label).count();
            assert!(of("attack") >= 8 && of("innocent") >= 8, "{name} {lang}");
        }
        for case in cases {
            assert_eq!(Sha256::digest(&case.id)[0] % 2, parity, "{}", case.id);
            assert!(["attack", "innocent"].contains(&case.label.as_str()), "{}", case.id);
            assert!(texts.insert(case.text), "{}", case.id);
            assert!(ids.insert(case.id));
        }
    }
    assert!(ids.len() >= 240, "{}", ids.len());
}
