//! The bounds of this room, as rows that `docs/limits.md` is generated from.

mod among_gateways;

use crate::api::agents as own;
use crate::http::front;
use crate::http::{bodies, brain, discovery, invoke, request};
use crate::mcp;
use crate::oauth::{asked, client, document, redirect, token};
use crate::service::oauth as service;
use crate::service::{audit, carried, deletion, deletion_steps, tools};
use crate::state::refusals;
use crate::state::{agents, approvals, asking, believed, brains, concluded, corpora, documents, events};
use crate::state::{jobs, living, packed, tasks, views, waiting};
use crate::system::trails;
pub use among_gateways::AMONG_GATEWAYS;
use oap_identity::limits::Limit;

const fn row(name: &'static str, value: u64, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value, unit, applies_to }
}

const fn bytes(name: &'static str, value: usize, applies_to: &'static str) -> Limit {
    row(name, value as u64, "bytes", applies_to)
}

const fn seconds(name: &'static str, value: std::time::Duration, applies_to: &'static str) -> Limit {
    row(name, value.as_secs(), "seconds", applies_to)
}

const fn count(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    row(name, value as u64, unit, applies_to)
}

/// The bounds of this room, but for [`AMONG_GATEWAYS`].
pub const LIMITS: &[Limit] = &[
    count(
        "front::MAX_CONNECTIONS",
        front::MAX_CONNECTIONS,
        "connections",
        "all callers together, fewer where the process may open fewer files; beyond it the oldest that waits for its caller \
         is closed, or the newcomer where none waits",
    ),
    count(
        "front::MAX_PER_NETWORK",
        front::MAX_PER_NETWORK,
        "connections",
        "one IPv4 address or IPv6 /64, but no proxy in trusted_proxies; beyond it as above, among its own",
    ),
    bytes("front::MAX_HEAD", front::MAX_HEAD, "request line and headers; beyond it 431"),
    count("front::MAX_HEADERS", front::MAX_HEADERS, "headers", "a request; beyond it 431"),
    seconds("front::HANDSHAKE", front::HANDSHAKE, "a TLS handshake; beyond it the connection is closed"),
    seconds(
        "front::HEAD",
        front::HEAD,
        "the head of a request, and a connection without one; beyond it the connection is closed",
    ),
    seconds("front::BODY", front::BODY, "the body of a request; beyond it 408"),
    seconds("front::REQUEST", front::REQUEST, "a request until its answer is made; beyond it 504"),
    seconds(
        "front::TURN",
        front::TURN,
        "the wait of a call under a grant for its turn at `/mcp`; beyond it 503",
    ),
    seconds(
        "front::STALL",
        front::STALL,
        "the taking of MIN_PROGRESS bytes of an answer, or of its rest; beyond it the connection is closed",
    ),
    bytes("front::MIN_PROGRESS", front::MIN_PROGRESS, "what is taken of an answer within STALL, at least"),
    bytes(
        "http::request::MAX_ANONYMOUS_BODY",
        request::MAX_ANONYMOUS_BODY,
        "the body of a caller whose credential was not checked; beyond it 413",
    ),
    bytes("http::request::MAX_IMPORT", request::MAX_IMPORT, "a chunk of the owner's import; beyond it 413"),
    bytes(
        "http::bodies::MAX_ANONYMOUS_BODIES",
        bodies::MAX_ANONYMOUS_BODIES,
        "all bodies at once of callers whose credential was not checked; beyond it 503",
    ),
    bytes(
        "http::bodies::MAX_BODIES",
        bodies::MAX_BODIES,
        "all bodies at once of callers with a credential; beyond it 503",
    ),
    bytes("http::discovery::MAX_INTENT", discovery::MAX_INTENT, "the intent of /oap/discover; beyond it 400"),
    bytes(
        "http::invoke::MAX_ENVELOPE_TEXT",
        invoke::MAX_ENVELOPE_TEXT,
        "a text of an /oap/invoke envelope; beyond it 400",
    ),
    bytes(
        "http::invoke::MAX_ASSERTIONS",
        invoke::MAX_ASSERTIONS,
        "policy_assertions of an envelope; beyond it 400",
    ),
    count(
        "service::audit::MAX_PUBLIC",
        audit::MAX_PUBLIC,
        "receipts",
        "what anybody is shown of the public log, counted from its end",
    ),
    count(
        "service::audit::MAX_LOOKED_AT",
        audit::MAX_LOOKED_AT,
        "receipts",
        "those that one question of the log looks at, counted from the newest; under a bearer token those under its grant; the owner's goes on behind them, with `before`",
    ),
    count(
        "service::audit::MAX_READ",
        audit::MAX_READ,
        "receipts",
        "those that are read for a grantee's question of the log, whatever is looked at",
    ),
    count(
        "service::audit::MAX_AUDITED",
        audit::MAX_AUDITED,
        "receipts",
        "limit of /oap/audit, 1 at least; beyond it 400",
    ),
    bytes(
        "service::audit::MAX_AUDIT_TEXT",
        audit::MAX_AUDIT_TEXT,
        "grantee, principal_did and chain of /oap/audit; beyond it 400",
    ),
    count(
        "service::deletion::MAX_DELETED",
        deletion::MAX_DELETED,
        "items",
        "those that one request deletes; `remaining` says how many are left",
    ),
    count(
        "service::deletion_steps::MAX_STEP",
        deletion_steps::MAX_STEP,
        "items",
        "those of one step of a job that deletes: a transaction and a Deletion Receipt",
    ),
    count(
        "service::deletion_steps::MAX_STEPS",
        deletion_steps::MAX_STEPS,
        "steps",
        "those of one job that deletes; `remaining` says how many items are left",
    ),
    count(
        "state::jobs::MAX_ENDED_DELETIONS",
        jobs::MAX_ENDED_DELETIONS,
        "jobs",
        "jobs that deleted and whose receipts are kept; beyond it the oldest is forgotten",
    ),
    count(
        "service::carried::MAX_CARRIED",
        carried::MAX_CARRIED,
        "files",
        "those of a backup beside store and vault; beyond it nothing is backed up or restored",
    ),
    count(
        "state::views::MAX_VIEWS",
        views::MAX_VIEWS,
        "views",
        "those in memory, whatever their size; beyond it the one asked for longest ago goes",
    ),
    count("state::views::MAX_STEP", views::MAX_STEP, "items", "changes that a view takes over at once"),
    count(
        "state::living::MAX_CHANGED",
        living::MAX_CHANGED,
        "items",
        "changes that wait for a view; beyond it the view is built anew",
    ),
    bytes(
        "state::packed::MAX_PACKED",
        packed::MAX_PACKED,
        "a link, receipt or version that is stored in a compact form; a longer one is stored as it is",
    ),
    count(
        "state::agents::MAX_AGENTS",
        agents::MAX_AGENTS,
        "agents",
        "all that were ever made; beyond it 409",
    ),
    count(
        "state::tasks::MAX_INTENTS",
        tasks::MAX_INTENTS,
        "intents",
        "those of an agent that are kept; beyond it 409",
    ),
    count("state::tasks::MAX_TASKS", tasks::MAX_TASKS, "tasks", "those of an intent; beyond it 409"),
    count(
        "state::tasks::MAX_OPEN",
        tasks::MAX_OPEN,
        "tasks",
        "open ones that an agent coordinates; beyond it 409",
    ),
    count(
        "state::tasks::MAX_ARCHIVED",
        tasks::MAX_ARCHIVED,
        "entries",
        "working entries of an agent that are kept once they were archived; beyond it the first ones are erased",
    ),
    row(
        "state::events::MAX_EVENTS",
        events::MAX_EVENTS,
        "events",
        "those of an agent, and of a kind and an agent in an intent's log, that are kept; beyond it the oldest goes",
    ),
    count(
        "state::events::MAX_LOOKED_AT",
        events::MAX_LOOKED_AT,
        "events",
        "those that one answer looks through, each archived entry that its reader is told of among them; beyond it the answer ends, or 422 where it is empty",
    ),
    count(
        "state::waiting::MAX_WAITING",
        waiting::MAX_WAITING,
        "requests",
        "clients of OAuth that wait for the owner, of all networks together; beyond it 503",
    ),
    count(
        "state::waiting::MAX_WAITING_PER_NETWORK",
        waiting::MAX_WAITING_PER_NETWORK,
        "requests",
        "the same, of one IPv4 address or IPv6 /64; one more takes the place of an older one",
    ),
    count(
        "state::waiting::MAX_WAITING_PER_SITE",
        waiting::MAX_WAITING_PER_SITE,
        "requests",
        "the same, of one IPv6 /48",
    ),
    seconds(
        "state::waiting::WAITS",
        waiting::WAITS,
        "a request that waits for the owner, and a yes that waits for the browser",
    ),
    seconds("state::waiting::CODE_LIFE", waiting::CODE_LIFE, "an authorization code"),
    count(
        "state::approvals::MAX_APPROVALS",
        approvals::MAX_APPROVALS,
        "approvals",
        "clients that have the owner's yes; beyond it 409",
    ),
    seconds("state::approvals::ACCESS_LIFE", approvals::ACCESS_LIFE, "an access token"),
    count(
        "state::approvals::MAX_ACCESS",
        approvals::MAX_ACCESS,
        "tokens",
        "access tokens of an approval that count at once; beyond it the oldest ends",
    ),
    seconds("state::approvals::IDLE", approvals::IDLE, "an approval whose client does not come back"),
    seconds("state::approvals::WHOLE", approvals::WHOLE, "an approval, whatever its client does"),
    count(
        "state::documents::MAX_DOCUMENTS",
        documents::MAX_DOCUMENTS.get(),
        "documents",
        "metadata of clients that is remembered; beyond it what was not asked for longest is forgotten",
    ),
    count(
        "state::documents::MAX_FETCHING",
        documents::MAX_FETCHING,
        "documents",
        "metadata of clients that is fetched at once; beyond it 503",
    ),
    count(
        "state::documents::MAX_FETCHED",
        documents::MAX_FETCHED,
        "documents",
        "metadata of clients that is fetched in a minute; beyond it 503",
    ),
    count(
        "state::documents::MAX_FETCHED_PER_SITE",
        documents::MAX_FETCHED_PER_SITE,
        "documents",
        "the same, for one IPv4 address or IPv6 /48, one at once; beyond it 503",
    ),
    bytes("oauth::document::MAX_DOCUMENT", document::MAX_DOCUMENT, "the metadata of a client"),
    seconds("service::oauth::DOCUMENT_TIME", service::DOCUMENT_TIME, "the fetch of the metadata of a client"),
    count(
        "service::oauth::MAX_CLIENTS",
        service::MAX_CLIENTS,
        "clients",
        "those that the owner added; beyond it 409",
    ),
    count(
        "oauth::client::MAX_REDIRECTS",
        client::MAX_REDIRECTS,
        "addresses",
        "those that a client may be sent back to",
    ),
    bytes("oauth::client::MAX_CLIENT_ID", client::MAX_CLIENT_ID, "client_id; beyond it 400"),
    count(
        "oauth::client::MAX_SHOWN_NAME",
        client::MAX_SHOWN_NAME,
        "characters",
        "what is shown of the name by which a client calls itself",
    ),
    bytes("oauth::redirect::MAX_REDIRECT", redirect::MAX_REDIRECT, "redirect_uri; beyond it 400"),
    bytes("oauth::asked::MAX_STATE", asked::MAX_STATE, "state; beyond it 400"),
    bytes("oauth::asked::MAX_RESOURCE", asked::MAX_RESOURCE, "resource; beyond it 400"),
    count(
        "oauth::asked::MAX_PARAMETERS",
        asked::MAX_PARAMETERS,
        "parameters",
        "a request of OAuth; beyond it 400",
    ),
    bytes("oauth::MAX_SCOPE", crate::oauth::MAX_SCOPE, "scope; beyond it 400"),
    bytes("oauth::token::MAX_FORM", token::MAX_FORM, "the form of a request for tokens; beyond it 400"),
    count(
        "state::agents::MAX_LOOKING",
        agents::MAX_LOOKING,
        "calls",
        "memory tools that look at the owner's memory at once, of all agents together; beyond it they wait",
    ),
    count(
        "state::asking::MAX_ASKING",
        asking::MAX_ASKING,
        "queries",
        "SPARQL queries and looks back (as_of) that are evaluated at once, of all agents together, and one of each; as many SPARQL queries of all grantees, and one of each; beyond it they wait",
    ),
    seconds(
        "state::asking::MAX_WAIT",
        asking::MAX_WAIT,
        "the wait of a SPARQL query for its turn; beyond it 503",
    ),
    count(
        "state::brains::MAX_BRAINS",
        brains::MAX_BRAINS,
        "graphs",
        "what agents ask in SPARQL, in memory; those that were not asked for longest are made anew",
    ),
    count(
        "state::brains::MAX_BRAIN_TRIPLES",
        brains::MAX_BRAIN_TRIPLES,
        "triples",
        "all of these graphs, unless it is one; those that were not asked for longest are made anew",
    ),
    seconds(
        "service::tools::asking::MAX_TIME",
        tools::asking::MAX_TIME,
        "the evaluation of a SPARQL query; beyond it 400",
    ),
    count(
        "service::tools::asking::MAX_READ",
        tools::asking::MAX_READ,
        "versions and links",
        "what the answer of a SPARQL query read, each named in its receipt; beyond it 400",
    ),
    bytes("http::brain::MAX_BODY", brain::MAX_BODY, "a request with a SPARQL query; beyond it 413"),
    count(
        "state::believed::MAX_BELIEVED",
        believed::MAX_BELIEVED,
        "records",
        "what decay needs of old records of agents, kept in memory; beyond it all are read anew",
    ),
    count(
        "state::concluded::MAX_CHANGED",
        concluded::MAX_CHANGED,
        "items",
        "changes that are noted for what agents conclude again; beyond it everything is read anew",
    ),
    count(
        "tools::then::MAX_LOOKED_BACK",
        tools::then::MAX_LOOKED_BACK,
        "links",
        "those of an item that as_of looks back through; what it said before is not told",
    ),
    count(
        "tools::compacting::MAX_ROUNDS",
        tools::compacting::MAX_ROUNDS,
        "compactions",
        "those of each agent when a gateway starts; the rest is the next start's",
    ),
    bytes("trails::MAX_FILE", trails::MAX_FILE as usize, "a trails.toml"),
    count(
        "trails::MAX_BRAIN_NAME",
        trails::MAX_BRAIN_NAME,
        "characters",
        "project.name and graph.backend of a trails.toml, brain_name",
    ),
    count(
        "trails::MAX_BRAIN_IRI",
        trails::MAX_BRAIN_IRI,
        "characters",
        "project.base_iri of a trails.toml, brain_iri",
    ),
    count(
        "trails::MAX_BRAIN_FACTS",
        trails::MAX_BRAIN_FACTS,
        "facts",
        "brain.max_facts of a trails.toml, brain_max_facts",
    ),
    bytes(
        "state::corpora::MAX_CORPORA_BYTES",
        corpora::MAX_CORPORA_BYTES,
        "what agents recall by words, in memory; those that were not asked for longest are made anew",
    ),
    count("api::agents::MAX_AGENT_NAME", own::MAX_AGENT_NAME, "characters", "the name of an agent"),
    count(
        "api::agents::MAX_INJECTED",
        own::MAX_INJECTED,
        "answers",
        "one question for what an agent was given; beyond it 400",
    ),
    bytes(
        "service::tools::MAX_HANDED",
        tools::MAX_HANDED,
        "what the items of a memory tool's answer say, unless it is one",
    ),
    bytes("mcp::MAX_MESSAGE", mcp::MAX_MESSAGE, "a message of an assistant; a longer one is left out"),
    count(
        "mcp::MAX_CALLS",
        mcp::MAX_CALLS,
        "calls",
        "an assistant of its own process at once, and all over HTTP; beyond it they wait",
    ),
    count(
        "mcp::MAX_GRANTED",
        mcp::MAX_GRANTED,
        "calls",
        "all grantees at `/mcp` at once; beyond it they wait",
    ),
    row(
        "refusals::MAX_FAILED",
        refusals::MAX_FAILED as u64,
        "requests",
        "failed requests under one grant, and those made from it, in a minute; beyond it 429, and the proof is not used",
    ),
    row(
        "refusals::MAX_EXCHANGES",
        refusals::MAX_EXCHANGES as u64,
        "exchanges",
        "one grant, and those made from it, in a minute; beyond it 429 without a receipt",
    ),
    row(
        "refusals::MAX_AUDITS",
        refusals::MAX_AUDITS as u64,
        "questions",
        "a grantee's questions of the log under one grant, and those made from it, in a minute; beyond it 429",
    ),
    row(
        "refusals::MAX_AGENT_REQUESTS",
        refusals::MAX_AGENT_REQUESTS as u64,
        "requests",
        "one of the owner's agents in a minute; beyond it 429 without a receipt",
    ),
    row(
        "refusals::MAX_AGENT_ENTRIES",
        refusals::MAX_AGENT_ENTRIES as u64,
        "entries",
        "what one of the owner's agents writes in batches in a minute; beyond it 429 without a receipt",
    ),
    row(
        "refusals::MAX_ANONYMOUS_RECEIPTS",
        refusals::MAX_ANONYMOUS_RECEIPTS as u64,
        "receipts",
        "anonymous calls of memory.describe in a minute, of all callers; beyond it 429 without a receipt",
    ),
    row(
        "refusals::MAX_REFUSALS",
        refusals::MAX_REFUSALS as u64,
        "receipts",
        "refusals under one grant, and those made from it, in a minute; beyond it 429 without a receipt",
    ),
];
