//! What is run in place of what is printed.

use std::collections::BTreeSet;
use std::sync::Mutex;

/// Commands that cannot run here, by a part of them, and why. An entry that no text holds fails the test.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo test --workspace", "it runs this test"),
    ("probe https://localhost:8443 --own --trust-ca", "README.md's does the same; all probes take a while"),
    ("agent consent approve ", "needs a page that waits; gateway/tests/mcp/oauth.rs has one"),
    ("agent consent decline ", "the same"),
    (
        "audit acks show sha256:",
        "needs an answer of somebody else's; gateway/tests/federated/acks.rs has one",
    ),
    ("audit acks give sha256:", "the same"),
    (" ask_01", "needs a request that waits; gateway/tests/letters.rs has one"),
    ("grant received show ", "needs a grant of somebody else's; the same"),
    ("grant subscribe ", "the same; gateway/tests/subscriptions.rs has one"),
    ("grant unsubscribe sub_01", "needs a subscription; the same"),
    ("grant received check ", "the same"),
    ("grant received remove ", "the same"),
    ("grant received add ", "the same"),
    ("grant delegate ", "the same; gateway/tests/passed_on.rs"),
    (" --of did:web:friend.example", "needs a second peer; gateway/tests/witnesses/faces.rs has them"),
    ("agent consent end ", "needs a yes that was given; the same"),
    ("oap-memory review accept ", "needs an item that waits; gateway/tests/soundness.rs has one"),
    ("oap-memory review reject ", "the same"),
    ("oap-memory review merge ", "the same"),
    ("docker ", "needs a container builder; .ci/run builds and runs the image where there is one"),
    ("systemctl ", "needs systemd as init"),
    ("systemd-sysusers", "makes a user of the system"),
    ("install -m 755 oap-memory /usr/local/bin/", "writes into the system"),
    ("install -d -m 700 -o ", "needs root and the service's user"),
    ("node runner.js", "the protocol's own suite is not part of the project"),
    ("conformance attest --report report.json", "needs a report of that suite"),
    (" receipt.json", "needs a receipt that was made of such a report"),
];

/// Commands that ask a person at the terminal, who says yes.
const CONFIRMED: &[&str] = &["oap-memory delete "];

/// Commands that are printed as a form: what is run instead.
const INSTEAD: &[(&str, &str)] = &[
    ("oap-memory conformance", "oap-memory conformance --help"),
    ("oap-memory audit decision pol_…", "oap-memory audit decision $(a-decision)"),
    ("oap-memory profile check FILE", "oap-memory profile check mine.toml"),
    (
        "oap-memory hold set ITEM --until …",
        "oap-memory hold set $(an-item) --reason ongoing_dispute --until 30d",
    ),
    (
        "oap-memory delete --item|--label|--subject|--scope|--provenance imported_from=chatgpt|--since|--until|--all",
        "oap-memory import chatgpt-export.zip && oap-memory delete --provenance imported_from=chatgpt --yes",
    ),
    (
        "oap-memory workflow apply quarterly.yaml",
        "oap-memory agent add billing-agent >/dev/null && printf 'agents: {billing-agent: {episodic_memory: {capacity: 200}}}' >quarterly.yaml && oap-memory workflow apply quarterly.yaml",
    ),
    (
        "oap-memory agent show scout",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory agent show scout",
    ),
    (
        "oap-memory policy set tool_result_verified --agent scout",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory policy set tool_result_verified --agent scout",
    ),
    (
        "oap-memory mcp --agent scout",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory mcp --agent scout",
    ),
    (
        "oap-memory agent set scout --permission read --working 50",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory agent set scout --permission read --working 50",
    ),
    (
        "oap-memory agent rotate scout",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory agent rotate scout",
    ),
    (
        "oap-memory agent remove scout",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory agent remove scout",
    ),
    (
        "oap-memory agent client remove desk",
        "{ oap-memory agent client add desk --redirect http://127.0.0.1/callback || true; } >/dev/null 2>&1 && oap-memory agent client remove desk",
    ),
    (
        "oap-memory audit injected --agent scout --at 2026-06-30T14:00:00Z",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory audit injected --agent scout --at 2026-06-30T14:00:00Z",
    ),
    (
        "oap-memory audit --grantee scout",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory audit --grantee scout",
    ),
    (
        "oap-memory who scout",
        "{ oap-memory agent show scout || oap-memory agent add scout; } >/dev/null 2>&1 && oap-memory who scout",
    ),
    ("oap-memory man --out DIR", "oap-memory man --out man"),
    ("oap-memory backup FOLDER", "oap-memory backup \"$PWD/copy\""),
    (
        "oap-memory completions bash|zsh|fish",
        "oap-memory completions bash && oap-memory completions zsh && oap-memory completions fish",
    ),
    (
        "oap-memory grant consent mgr_…",
        "oap-memory grant issue --to did:web:contractor.example --purpose x --until 1d --trust-level 0 >/dev/null \
         && oap-memory grant consent $(a-grant)",
    ),
];

/// Commands that end otherwise than with 0, as the text beside them says.
const STATUS: &[(&str, &str, i32)] = &[
    // There is no code before the other side says the same, and nothing to ask before both said yes.
    ("oap-memory device --help", "oap-memory device add did:web:laptop.example --code 1234-5678", 3),
    ("oap-memory device add --help", "oap-memory device add did:web:laptop.example --code 1234-5678", 3),
    ("oap-memory device --help", "oap-memory device sync did:web:laptop.example", 1),
    ("oap-memory device sync --help", "oap-memory device sync did:web:laptop.example", 1),
    // Without the owner's side, or through a program that refuses everything, not all is probed.
    ("README.md", "oap-memory probe https://memory.example", 5),
    ("README.md", "oap-memory probe https://other.example --setup ./fixture.py", 5),
    ("oap-memory probe --help", "oap-memory probe https://memory.example", 5),
    (
        "oap-memory probe --help",
        "oap-memory probe https://memory.example --setup ./fixture.py --junit report.xml",
        5,
    ),
];

/// What stands for something else, longest first; `{…}` is filled in by the place.
const STANDS_FOR: &[(&str, &str)] = &[
    ("cargo run --release -- ", "oap-memory "),
    ("sudo -u oap-memory ", ""),
    ("did:web:memory.example.org", "{did}"),
    ("did:web:old-vendor.example", "{did}"),
    ("did:web:old.example", "{did}"),
    ("did:web:localhost%3A8443", "{did}"),
    ("did:web:contractor.example", "{contractor}"),
    ("did:web:laptop.example", "{contractor}"),
    ("peer find contractor.example", "peer find {contractor's host}"),
    ("https://memory.example.org", "{origin}"),
    ("https://memory.example", "{origin}"),
    ("https://other.example", "{origin}"),
    ("https://user.example", "{origin}"),
    ("https://localhost:8443", "{origin}"),
    // A day that was in the future when it was written.
    ("--until 2026-06-30", "--until 30d"),
    ("0.0.0.0:443", "{listen}"),
    ("127.0.0.1:8080", "{listen}"),
    ("/etc/bash_completion.d/", "etc/"),
    ("/etc/oap-memory/master.key", "etc/master.key"),
    ("/etc/oap/master.key", "etc/master.key"),
    ("/var/lib/oap-memory", "$PWD/.oap-memory"),
    ("/other-disk/erasures.jsonl", "$PWD/.oap-memory/erasures.jsonl"),
    ("/old/home/erasures.jsonl", "$PWD/.oap-memory/erasures.jsonl"),
    ("--home /next ", "--home \"$PWD/next\" "),
    ("--home /new/home ", "--home \"$PWD/new\" "),
    ("--home /new ", "--home \"$PWD/new\" "),
    (" /backup/", " $PWD/backup/"),
    ("did:key:z6Mk…", "$(my-did)"),
    ("did:key:z6Mk...", "$(my-did)"),
    ("age1…", "{age}"),
    ("age1...", "{age}"),
    ("mem_01J9V8B7", "$(an-item)"),
    ("mem_01...", "$(an-item)"),
    ("mem_01…", "$(an-item)"),
    ("mem_…", "$(an-item)"),
    ("mgr_01...", "$(a-grant)"),
    ("mgr_01…", "$(a-grant)"),
    ("mgr_...", "$(a-grant)"),
    ("mgr_…", "$(a-grant)"),
    ("job_01...", "$(a-job)"),
    ("brg_01...", "$(a-bridge)"),
    ("brg_…", "$(a-bridge)"),
    ("pol_01...", "$(a-decision)"),
    ("pol_…", "$(a-decision)"),
    ("urn:oap:deletion:01J9V8B7H1ZK4D2A0M9R8F0KQX", "$(a-deletion)"),
];

/// What becomes of a command.
pub enum Execution {
    NotRun,
    Run { script: String, status: i32 },
}

/// The tables, and which of their entries were used.
#[derive(Default)]
pub struct Tables(Mutex<BTreeSet<&'static str>>);

impl Tables {
    pub fn execution(&self, text: &str, command: &str) -> Execution {
        let used = |entry: &'static str| self.0.lock().unwrap().insert(entry);
        if let Some((part, _)) = NOT_RUN.iter().find(|(part, _)| command.contains(part)) {
            used(part);
            return Execution::NotRun;
        }
        let mut script = command.to_owned();
        if let Some((printed, instead)) = INSTEAD.iter().find(|(printed, _)| *printed == command) {
            used(printed);
            (*instead).clone_into(&mut script);
        }
        let says_yes = |script: &str| script.contains("--yes") || script.contains("--dry-run");
        if CONFIRMED.iter().any(|asks| script.starts_with(asks)) && !says_yes(&script) {
            script.push_str(" --yes");
        }
        for (printed, stands_for) in STANDS_FOR {
            script = script.replace(printed, stands_for);
        }
        let bare = command.split(" #").next().unwrap_or_default().trim_end();
        let status = STATUS.iter().find(|(name, printed, _)| *name == text && *printed == bare);
        if let Some((_, printed, _)) = status {
            used(printed);
        }
        Execution::Run { script, status: status.map_or(0, |(_, _, status)| *status) }
    }

    /// Entries of the lists that no text holds.
    pub fn unused(&self) -> Vec<&'static str> {
        let used = self.0.lock().unwrap();
        let not_run = NOT_RUN.iter().map(|(part, _)| *part);
        let all = not_run.chain(INSTEAD.iter().map(|(printed, _)| *printed));
        all.chain(STATUS.iter().map(|(_, printed, _)| *printed))
            .filter(|entry| !used.contains(entry))
            .collect()
    }
}
