//! Evidence recall on LoCoMo conversations: `cargo bench -p oap-gateway --bench retrieval`.
//!
//! One item a turn, the question is the query, the score is the share of a question's evidence turns among the
//! first k items of the answer; adversarial questions (category 5) are left out. The whole way is taken: capture,
//! grant, token, query. The conversations are in `OAP_LOCOMO`, or in `data/locomo-dev` of `OAP_SHARED` (`../shared`);
//! their licence keeps them out of it. With `--features local-model` and `OAP_MODEL_DIR` the ranking is fused with
//! that of a sentence-transformer.

#[path = "../../crates/identity/tests/support/beside.rs"]
mod beside;
#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use oap_formats::import::locomo;
use oap_gateway::Config;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

const AT: [usize; 4] = [1, 5, 10, 20];

fn main() {
    let folder = std::env::var_os("OAP_LOCOMO").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| beside::place("data/locomo-dev"));
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("not measured: no conversations in {}; set OAP_LOCOMO", folder.display());
        std::process::exit(1);
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut sums = [0.0; 4];
    let mut questions = 0;
    println!("{:<14} {:>9} {:>7} {:>7} {:>7} {:>7}", "conversation", "questions", "@1", "@5", "@10", "@20");
    for path in files {
        let conversation: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let (recall, asked) = runtime.block_on(recall(&conversation));
        print(&path.file_stem().unwrap_or_default().to_string_lossy(), asked, recall);
        for (sum, value) in sums.iter_mut().zip(recall) {
            *sum += value;
        }
        questions += asked;
    }
    print("all", questions, sums);
    println!(
        "plain BM25 0.519 @10, 0.591 @20; fused with MiniLM 0.551 @10, 0.648 @20 (all ten conversations)"
    );
}

fn print(name: &str, questions: usize, sums: [f64; 4]) {
    let means = sums.map(|sum| format!("{:>7.3}", sum / questions.max(1) as f64));
    println!("{name:<14} {questions:>9} {}", means.join(" "));
}

/// The sentence-transformer in `OAP_MODEL_DIR`, in a program built with the feature `local-model`.
#[cfg(feature = "local-model")]
fn model() -> Option<Box<dyn oap_gateway::embedding::EmbeddingModel>> {
    let folder = std::env::var_os("OAP_MODEL_DIR")?;
    Some(Box::new(oap_gateway::embedding::LocalModel::load(folder.as_ref(), "local").unwrap()))
}

#[cfg(not(feature = "local-model"))]
fn model() -> Option<Box<dyn oap_gateway::embedding::EmbeddingModel>> {
    None
}

/// The sums over all questions, and their number.
async fn recall(conversation: &Value) -> ([f64; 4], usize) {
    let world = match model() {
        Some(model) => World::embedding(model).await,
        None => World::with(1, Config::default()).await,
    };
    let items = locomo::items(conversation, &["talk"]);
    let mut turns = BTreeMap::new();
    for batch in items.chunks(500) {
        for (id, item) in world.capture(batch).await.into_iter().zip(batch) {
            turns.insert(id, item["content"]["structured"]["turn"].as_str().unwrap().to_owned());
        }
    }
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["max_items"] = json!(10_000);
    let grant = world.issue(&draft).await;
    let mut sums = [0.0; 4];
    let mut asked = 0;
    for question in conversation["qa"].as_array().unwrap() {
        let evidence: Vec<&str> =
            question["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if question["category"] == 5 || evidence.is_empty() {
            continue;
        }
        // Tokens last ten minutes and proofs are fresh; time stands still here.
        let token = world.token(&grantee, &grant).await;
        let query = json!({"query": question["question"], "max_results": 20, "integrity": "chain"});
        let answer = world.query(&grantee, &token, &query).await.ok();
        let found: Vec<&str> = ids(&answer).iter().map(|id| turns[id].as_str()).collect();
        for (sum, k) in sums.iter_mut().zip(AT) {
            let hit = evidence.iter().filter(|turn| found.iter().take(k).any(|f| f == *turn)).count();
            *sum += hit as f64 / evidence.len() as f64;
        }
        asked += 1;
    }
    (sums, asked)
}
