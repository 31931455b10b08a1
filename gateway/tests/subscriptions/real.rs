//! Two real gateways over TLS.

use crate::program::{BINARY, Home, Ran, read};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// Tries until something is there: the gateways are at work by themselves.
fn until<T>(what: impl Fn() -> Option<T>) -> T {
    (0..2000).find_map(|_| what()).expect("it never came")
}

fn held(home: &Home) -> Value {
    home.run(&["grant", "subscriptions", "--json"]).json()["held"][0].clone()
}

/// Two that trust each other's certificates.
fn neighbours() -> (Home, Home) {
    let (mut alice, mut bob) = (Home::web(), Home::web());
    // Each makes its certificate when it first serves.
    for home in [&alice, &bob] {
        home.serve(&[]).stop();
    }
    let flags = |other: &Home| {
        let authority = other.home().join("tls/cert.pem").to_string_lossy().into_owned();
        vec!["--trust-ca".to_owned(), authority, "--allow-local-dids".to_owned()]
    };
    (alice.flags, bob.flags) = (flags(&bob), flags(&alice));
    (alice, bob)
}

/// Grants another to subscribe to what is labelled `website`, and puts that into its wallet; the grant's name.
fn grants(alice: &Home, bob: &Home) -> String {
    let to = read(bob.home().join("did.json"))["id"].as_str().unwrap().to_owned();
    let grant = bob.path("grant.json");
    let issue = ["grant", "issue", "--to", &to, "--purpose", "Website redesign", "--label", "website"];
    let more = ["--until", "30d", "--trust-level", "2", "--allow-subscribe", "--out", &grant];
    alice.run(&[&issue[..], &more[..]].concat()).ok();
    bob.run(&["grant", "received", "add", &grant]).ok();
    read(&grant)["grant_id"].as_str().unwrap().to_owned()
}

/// The granter's gateway is killed between two pushes, and goes on where it was.
#[test]
fn a_subscription_outlives_its_gateways() {
    let (alice, bob) = neighbours();
    let (at_alice, at_bob) = (alice.serve(&[]), bob.serve(&[]));
    let add = |text: &str| {
        alice.run(&["item", "add", "--kind", "fact", "--text", text, "--label", "website"]).ok();
    };
    add("The site goes live on 1 June");
    let id = grants(&alice, &bob);
    assert!(bob.run(&["grant", "subscribe", &id, "--every", "10s"]).ok().contains("made"));
    assert!(alice.run(&["grant", "show", &id]).ok().contains("sub_01"));
    until(|| (held(&bob)["came"] == 1).then_some(()));

    at_alice.kill();
    at_bob.kill();
    let _at_alice = alice.serve(&[]);
    let _at_bob = bob.serve(&[]);
    add("The budget is 8000");
    until(|| (held(&bob)["came"] == 2).then_some(()));
    let held = held(&bob);
    assert_eq!((&held["changed"], &held["left"]), (&json!(0), &json!(0)), "{held}");
    let name = held["subscription"].as_str().unwrap().to_owned();
    assert!(bob.run(&["grant", "unsubscribe", &name]).ok().contains("its granter knows"));
    assert!(alice.run(&["grant", "subscriptions"]).ok().contains("over (grantee)"));
    alice.run(&["audit", "verify"]).ok();
}

fn at(home: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(BINARY);
    command.arg("--home").arg(home).arg("--json").args(arguments).env_remove("RUST_LOG");
    Home::finish(command.stdin(Stdio::null()))
}

/// What an owner ended does not come back with a backup: neither of a grantee's nor of the owner's own. The others go on.
#[test]
fn a_restored_backup_revives_no_subscription() {
    let (alice, bob) = neighbours();
    let (_at_alice, _at_bob) = (alice.serve(&[]), bob.serve(&[]));
    let id = grants(&alice, &bob);
    let subscribe = || {
        let made = bob.run(&["grant", "subscribe", &id, "--every", "1d", "--json"]).json();
        made["subscription"].as_str().unwrap().to_owned()
    };
    let names = [subscribe(), subscribe(), subscribe()];
    for home in [&alice, &bob] {
        home.run(&["backup", &home.path("backup")]).ok();
    }
    alice.run(&["grant", "unsubscribe", &names[0]]).ok();
    bob.run(&["grant", "unsubscribe", &names[1]]).ok();
    // By name: whether it is over.
    let over = |home: &Path, side: &str, end: &str| {
        let list = at(home, &["grant", "subscriptions"]).json()[side].clone();
        names.each_ref().map(|name| {
            let named = |info: &&Value| info["subscription"] == name.as_str();
            !list.as_array().unwrap().iter().find(named).unwrap()[end].is_null()
        })
    };
    let place = tempfile::tempdir().unwrap();
    for (home, side, end, expected) in [
        (&alice, "given", "ended_at", [true, false, false]),
        (&bob, "held", "ended_at", [false, true, false]),
    ] {
        let list = home.home().join("erasures.jsonl").to_string_lossy().into_owned();
        let backup = home.path("backup");
        let (new, none) =
            (place.path().join(format!("{side}-new")), place.path().join(format!("{side}-none")));
        let restored = at(&new, &["restore", &backup, "--erasures", &list]).json();
        assert_eq!(restored["subscriptions_ended_again"], 1, "{restored}");
        assert_eq!(over(&new, side, end), expected);
        // Without the list the owner is told.
        let ran = at(&none, &["restore", &backup, "--without-erasures", "--keep-grants"]);
        assert!(ran.stderr.contains("subscriptions that were ended since"), "{ran:?}");
        assert_eq!(over(&none, side, end), [false; 3]);
    }
}
