//! What `oap-memory demo` shows, on a screen of 80 columns: `screens/demo.txt`, written anew with `OAP_WRITE_SCREENS=1`.

use crate::program::*;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/screens/demo.txt");

#[test]
fn the_demonstration_on_a_screen() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Home::empty().command(&["demo"]);
    // Nothing is read but the program: not even a folder to start in.
    let shown = Home::finish(command.env("TMPDIR", folder.path()).current_dir(folder.path())).ok();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    for part in ["[secret]", "[iban]", "[email]"] {
        assert!(shown.contains(part), "{part} is cut off: {shown}");
    }
    let folder = folder.path().to_string_lossy().into_owned();
    for place in [env!("CARGO_MANIFEST_DIR"), "/work", "target/", &folder] {
        assert!(!shown.contains(place), "{place}: {shown}");
    }
    let shown = normal(&shown);
    if std::env::var_os("OAP_WRITE_SCREENS").is_some() {
        std::fs::write(GOLDEN, &shown).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    for (shown, golden) in shown.lines().zip(golden.lines()) {
        assert_eq!(shown, golden);
    }
    assert_eq!(shown.lines().count(), golden.lines().count());
}

/// Fresh values by others of the same length.
fn normal(text: &str) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for (form, normal) in [
        ("9999-99-99T99:99:99.999Z", "2026-01-01T00:00:00.000Z"),
        ("AAAAAAAAAAAAAAAAAAAAAAAAAA", "00000000000000000000000000"),
        ("localhost%3A99999", "localhost%3A00000"),
    ] {
        let (form, normal): (Vec<char>, Vec<char>) = (form.chars().collect(), normal.chars().collect());
        for start in 0..text.len().saturating_sub(form.len()) {
            let here = &mut text[start..start + form.len()];
            if here.iter().zip(&form).all(|(c, form)| fits(*c, *form)) {
                here.copy_from_slice(&normal);
            }
        }
    }
    text.into_iter().collect()
}

fn fits(c: char, form: char) -> bool {
    match form {
        '9' => c.is_ascii_digit(),
        'A' => c.is_ascii_uppercase() || c.is_ascii_digit(),
        other => c == other,
    }
}
