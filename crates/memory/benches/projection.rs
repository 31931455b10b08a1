//! What the projection of one item costs at each level: `cargo bench -p oap-memory --bench projection`.
//!
//! Ratios within one run: against a full presentation's verification by its receiver, and against writing the
//! item's JSON out.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

#[path = "../tests/support/mod.rs"]
mod support;

use oap_memory::commitment;
use oap_memory::project::project;
use oap_memory::record::ItemRecord;
use oap_memory::{Profile, TrustLevel};
use serde_json::json;
use std::time::{Duration, Instant};
use support::*;

const ITEMS: u32 = 2_000;

fn each(mut run: impl FnMut(usize)) -> Duration {
    let start = Instant::now();
    (0..ITEMS as usize).for_each(&mut run);
    start.elapsed() / ITEMS
}

fn main() {
    let owner = Owner::new(1);
    let fact = json!({
        "kind": "fact", "labels": ["project"], "provenance": {"confidence": 0.9},
        "content": {"text": "Write to alice@work.example about the budget for the new website, by Tuesday."},
    });
    for (name, item, profile) in [("fact", fact, "memory.v1"), ("contact", contact(), "contact.v1")] {
        let profiles = Profile::built_in();
        let name_of = format!("oap.profile.projection.{profile}");
        let profile = profiles.iter().find(|p| p.name() == name_of).unwrap();
        let items: Vec<ItemRecord> = (0..ITEMS).map(|_| owner.capture(&item).1).collect();
        let document = owner.document();
        let shown: Vec<String> = items.iter().map(full).collect();
        let verify = each(|n| {
            commitment::verify(&shown[n], &document).unwrap();
        });
        println!("{name}, {} disclosures", items[0].committed.disclosures().unwrap().len());
        println!("  verified by its receiver  {:>8.1} µs", verify.as_secs_f64() * 1e6);
        for level in TrustLevel::all() {
            let mut bytes = 0;
            let took = each(|n| {
                let projected = project(&items[n].committed, profile, level, false).unwrap();
                bytes += projected.sd_jwt(&items[n].committed).unwrap().len();
            });
            println!(
                "  projected at level {}      {:>8.1} µs  {:.2} of that  {} bytes of proof",
                level.get(),
                took.as_secs_f64() * 1e6,
                took.as_secs_f64() / verify.as_secs_f64(),
                bytes / ITEMS as usize,
            );
        }
    }
}
