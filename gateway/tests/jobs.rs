//! Long work of the owner's side as jobs: begun, waited for, cancelled, and never two of a kind; over HTTP and from the command line.

use crate::common::*;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use oap_gateway::http::App;
use oap_gateway::service::{Backups, Health};
use oap_gateway::system::home;
use oap_gateway::system::socket::OwnerSocket;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use tokio::runtime::Runtime;

const JOBS: &str = "/oap/owner/jobs";

async fn begin(world: &World, job: &Value) -> Value {
    let answer = world.owner("POST", JOBS, Some(job)).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.body
}

/// How a job ended.
async fn end(world: &World, job: &Value) -> Value {
    let path = format!("{JOBS}/{}?wait=20", job["job_id"].as_str().unwrap());
    let report = world.owner("GET", &path, None).await.ok();
    assert_ne!(report["state"], "running", "{report}");
    report
}

#[tokio::test]
async fn a_job_says_how_far_it_is_and_has_its_result() {
    let world = World::new().await;
    world.capture(&[note("Tea at four", &["shared"]), note("Oil the car", &[])]).await;
    let looked_at = Health(&world.gateway).examine(&world.proved().await, &Default::default()).unwrap();
    let report = end(&world, &begin(&world, &json!({"job": "doctor"})).await).await;
    assert_eq!((&report["state"], &report["job"]), (&json!("done"), &json!("doctor")));
    assert_eq!(report["result"], json!({"findings": looked_at}));
    assert!(report["done"].as_u64() >= Some(2) && report["done"] == report["expected"], "{report}");
    assert!(report["ended"].is_string());

    let chains = world.owner("GET", "/oap/owner/audit/chains", None).await.ok();
    let report = end(&world, &begin(&world, &json!({"job": "verify_audit"})).await).await;
    assert_eq!(report["result"], chains);

    let report = end(&world, &begin(&world, &json!({"job": "reseal"})).await).await;
    assert_eq!(report["result"], json!({"receipts": 0, "items": 0, "held_back": 0, "left": []}));

    let listed = world.owner("GET", JOBS, None).await.ok();
    let kinds: Vec<&Value> = listed["jobs"].as_array().unwrap().iter().map(|job| &job["job"]).collect();
    assert_eq!(kinds, ["reseal", "verify_audit", "doctor"]);
}

/// All items or none, in one time: where the text of one would be cut in another way, each gets a version more.
#[tokio::test]
async fn every_item_is_resealed_or_none() {
    let world = World::new().await;
    let ids = world.capture(&[note("Jonas likes tea", &["a"]), note("Oil the car", &["b"])]).await;
    let retracted = world.capture(&[note("Rent is due", &["c"])]).await.remove(0);
    let path = format!("/oap/owner/items/{retracted}/retract");
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    let reseal = json!({"job": "reseal_items"});
    let report = end(&world, &begin(&world, &reseal).await).await;
    assert_eq!(report["result"], json!({"seen": 2, "resealed": []}), "nothing would change");
    assert_eq!((&report["done"], &report["expected"]), (&json!(2), &json!(2)));

    let contact = json!({
        "kind": "fact", "labels": ["contact"],
        "content": {"structured": {"entity_type": "oap.entity.contact", "names": {"given": "Jonas", "family": "Berg"},
            "channels": [{"type": "email", "value": "jonas@home.example", "primary": true}]}},
    });
    let contact = world.capture(&[contact]).await.remove(0);
    let versions = async |id: &str| {
        let item = world.owner("GET", &format!("/oap/owner/items/{id}"), None).await.ok();
        item["chain"].as_array().unwrap().len()
    };
    let report = end(&world, &begin(&world, &reseal).await).await;
    assert_eq!(report["result"]["seen"], 3, "{report}");
    let resealed: BTreeSet<&str> =
        report["result"]["resealed"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(resealed, BTreeSet::from([ids[0].as_str(), ids[1].as_str(), contact.as_str()]));
    for id in &ids {
        assert_eq!(versions(id).await, 2);
    }
    assert_eq!(versions(&retracted).await, 2, "captured and taken back");
    world.chains_hold().await;
}

#[tokio::test]
async fn a_backup_that_failed_says_why_and_can_be_made_again_in_the_same_place() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    let wanted = json!({"job": "backup", "folder": place});
    std::fs::create_dir(&place).unwrap();
    let report = end(&world, &begin(&world, &wanted).await).await;
    assert_eq!((&report["state"], &report["error"]["status"]), (&json!("failed"), &json!(400)));
    assert!(report["error"]["message"].as_str().unwrap().starts_with("folder: "), "{report}");

    std::fs::remove_dir(&place).unwrap();
    let report = end(&world, &begin(&world, &wanted).await).await;
    assert_eq!(report["state"], "done", "{report}");
    assert!(place.join("backup.json").exists());
}

#[tokio::test]
async fn a_backup_that_is_cancelled_leaves_nothing_behind() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backup");
    let progress = oap_gateway::state::jobs::Jobs::default();
    let job = progress
        .begin(
            oap_gateway::state::jobs::JobKind::Backup,
            &"did:web:user.example#key-1".parse().unwrap(),
            world.now(),
            &oap_gateway::system::clock::SystemRandom,
        )
        .unwrap();
    progress.close();
    let owner = world.proved().await;
    let cancelled = Backups(&world.gateway).backup(&owner, place.clone(), &job.progress()).await;
    assert!(matches!(cancelled, Err(oap_gateway::Error::Cancelled)));
    assert!(!place.exists());
    let doctor = Health(&world.gateway).examine(&owner, &job.progress());
    assert!(matches!(doctor, Err(oap_gateway::Error::Cancelled)), "{doctor:?}");
}

#[tokio::test]
async fn what_is_no_job_is_refused_and_nobody_else_begins_one() {
    let world = World::new().await;
    for wrong in [
        json!({"job": "dance"}),
        json!({"job": "doctor", "folder": "/x"}),
        json!({"job": "backup"}),
        json!({}),
    ] {
        world.owner("POST", JOBS, Some(&wrong)).await.refused(400, "invalid_input");
    }
    let unknown = format!("{JOBS}/job_01JZZZZZZZZZZZZZZZZZZZZZZZ");
    world.owner("GET", &unknown, None).await.refused(404, "not_found");
    world.owner("POST", &format!("{unknown}/cancel"), None).await.refused(404, "not_found");
    world.owner("GET", &format!("{JOBS}/x"), None).await.refused(404, "not_found");

    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    world
        .as_agent(&grantee, &token, "POST", JOBS, Some(&json!({"job": "doctor"})))
        .await
        .refused(401, "auth_required");
}

/// The commands that are jobs: each is followed to its end, and looked at afterwards.
#[test]
fn a_command_follows_its_job_to_the_end() {
    let home = crate::program::Home::web();
    home.run(&["item", "add", "--kind", "fact", "--text", "Tea at four"]).ok();
    let _server = home.serve(&[]);
    let copy = home.path("copy");
    assert!(home.run(&["doctor"]).ok().contains("items and their proofs (1)"));
    assert!(home.run(&["audit", "verify"]).ok().ends_with("Every chain holds.\n"));
    assert_eq!(home.run(&["--json", "backup", &copy]).json()["items"], 1);
    home.run(&["backup", &copy]).failed(1, "File exists");
    assert_eq!(
        home.run(&["keys", "revoke", "key-1", "--json"]).json()["resealed"],
        json!({"receipts": 0, "items": 0, "held_back": 0, "left": []})
    );
    assert_eq!(home.run(&["keys", "reseal"]).ok(), "0 items resealed, 0 receipts signed anew\n");

    let listed = home.run(&["--json", "job", "list"]).json();
    let told: Vec<(&str, &str)> = listed["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["job"].as_str().unwrap(), job["state"].as_str().unwrap()))
        .collect();
    let (done, failed) = ("done", "failed");
    assert_eq!(
        told,
        [
            ("reseal", done),
            ("reseal", done),
            ("backup", failed),
            ("backup", done),
            ("verify_audit", done),
            ("doctor", done)
        ]
    );
    let of = |number: usize| listed["jobs"][number]["job_id"].as_str().unwrap();
    assert!(home.run(&["job", "show", of(5)]).ok().contains("items and their proofs (1)"));
    assert!(home.run(&["job", "show", of(2)]).ok().contains("File exists"));
    // What ended stays as it is.
    assert_eq!(home.run(&["--json", "job", "cancel", of(4)]).json()["state"], "done");
    let unknown = "job_01JZZZZZZZZZZZZZZZZZZZZZZZ";
    assert_eq!(home.run(&["item", "reseal", "--all"]).ok(), "0 of 1 items resealed\n");
    assert_eq!(home.run(&["item", "reseal", "--all", "--json"]).json(), json!({"seen": 1, "resealed": []}));
    let ended = home.run(&["--json", "job", "list"]).json();
    assert_eq!(ended["jobs"][0]["job"], "reseal_items");
    home.run(&["job", "show", unknown]).failed(1, &format!("{unknown}: nothing of that name here"));
    home.run(&["job", "show", "mem_1"]).failed(2, "JOB: must be a job's id");
}

/// A gateway of this process whose blocking work waits until it is let go: a job that was begun stays under way.
struct Busy {
    home: crate::program::Home,
    /// The requests as they come; those that change something once they are answered.
    requests: Receiver<String>,
    go: Sender<()>,
    _socket: OwnerSocket,
    _runtime: Runtime,
}

impl Busy {
    fn new() -> Self {
        let home = crate::program::Home::key();
        home.run(&["item", "add", "--kind", "fact", "--text", "Tea at four"]).ok();
        oap_gateway::system::tls::install();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).max_blocking_threads(1).enable_all().build().unwrap();
        let (tell, requests) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        let socket = runtime.block_on(async {
            let place = home::Home::new(home.home());
            let gateway = place.open(&BTreeMap::new()).await.unwrap();
            place.renew_admin(&gateway).unwrap();
            tokio::task::spawn_blocking(move || gone.recv());
            let router =
                App::new(gateway).owner_router().layer(from_fn(move |request: Request, next: Next| {
                    let (tell, line) =
                        (tell.clone(), format!("{} {}", request.method(), request.uri().path()));
                    async move {
                        if line.starts_with("GET") {
                            tell.send(line).unwrap();
                            return next.run(request).await;
                        }
                        let answer = next.run(request).await;
                        tell.send(line).unwrap();
                        answer
                    }
                }));
            OwnerSocket::open_with(place.path(), router).unwrap()
        });
        Self { home, requests, go, _socket: socket, _runtime: runtime }
    }

    /// Waits for a request.
    fn asked(&self, line: impl Fn(&str) -> bool) -> String {
        loop {
            let request = self.requests.recv_timeout(Duration::from_secs(60)).unwrap();
            if line(&request) {
                return request;
            }
        }
    }

    /// A command that has begun a job and follows it, and the job.
    fn following(&self, arguments: &[&str]) -> (Child, String) {
        let mut command = self.home.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let shown = self.asked(|line| line.starts_with(&format!("GET {JOBS}/")));
        (child, shown.rsplit('/').next().unwrap().to_owned())
    }
}

/// What a command left that ends by itself now.
fn ended(child: Child) -> crate::program::Ran {
    let output = child.wait_with_output().unwrap();
    crate::program::Ran {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn ctrl_c_cancels_the_job_and_says_so() {
    let busy = Busy::new();
    let (child, job) = busy.following(&["doctor"]);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    busy.asked(|line| line == format!("POST {JOBS}/{job}/cancel"));
    busy.go.send(()).unwrap();
    let ran = ended(child);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("cancelling {job}")), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("{job} was cancelled: it only looks")), "{}", ran.stderr);
    assert_eq!(busy.home.run(&["--json", "job", "show", &job]).json()["state"], "cancelled");
}

#[test]
fn a_second_job_of_a_kind_is_refused_and_the_first_can_be_cancelled_by_its_name() {
    let busy = Busy::new();
    let (child, job) = busy.following(&["--json", "audit", "verify"]);
    busy.home.run(&["audit", "verify"]).failed(3, &format!("{job} does that already"));
    let listed = busy.home.run(&["job", "list"]).ok();
    assert!(listed.contains(&job) && listed.contains("running"), "{listed}");
    let cancelled = busy.home.run(&["--json", "job", "cancel", &job.to_lowercase()]).json();
    assert_eq!((&cancelled["job_id"], &cancelled["state"]), (&json!(job), &json!("running")));
    busy.go.send(()).unwrap();
    let ran = ended(child);
    let told: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((ran.status, &told["status"]), (1, &json!(1)), "{told}");
    assert!(told["error"].as_str().unwrap().contains("was cancelled"), "{told}");
}

/// Beyond the thirty seconds of a request: `OAP_ITEMS=140000 cargo test --release --workspace --test gateway jobs::many -- --nocapture`
#[test]
fn many_items_are_looked_at_and_seen() {
    let items: usize = std::env::var("OAP_ITEMS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let home = crate::program::Home::web();
    let lines = (0..items).map(|n| format!("{{\"id\": \"{n}\", \"text\": \"Note {n} of many\"}}\n"));
    std::fs::write(home.path("items.jsonl"), lines.collect::<String>()).unwrap();
    let _server = home.serve(&[]);
    let timed = |what: &str, arguments: &[&str]| {
        let began = tokio::time::Instant::now();
        let said = home.run(arguments).ok();
        println!("{what}: {:.1} s", began.elapsed().as_secs_f64());
        said
    };
    timed("import", &["import", &home.path("items.jsonl"), "--as", "many"]);
    assert!(timed("doctor", &["doctor"]).contains(&format!("items and their proofs ({items})")));
    let (key, grant) = (home.path("my.key"), home.path("grant.json"));
    let grantee = home.run(&["key", "new", "--out", &key]).ok();
    let terms = ["--purpose", "Many", "--until", "1d", "--trust-level", "2", "--out", &grant];
    home.run(&[&["grant", "issue", "--to", grantee.trim()], &terms[..]].concat()).ok();
    let certificate = home.home().join("tls/cert.pem");
    let ask = ["query", "--key", &key, "--grant", &grant, "--allow-local-dids", "--trust-ca"];
    timed("first view", &[&ask[..], &[&certificate.to_string_lossy(), "note"]].concat());
}
