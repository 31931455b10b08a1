//! Evidence recall on LoCoMo conversations: `cargo bench -p oap-gateway --bench retrieval`.
//!
//! One item a turn, the question is the query, the score is the share of a question's evidence turns among the
//! first k items of the answer; adversarial questions (category 5) are left out. The whole way is taken: capture,
//! grant, token, query. The conversations are in `OAP_LOCOMO`, or in `data/locomo-dev` of `OAP_SHARED` (`../shared`);
//! their licence keeps them out of it. With `--features local-model` and `OAP_MODEL_DIR` it is measured once more, with the
//! ranking fused with that of a sentence-transformer.

#[path = "../../crates/identity/tests/support/beside.rs"]
mod beside;
#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use oap_formats::import::locomo;
use oap_gateway::Config;
use oap_gateway::embedding::EmbeddingModel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

const AT: [usize; 4] = [1, 5, 10, 20];
/// What LoCoMo's categories of questions are, from 1.
const CATEGORIES: [&str; 4] = ["multi-hop", "temporal", "open-domain", "single-hop"];

/// The sums over questions, and their number.
#[derive(Clone, Copy, Default)]
struct Sum {
    recall: [f64; 4],
    questions: usize,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.recall.iter_mut().zip(other.recall).for_each(|(sum, value)| *sum += value);
        self.questions += other.questions;
    }

    fn print(self, name: &str) {
        let means = self.recall.map(|sum| format!("{:>7.3}", sum / self.questions.max(1) as f64));
        println!("{name:<14} {:>9} {}", self.questions, means.join(" "));
    }
}

fn main() {
    let folder = std::env::var_os("OAP_LOCOMO").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| beside::place("data/locomo-dev"));
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("not measured: no conversations in {}; set OAP_LOCOMO", folder.display());
        std::process::exit(1);
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    measure(&files, "by words", &|| None);
    match model() {
        Some(_) => measure(&files, "by words and a model", &model),
        None => println!("with a model: not measured, needs --features local-model and OAP_MODEL_DIR"),
    }
    println!(
        "plain BM25 0.519 @10, 0.591 @20; fused with MiniLM 0.551 @10, 0.648 @20 (all ten conversations)"
    );
}

/// Prints a table of all conversations, and of the categories of their questions.
fn measure(files: &[PathBuf], how: &str, model: &dyn Fn() -> Option<Box<dyn EmbeddingModel>>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut all, mut categories) = (Sum::default(), [Sum::default(); 4]);
    println!("{how}");
    println!("{:<14} {:>9} {:>7} {:>7} {:>7} {:>7}", "conversation", "questions", "@1", "@5", "@10", "@20");
    for path in files {
        let conversation: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let of = runtime.block_on(recall(&conversation, model()));
        let mut one = Sum::default();
        for (sum, category) in categories.iter_mut().zip(of) {
            sum.add(category);
            one.add(category);
        }
        one.print(&path.file_stem().unwrap_or_default().to_string_lossy());
        all.add(one);
    }
    all.print("all");
    for (name, sum) in CATEGORIES.into_iter().zip(categories) {
        sum.print(name);
    }
    println!();
}

/// The sentence-transformer in `OAP_MODEL_DIR`, in a program built with the feature `local-model`.
#[cfg(feature = "local-model")]
fn model() -> Option<Box<dyn EmbeddingModel>> {
    let folder = std::env::var_os("OAP_MODEL_DIR")?;
    Some(Box::new(oap_gateway::embedding::LocalModel::load(folder.as_ref(), "local").unwrap()))
}

#[cfg(not(feature = "local-model"))]
fn model() -> Option<Box<dyn EmbeddingModel>> {
    None
}

/// The sums over all questions, by category.
async fn recall(conversation: &Value, model: Option<Box<dyn EmbeddingModel>>) -> [Sum; 4] {
    let world = match model {
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
    // A token lasts ten minutes, and time stands still here.
    let token = world.token(&grantee, &grant).await;
    let mut sums = [Sum::default(); 4];
    for question in conversation["qa"].as_array().unwrap() {
        let evidence: Vec<&str> =
            question["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let category =
            question["category"].as_u64().and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        let Some(sum) = category.and_then(|category| sums.get_mut(category)).filter(|_| !evidence.is_empty())
        else {
            continue;
        };
        let query = json!({"query": question["question"], "max_results": 20, "integrity": "chain"});
        let answer = world.query(&grantee, &token, &query).await.ok();
        let found: Vec<&str> = ids(&answer).iter().map(|id| turns[id].as_str()).collect();
        for (recall, k) in sum.recall.iter_mut().zip(AT) {
            let hit = evidence.iter().filter(|turn| found.iter().take(k).any(|f| f == *turn)).count();
            *recall += hit as f64 / evidence.len() as f64;
        }
        sum.questions += 1;
    }
    sums
}
