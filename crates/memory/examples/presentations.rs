//! Presentations of one item under every profile and level, one JSON object a line: for SD-JWT libraries that are
//! not ours to check (`.ci/interop`). `claims` is what they must come to; `valid` whether they may accept it.

#[path = "../tests/support/mod.rs"]
mod support;

use oap_memory::commitment;
use oap_memory::project::project;
use oap_memory::{Profile, TrustLevel};
use serde_json::json;
use support::{Owner, contact};

fn main() {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(&contact());
    let jwk = owner.signer.public().jwk();
    for profile in Profile::built_in() {
        for level in TrustLevel::all() {
            let projected = project(&whole.committed, &profile, level, false).unwrap();
            let sd_jwt = projected.sd_jwt(&whole.committed).unwrap();
            let verified = commitment::verify(&sd_jwt, &owner.document()).unwrap();
            let name = format!("{} level {}", profile.name(), level.get());
            let print = |name: &str, sd_jwt: &str, valid: bool| {
                println!(
                    "{}",
                    json!({"name": name, "jwk": jwk, "sd_jwt": sd_jwt, "claims": verified.claims(), "valid": valid})
                );
            };
            print(&name, &sd_jwt, true);
            // A disclosure that no digest asks for.
            let stray = "WyJzYWx0IiwibGFiZWxzIixbImZvcmdlZCJdXQ";
            print(&format!("{name}, a stray disclosure"), &format!("{sd_jwt}{stray}~"), false);
            // The last byte of the signature.
            let (jwt, rest) = sd_jwt.split_once('~').unwrap();
            let flipped = if jwt.ends_with('A') { "Q" } else { "A" };
            print(
                &format!("{name}, another signature"),
                &format!("{}{flipped}~{rest}", &jwt[..jwt.len() - 1]),
                false,
            );
        }
    }
}
