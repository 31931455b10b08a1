//! A gateway that serves, a contractor that serves, the files that the texts name, and a copy of all that for every text.

use crate::program::{BINARY, Server, free_port};
use oap_client::wire::ANSWER;
use oap_gateway::system::tls::Authority;
use oap_identity::outgoing::{Outgoing, Request};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Longest time for one command, in seconds.
const PATIENCE: &str = "600";
/// The home, where nobody says another.
const HOME: &str = ".oap-memory";
/// Texts whose reader has nothing yet: they begin with `init`, or with a key.
const FROM_NOTHING: &[&str] = &["README.md", "oap-memory --help", "oap-memory init --help"];
/// Texts whose home is the one that is served.
const SERVED: &[&str] = &[
    "oap-memory probe --help",
    "oap-memory job --help",
    "oap-memory job show --help",
    "oap-memory job cancel --help",
];
/// Texts whose home is the contractor's.
const CONTRACTORS: &[&str] = &["oap-memory query --help"];
/// A `trails.toml` whose home is the one that is there, and which that names.
const TRAILS: &str = r#"printf '[graph]\npath = ".oap-memory"\n[brain]\nmax_facts = 5\n' >trails.toml && printf 'trails = "%s"\n' "$PWD/trails.toml" >>.oap-memory/config.toml"#;
/// What is done before the first command of a text.
const BEFORE: &[(&str, &str)] = &[
    ("oap-memory config --help", TRAILS),
    ("oap-memory config trails --help", TRAILS),
    ("README.md", "mkdir etc"),
    ("docs/operate.md", "mkdir etc"),
    ("oap-memory --help", "mkdir etc"),
    ("oap-memory init --help", "mkdir etc"),
    ("oap-memory completions --help", "mkdir -p etc .zfunc .config/fish/completions"),
    ("oap-memory hold release --help", "oap-memory hold set $(an-item) --reason ongoing_dispute --until 30d"),
    ("oap-memory ccc remove --help", "oap-memory ccc set client-a.json"),
    ("oap-memory peer show --help", "oap-memory peer add {contractor}"),
    ("oap-memory peer check --help", "oap-memory peer add {contractor}"),
    ("oap-memory peer accept --help", "oap-memory peer add {contractor}"),
    ("oap-memory peer remove --help", "oap-memory peer add {contractor}"),
    ("oap-memory witness --help", "oap-memory peer add {contractor}"),
    ("oap-memory witness add --help", "oap-memory peer add {contractor}"),
    ("oap-memory witness for --help", "oap-memory peer add {contractor}"),
    ("oap-memory witness demand --help", "oap-memory peer add {contractor}"),
    (
        "oap-memory witness remove --help",
        "oap-memory peer add {contractor} && oap-memory witness add {contractor}",
    ),
    (
        "oap-memory witness end --help",
        "oap-memory peer add {contractor} && oap-memory witness for {contractor}",
    ),
    ("oap-memory device show --help", "oap-memory device add {contractor}"),
    ("oap-memory device remove --help", "oap-memory device add {contractor}"),
    ("oap-memory backup --help", "mkdir backup"),
    ("oap-memory export --help", "rm -r notes memory.bundle"),
    ("oap-memory restore --help", "mkdir backup && oap-memory backup \"$PWD/backup/2026-11-21\""),
];
/// What is done after a text, whatever came of it.
const AFTER: &[(&str, &str)] =
    &[("oap-memory unlock --help", "oap-memory lock"), ("README.md", "oap-memory lock")];
/// Before a command: what other machines or days would have brought.
const MEANWHILE: &[(&str, &str, &str)] = &[
    ("oap-memory init --help", " init ", "rm -rf .oap-memory"),
    ("README.md", " --with-label web ", "oap-memory item add --kind fact --text x --label web"),
    ("oap-memory item --help", " --with-label web ", "oap-memory item add --kind fact --text x --label web"),
    (
        "oap-memory item relabel --help",
        " --with-label web ",
        "oap-memory item add --kind fact --text x --label web",
    ),
    (
        "oap-memory item retract --help",
        " --until 2025-01-01",
        "oap-memory item relabel --provenance imported_from=chatgpt --add website --yes",
    ),
    ("oap-memory delete --help", " --all", "oap-memory item add --kind fact --text x"),
    ("oap-memory item delete --help", " --all", "oap-memory item add --kind fact --text x"),
    ("oap-memory item --help", " restore ", "oap-memory item retract $(an-item)"),
    ("oap-memory item restore --help", " restore ", "oap-memory item retract $(an-item)"),
    (
        "docs/operate.md",
        "restore ",
        "mkdir -p backup && oap-memory backup \"$PWD/backup/2026-11-21\" && rm -rf \"$PWD/new\"",
    ),
    (
        "README.md",
        "--home \"$PWD/next\" import",
        "oap-memory --home next init --did did:key --key-file next.key",
    ),
    ("oap-memory lockdown lift --help", " lift ", "oap-memory lockdown --yes"),
    ("docs/operate.md", " init ", "rm -rf .oap-memory"),
    ("oap-memory key --help", " --out my.key", "rm my.key"),
    ("oap-memory key new --help", " --out my.key", "rm my.key"),
    (
        "oap-memory key --help",
        " query ",
        "oap-memory --home ../owner/.oap-memory grant issue --to $(my-did) --purpose x --until 1d --trust-level 2 --out grant.json",
    ),
];

pub struct World {
    folder: tempfile::TempDir,
    owner: Party,
    contractor: Party,
    age: String,
    // Until the last text is done.
    _servers: Mutex<[Server; 2]>,
}

struct Party {
    did: String,
    origin: String,
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn did(port: u16) -> String {
    format!("did:web:localhost%3A{port}")
}

/// A command in a folder, for so long.
fn shell(world: &Path, folder: &Path, port: u16, script: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args([PATIENCE, "sh", "-c", script]);
    equipped(command, world, folder, port)
}

/// A server in a folder, which is sent signals itself.
fn server(world: &Path, folder: &Path, port: u16, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {script}")]);
    equipped(command, world, folder, port)
}

/// With `oap-memory` and the names of `bin` on its path.
fn equipped(mut command: Command, world: &Path, folder: &Path, port: u16) -> Command {
    command.current_dir(folder).stdin(Stdio::null());
    let path = format!("{}:{}", text(&world.join("bin")), std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).env("HOME", folder).env_remove("RUST_LOG");
    command.env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME").env_remove("CLAUDE_CONFIG_DIR");
    command.env("OAP_MEMORY_TRUST_CA", world.join("ca.pem")).env("OAP_MEMORY_ALLOW_LOCAL_DIDS", "true");
    command.env("OAP_MEMORY_TLS_CERT", world.join("cert.pem"));
    command.env("OAP_MEMORY_TLS_KEY", world.join("key.pem"));
    command.env("OAP_MEMORY_LISTEN", format!("127.0.0.1:{port}"));
    command.env("OAP_MEMORY_PASSPHRASE", "a passphrase of a test");
    command
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let authority = Authority::new().unwrap();
        fs::write(root.join("ca.pem"), authority.pem()).unwrap();
        let (certificate, key) = authority.issue("localhost").unwrap();
        fs::write(root.join("cert.pem"), certificate).unwrap();
        fs::write(root.join("key.pem"), key).unwrap();
        names(&root.join("bin"));
        let files = root.join("files");
        write_files(&files);
        for name in ["ca.pem", "cert.pem", "key.pem"] {
            fs::copy(root.join(name), files.join(name)).unwrap();
        }
        let ports = (free_port(), free_port());
        let (owner, contractor) = (root.join("owner"), root.join("contractor"));
        for (folder, port) in [(&owner, ports.0), (&contractor, ports.1)] {
            fs::create_dir(folder).unwrap();
            let init = format!("oap-memory init --did {} --key-file \"$PWD/master.key\"", did(port));
            said(shell(&root, folder, port, &init));
        }
        let serve = |folder: &Path, port| Server::start(server(&root, folder, port, "oap-memory serve"));
        copy(&contractor.join(HOME), &root.join("contractors-home"));
        let contractor_server = serve(&contractor, ports.1);
        let owner_server = serve(&owner, ports.0);
        let made = root.join("made");
        fs::create_dir(&made).unwrap();
        let script = SETTING
            .replace("{contractor}", &did(ports.1))
            .replace("{made}", &text(&made))
            .replace("{files}", &text(&files));
        said(shell(&root, &owner, ports.0, &script));
        let origin = |port: u16| format!("https://localhost:{port}");
        let list = fetched(&authority.pem(), &format!("{}/oap/memory/status", origin(ports.0)));
        fs::write(made.join("list.jwt"), list).unwrap();
        owner_server.stop();
        copy(&owner.join(HOME), &root.join("home"));
        let owner_server = serve(&owner, ports.0);
        let party = |port: u16| Party { did: did(port), origin: origin(port) };
        let age = age::x25519::Identity::generate().to_public().to_string();
        Self {
            folder,
            owner: party(ports.0),
            contractor: party(ports.1),
            age,
            _servers: Mutex::new([owner_server, contractor_server]),
        }
    }
}

/// What the owner's gateway holds and has done before any text begins.
const SETTING: &str = r#"set -e
item() { oap-memory item add "$@" >/dev/null; }
item --kind fact --text "The site goes live on 1 June, ask anna@studio.example" --label website --subject ent_proj_site
item --kind preference --text "Prefers meetings on Tuesday mornings" --label scheduling --label website --label web
item --kind fact --text "To be deleted" --label gone
oap-memory import "{files}/chatgpt-export.zip"
oap-memory import "{files}/second-account.zip" --as work
oap-memory bridge issue --from work --to personal --category scheduling --until 90d >/dev/null
oap-memory key new --out "{made}/my.key"
grant() { oap-memory grant issue --purpose "Website redesign" --until 30d --trust-level 2 --allow-export "$@"; }
grant --to "$(cd "{made}" && my-did)" --out "{made}/grant.json"
grant --to "{contractor}" --out "{made}/to-my-gateway.json"
oap-memory query --key "{made}/my.key" --grant "{made}/grant.json" "meetings" --save "{made}/answer.json"
oap-memory delete --label gone --yes --receipt "{made}/deletion.json"
oap-memory export "{made}/memory.bundle"
oap-memory --json conformance attest --candidate --level L0 > "{made}/receipt.json"
oap-memory grant draft --to "{contractor}" --purpose "Later" --until 30d --trust-level 1 --out "{made}/draft.json"
cp .oap-memory/did.json "{made}/did.json"
"#;

/// What an address gives.
fn fetched(authority: &str, url: &str) -> String {
    oap_gateway::system::tls::install();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    let client = Outgoing::default().trusting([&*authority]).unwrap().unguarded().unwrap();
    let fetch = async { client.send(Request::get(url), ANSWER).await.unwrap().body };
    String::from_utf8(tokio::runtime::Runtime::new().unwrap().block_on(fetch)).unwrap()
}

/// Not every receipt has a Decision Record.
const A_DECISION: &str = r#"#!/bin/sh
for id in $(oap-memory --json audit --limit 1000 | grep -o 'pol_[0-9A-Z]\{26\}'); do
    oap-memory audit decision "$id" >/dev/null 2>&1 && echo "$id" && break
done
"#;

/// One that a command began and followed to its end.
const A_JOB: &str = r#"#!/bin/sh
oap-memory audit verify >/dev/null
oap-memory --json job list | grep -o 'job_[0-9A-Z]\{26\}' | head -n 1
"#;

/// Names that print an id of the home: `mem_01...` of a text is `$(an-item)`.
fn names(bin: &Path) {
    fs::create_dir(bin).unwrap();
    symlink(BINARY, bin.join("oap-memory")).unwrap();
    for (name, list, id) in [
        ("some-item", "item list --kind preference", "mem_"),
        ("a-grant", "grant list", "mgr_"),
        ("a-bridge", "bridge list", "brg_"),
    ] {
        let script =
            format!("#!/bin/sh\noap-memory --json {list} | grep -o '{id}[0-9A-Z]\\{{26\\}}' | head -n 1\n");
        program(&bin.join(name), &script);
    }
    // The same throughout a text, also when it was retracted meanwhile.
    program(
        &bin.join("an-item"),
        "#!/bin/sh\n[ -s an-item.txt ] || some-item > an-item.txt\ncat an-item.txt\n",
    );
    program(&bin.join("a-job"), A_JOB);
    program(&bin.join("a-decision"), A_DECISION);
    program(
        &bin.join("a-deletion"),
        "#!/bin/sh\ngrep -o 'urn:oap:deletion:[0-9A-Z]\\{26\\}' deletion.json | head -n 1\n",
    );
    program(&bin.join("my-did"), "#!/bin/sh\nsed -n 's/.*\"kid\": \"\\(did:[^#]*\\)#.*/\\1/p' my.key\n");
}

fn program(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The files that the texts name and that no command makes.
fn write_files(files: &Path) {
    fs::create_dir_all(files.join("notes")).unwrap();
    let write = |name: &str, text: &str| fs::write(files.join(name), text).unwrap();
    write("notes/bread.md", "# Bread\n\nThe starter is fed on Fridays.\n");
    write("table.csv", "body,tags,when\nThe boiler is serviced in May,home,2026-05-01\n");
    write(
        "items.jsonl",
        "{\"kind\": \"fact\", \"content\": {\"text\": \"one of two\"}}\n{\"kind\": \"fact\", \"content\": {\"text\": \"two of two\"}}\n",
    );
    write("client-a.json", "{\"ccc_version\": \"1.0\", \"scope_id\": \"client-a\"}\n");
    let profile = include_str!("../../../crates/memory/profiles/memory.v1.toml");
    write("mine.toml", &profile.replace("memory.v1", "mine.v1"));
    program(
        &files.join("fixture.py"),
        "#!/bin/sh\nwhile read -r line; do echo '{\"error\": \"not here\"}'; done\n",
    );
    for (name, who, at) in
        [("chatgpt-export.zip", "one", 1_704_067_200), ("second-account.zip", "two", 1_777_636_800)]
    {
        let mut archive = zip::ZipWriter::new(fs::File::create(files.join(name)).unwrap());
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file("conversations.json", options).unwrap();
        archive.write_all(conversations(who, at).as_bytes()).unwrap();
        archive.finish().unwrap();
    }
}

/// One turn, said at a time in seconds.
fn conversations(who: &str, at: u32) -> String {
    serde_json::json!([{
        "id": format!("conversation-{who}"), "title": "Plants", "create_time": at, "update_time": at,
        "current_node": "b", "mapping": {
            "a": {"id": "a", "parent": null, "children": ["b"], "message": null},
            "b": {"id": "b", "parent": "a", "children": [], "message": {
                "id": format!("message-{who}"), "author": {"role": "user"}, "create_time": at,
                "content": {"content_type": "text", "parts": [format!("The {who} plant is watered on Sundays")]}
            }}
        }
    }])
    .to_string()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (name, kind) = (entry.file_name(), entry.file_type().unwrap());
        if kind.is_dir() {
            copy(&entry.path(), &to.join(name));
        } else if kind.is_file() && name != "reserve" && name != "lock" {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

#[track_caller]
fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Where the commands of one text run.
pub struct Place<'a> {
    world: &'a World,
    text: String,
    folder: PathBuf,
    port: u16,
    did: String,
    origin: String,
    servers: Vec<Server>,
}

impl<'a> Place<'a> {
    pub fn new(world: &'a World, name: &str) -> Self {
        let port = free_port();
        let folder = world.folder.path().join(format!("run-{port}"));
        let from = |name: &str| world.folder.path().join(name);
        copy(&from("files"), &folder);
        // Who has nothing yet becomes somebody else; the others are the one who serves.
        let nobody = FROM_NOTHING.contains(&name);
        if !nobody {
            copy(&from("made"), &folder);
        }
        if SERVED.contains(&name) {
            symlink(from("owner").join(HOME), folder.join(HOME)).unwrap();
        } else if CONTRACTORS.contains(&name) {
            copy(&from("contractors-home"), &folder.join(HOME));
        } else if !nobody {
            copy(&from("home"), &folder.join(HOME));
        }
        let (did, origin) = if nobody {
            (did(port), format!("https://localhost:{port}"))
        } else {
            (world.owner.did.clone(), world.owner.origin.clone())
        };
        let place = Self { world, text: name.to_owned(), folder, port, did, origin, servers: Vec::new() };
        for (_, script) in BEFORE.iter().filter(|(text, _)| *text == name) {
            said(place.shell(&place.filled(script)));
        }
        place
    }

    fn shell(&self, script: &str) -> Command {
        shell(self.world.folder.path(), &self.folder, self.port, script)
    }

    /// The script with the names and addresses of this place.
    pub fn filled(&self, script: &str) -> String {
        let listen = format!("127.0.0.1:{}", self.port);
        script
            .replace("{did}", &self.did)
            .replace("{origin}", &self.origin)
            .replace("{listen}", &listen)
            .replace("{contractor}", &self.world.contractor.did)
            .replace("{contractor's host}", self.world.contractor.origin.trim_start_matches("https://"))
            .replace("{age}", &self.world.age)
    }

    /// Runs a command; why it did not do what the text says.
    pub fn run(&mut self, script: &str, status: i32) -> Result<(), String> {
        for (_, _, meanwhile) in
            MEANWHILE.iter().filter(|(text, part, _)| *text == self.text && script.contains(part))
        {
            let _ = self.shell(meanwhile).output();
        }
        let words = || script.split('#').next().unwrap_or_default().split_whitespace();
        if words().next() == Some("oap-memory") && words().any(|word| word == "serve") {
            return self.serve(script);
        }
        let output = self.shell(script).output().unwrap();
        if output.status.code() == Some(status) {
            return Ok(());
        }
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(1500).collect::<String>();
        Err(format!(
            "{} instead of {status}: {}{}",
            output.status,
            said(&output.stderr),
            said(&output.stdout)
        ))
    }

    /// A server goes on until the text ends, or another starts.
    fn serve(&mut self, script: &str) -> Result<(), String> {
        self.servers.drain(..).for_each(|server| drop(server.stop()));
        let command = server(self.world.folder.path(), &self.folder, self.port, script);
        let started = catch_unwind(AssertUnwindSafe(|| Server::start(command)));
        let why = |_| "it does not say that it is serving (the panic above has what it said)".to_owned();
        self.servers.push(started.map_err(why)?);
        Ok(())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.servers.drain(..).for_each(|server| drop(server.stop()));
        for (_, script) in AFTER.iter().filter(|(text, _)| *text == self.text) {
            let _ = self.shell(script).output();
        }
    }
}
