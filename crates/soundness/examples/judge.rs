//! What the poisoning guard says of each line of standard input, a JSON string or plain text:
//! `cargo run -p oap-soundness --example judge < lines`.

use oap_agents::Level;
use oap_soundness::guard::{Severity, Verdict, examine};
use std::io::BufRead;

fn main() {
    let (mut lines, mut stopped) = (0, 0);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let text = serde_json::from_str::<String>(&line).unwrap_or(line);
        let found = examine(&text);
        let verdict = found.verdict(Level::External);
        lines += 1;
        stopped += usize::from(verdict == Verdict::Quarantined);
        let start: String = text.chars().take(100).collect();
        println!("{verdict:?}\t{:?}\t{start:?}", found.kinds(Severity::Note));
    }
    println!("{stopped} of {lines} stopped");
}
