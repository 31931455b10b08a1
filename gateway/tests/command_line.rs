//! The form of the command line: what is typed wrongly, screens, grants by prefix and from drafts, the status.

mod program;

use program::*;
use serde_json::Value;

/// What is typed wrongly fails before anything is opened: this home is not there, which would be status 1.
#[test]
fn what_is_typed_wrongly_names_the_flag_and_the_fix() {
    let home = Home::empty();
    for (line, says) in [
        (
            "audit --since tomorow",
            "--since: \"tomorow\" is not a time; use 30d, 2w, 1h, 15m, 2026-06-30 or an RFC 3339 time",
        ),
        (
            "grant preview --to did:wbe:a.example --purpose p --until 30d",
            "--to: the DID method \"wbe\" is not known here",
        ),
        ("grant preview --to did:web:a.example --purpose p --until 30e", "--until: \"30e\" is not a time"),
        (
            "grant preview --to did:web:a.example --purpose p --until 30d --kind facts",
            "--kind: \"facts\" is not known; use one of fact, ",
        ),
        ("grant show mem_1", "ID: "),
        ("item list --scope a/b", "--scope: a scope is"),
        ("keys revoke key-1 --since 2026-02-30", "--since: \"2026-02-30\" is not a time"),
        ("delete --all --yes --until never", "--until: \"never\" is not a time"),
        ("export bundle --since 1y", "--since: \"1y\" is not a time"),
        ("hold set mem_01J9V8B7H1ZK4D2A0M9R8F0KQX --until 99999999d", "--until: \"99999999d\" is too long"),
        ("bridge issue --from a --to b --category c --until x", "--until: \"x\" is not a time"),
        ("import file --from chatgtp", "--from: \"chatgtp\" is not known; use one of chatgpt, "),
        ("unlock --for 13h", "--for: at most 12h"),
        ("init --did did:example:1", "--did: "),
        ("probe memory.example", "URL: must be a URL"),
        ("item list --nope", "--nope"),
        ("nope", "nope"),
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        home.run(&arguments).failed(2, says);
        let ran = home.run(&[&arguments[..], &["--json"]].concat());
        let told: Value =
            serde_json::from_str(&ran.stderr).unwrap_or_else(|e| panic!("{line}: {e}: {}", ran.stderr));
        assert_eq!((ran.status, &told["status"], ran.stdout.as_str()), (2, &2.into(), ""), "{line}");
        assert!(told["error"].as_str().is_some_and(|error| error.contains(says)), "{line}: {told}");
    }
    home.run(&["grant", "--json"]).failed(2, "subcommand");
    assert!(home.run(&["grant", "--help", "--json"]).ok().contains("Examples:"));
}
