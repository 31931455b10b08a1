//! What binds a memory gateway (RFC 0010 and the sections that it leans on), and how far the probes see it. `docs/probes.md` has the table.

/// A requirement.
#[derive(Debug, Clone, Copy)]
pub struct Requirement {
    /// Its id.
    pub id: &'static str,
    /// Where it stands.
    pub source: &'static str,
    /// What it asks for.
    pub text: &'static str,
    /// Why no probe can see it from outside, where that is so.
    pub unseen: Option<&'static str>,
}

const fn seen(id: &'static str, source: &'static str, text: &'static str) -> Requirement {
    Requirement { id, source, text, unseen: None }
}

const fn unseen(
    id: &'static str,
    source: &'static str,
    text: &'static str,
    why: &'static str,
) -> Requirement {
    Requirement { id, source, text, unseen: Some(why) }
}

/// Every requirement.
pub const ALL: &[Requirement] = &[
    seen("ME-01", "RFC 0010 3.5", "the projection profile is applied before any content leaves"),
    seen("ME-02", "RFC 0010 3.6", "every item carries a chain that proves it equals what was captured"),
    seen("ME-03", "RFC 0010 3.6", "a provenance log is kept for every item"),
    seen("ME-04", "RFC 0010 5.1", "tokens are short-lived, bound, and used over TLS alone"),
    seen("ME-05", "RFC 0010 5.2", "no embeddings to grantees by default"),
    seen("ME-06", "RFC 0010 6", "deletion covers items under live grants"),
    seen("ME-07", "RFC 0010 3.3", "a memory manifest is published"),
    seen(
        "ME-08",
        "RFC 0010 3.4",
        "grants are signed by the granter, name one grantee, hold for a time, and can be revoked",
    ),
    seen(
        "ME-09",
        "RFC 0010 3.5",
        "results are within the filter, ranked, and within max_results and max_items",
    ),
    seen("ME-10", "RFC 0010 3.7", "grants beyond the declared limits are refused"),
    seen("ME-12", "RFC 0010 A.3 P1", "whoever has an item has a grant, a receipt and a chain for it"),
    seen(
        "ME-13",
        "RFC 0010 A.6",
        "nothing outside the filter influences an answer; belief is passed on as belief",
    ),
    seen("ME-14", "RFC 0010 A.9", "confidential propositions reach nobody who may not have them"),
    unseen(
        "ME-15",
        "RFC 0010 A.11",
        "no membership inference",
        "a statistical property over many grantees; budgets are",
    ),
    seen("ME-16", "RFC 0010 A.11", "the manifest says whether a canary audit was made, and what it found"),
    seen("PM-3", "protocol 1", "errors have error, message and request_id, and the matching status"),
    seen("PM-4", "protocol 1", "bodies are capped, depth is capped, duplicate keys are refused"),
    seen(
        "PM-5",
        "protocol 1",
        "answers have their media type, nosniff, a cache rule, and what a 401 and a 405 name",
    ),
    seen("ID-1", "protocol 2", "the DID document is published and names the key that signs"),
    seen("RC-1", "OAP-CORE 19.1", "every answer has a signed receipt in the principal's chain"),
    seen("RC-2", "protocol 8", "a grantee sees the receipts that name it and no others"),
    seen("IT-1", "RFC 0010 3.2", "items have their kind, content, provenance and attitude, as captured"),
    seen(
        "PR-1",
        "RFC 0007 3.3",
        "the normative profiles show at each level what their tables say, and no more",
    ),
    seen("CM-1", "protocol 4", "every part of an item is concealed with a salt of its own, of 128 bits"),
    seen("CO-09", "OAP-CORE 8.1", "TLS 1.3, and nothing without it"),
    seen("EX-1", "protocol 8", "a grantee's export is a projected bundle, for grants that allow it"),
    unseen("AR-1", "RFC 0010 5", "content is sealed at rest", "at rest nothing is asked over HTTP"),
    unseen(
        "TI-1",
        "protocol 9",
        "time tells nothing",
        "a network is noisier than what it would have to show; see the gateway's own tests",
    ),
    seen("ME-11", "RFC 0010 A.2", "belief begins at the belief_threshold of the manifest"),
    unseen(
        "ME-17",
        "RFC 0010 7",
        "it is optional at every level",
        "no level follows from it: there is nothing to ask",
    ),
    seen(
        "CO-01",
        "OAP-CORE 5.1",
        "the DID document has a signing key, a key agreement key and the services for invocation and revocation",
    ),
    unseen(
        "CO-02",
        "OAP-CORE 5.3",
        "a key rotation policy is published, recovery is documented",
        "a text for people; what a rotation leaves is ID-1",
    ),
    seen(
        "CO-03",
        "OAP-CORE 6.1, 6.2",
        "the tool manifest is at its well-known path, with the members that it must have",
    ),
    seen("CO-04", "OAP-CORE 6.2", "no action has the risk class unacceptable"),
    seen(
        "CO-05",
        "OAP-CORE 6.3",
        "description_for_agents is the same at every reading and has at most 4000 code points",
    ),
    seen("CO-06", "OAP-CORE 6.4", "there are endpoints for invocation, audit, deletion and incidents"),
    seen("CO-07", "OAP-CORE 7", "actions have their members, an example at least"),
    seen("CO-08", "OAP-CORE 7.1", "outputs match their schema"),
    seen("CO-10", "OAP-CORE 8.2, 8.3", "envelopes have their form and are signed"),
    seen("CO-11", "OAP-CORE 8.4", "OAP headers agree with the envelope"),
    unseen(
        "CO-12",
        "OAP-CORE 9.3",
        "webhooks are signed",
        "a push goes to a gateway of the grantee's: one of ours would have to be on the public net; what is taken is FE-9",
    ),
    seen(
        "CO-13",
        "OAP-CORE 10.1",
        "nothing but what is free is for anonymous callers; every claim of a token is checked",
    ),
    seen("CO-14", "OAP-CORE 10.2", "the decision is recorded with the credential and the rule"),
    seen("CO-15", "OAP-CORE 14", "there is a discover endpoint"),
    seen("CO-16", "OAP-CORE 17.2", "provenance tags are kept; what violates them is refused"),
    seen("CO-17", "OAP-CORE 17.3", "a deletion returns a signed Deletion Receipt"),
    seen("CO-18", "OAP-CORE 18.3", "a gate asks seven questions before data leaves"),
    seen("CO-19", "OAP-CORE 18.4", "the destination's clearance dominates the label"),
    seen("CO-20", "OAP-CORE 18.5", "privileged scopes stay where they are"),
    unseen(
        "CO-21",
        "OAP-CORE 18.5b",
        "the end of a scope or an NDA deletes in a cascade",
        "what is deleted because something ended is its owner's; that nothing of it is shown is CO-18",
    ),
    seen("CO-22", "OAP-CORE 19.1", "every invocation, grant and deletion leaves a receipt"),
    seen("CO-23", "OAP-CORE 19.2", "receipts are a chain for each principal"),
    unseen(
        "CO-24",
        "OAP-CORE 19.3",
        "receipts are anchored in two logs",
        "not claimed; no receipt says that it is",
    ),
    unseen(
        "CO-25",
        "OAP-CORE 20.1",
        "four layers in order, the first refusal ends it",
        "which layer refused is not told, and must not be (section 7)",
    ),
    seen("CO-26", "OAP-CORE 20.4", "each evaluation has a Decision Record"),
    unseen(
        "CO-27",
        "OAP-CORE 20.5",
        "another vendor verifies what is of high risk",
        "no such action is declared, which `tool-manifest` looks at",
    ),
    unseen(
        "CO-28",
        "OAP-CORE 22.1",
        "stale DIDs are looked up before they are believed",
        "which documents a gateway fetches is not seen; it would need a DID of ours on the public net",
    ),
    unseen(
        "CO-29",
        "OAP-CORE 22.2",
        "incidents are published in their window",
        "only after one; the endpoint is in CO-06",
    ),
    seen("CO-30", "OAP-CORE 22.3", "a kill switch revokes everything at once"),
    unseen(
        "CO-31",
        "OAP-CORE 24.3",
        "a transfer over a border cites its instrument",
        "where grantees live is set by the owner, with no command for it",
    ),
    unseen(
        "CO-32",
        "OAP-CORE 27.2, 27.3",
        "the minor version before is supported for 180 days",
        "there is none before 1.0",
    ),
    unseen(
        "CO-33",
        "OAP-CORE 28.2",
        "no text mimics control instructions",
        "items are members of data; what a text says is its owner's, and must come back as it was captured",
    ),
    seen("CO-34", "OAP-CORE 28.3", "what is older than five minutes, or was used before, is refused"),
    unseen(
        "CO-35",
        "OAP-CORE 28.4",
        "idempotency keys are honoured",
        "no action has an effect that could be had twice",
    ),
    unseen(
        "CO-36",
        "OAP-CORE 28.5",
        "a suspected compromise revokes and rotates",
        "a drill of the owner's; revocation of a key is no command of the owner's side, its rotation is ID-1",
    ),
    unseen("CO-37", "OAP-CORE 28.8", "an SBOM, signed releases", "of a release, not of a gateway"),
    seen("CO-38", "OAP-CORE 29.1", "input beyond the input_schema is refused"),
    unseen(
        "CO-39",
        "OAP-CORE 29.3",
        "special categories are tagged and refused where they are not declared",
        "no member of an item says so; health is in CO-18",
    ),
    unseen(
        "CO-40",
        "OAP-CORE 31, 32.6",
        "a conformance receipt is valid for 90 days at most",
        "none need be published; `conformance verify` looks at one that is",
    ),
    seen("CO-41", "OAP-CORE App. B", "statuses and codes are those of the table"),
    seen("SP-01", "RFC 0003 3.3", "grants never loosen a higher layer"),
    seen("SP-02", "RFC 0003 3.4", "each use leaves a receipt that names the grant"),
    seen("SP-03", "RFC 0003 3.4", "before each use end, revocation, scope and caps are checked"),
    seen("SP-04", "RFC 0003 3.5", "nothing is answered after a revocation"),
    seen("SP-05", "RFC 0003 5.2", "the granter signed the grant"),
    seen("SP-06", "RFC 0003 5.3", "caps are the server's"),
    seen("SP-07", "RFC 0003 6", "no public log has what a grant says"),
    unseen("SP-08", "RFC 0003 3.2", "soft preferences never admit", "grants have none"),
    seen("DE-01", "RFC 0004 3.2", "a delegation is signed by the parent and not wider"),
    seen("DE-02", "RFC 0004 3.3", "the receipt of a sub-agent links to the parent"),
    seen("DE-03", "RFC 0004 3.5", "more than the greatest depth is refused"),
    seen("DE-04", "RFC 0004 5", "a child is within its parent, its token short-lived"),
    seen("DE-05", "RFC 0004 4", "without delegation.supported no delegation token is taken"),
    unseen(
        "PS-01",
        "RFC 0006 3.2",
        "a scope id is a fragment of a DID",
        "scopes are the owner's; a grant with another is refused by `refused-grants`",
    ),
    seen("PS-02", "RFC 0006 3.5", "every receipt has its scope_id"),
    seen("PS-03", "RFC 0006 3.5", "nothing is read across scopes without a bridge"),
    seen("PS-04", "RFC 0006 3.6", "bridges are signed, bounded, and loosen nothing"),
    seen("PS-05", "RFC 0006 5.1", "a call across scopes without a bridge gets nothing"),
    unseen(
        "PS-06",
        "RFC 0006 5.2",
        "profile bindings come from recognized issuers",
        "no industry profile is claimed",
    ),
    seen("PS-07", "RFC 0006 6", "counterparties do not see the scopes"),
    seen("PS-08", "RFC 0006 3.3", "the principal publishes oap-scopes.json"),
    unseen(
        "PJ-01",
        "RFC 0007 3.4",
        "the trust level comes from evidence",
        "it is fixed in the grant (section 5); what ours looks at before is its owner's",
    ),
    unseen("PJ-02", "RFC 0007 3.4.1", "evidence is signed by third parties", "as PJ-01"),
    seen("PJ-03", "RFC 0007 3.5", "an answer discloses level, profile, redacted count, basis"),
    seen("PJ-04", "RFC 0007 3.6", "the receipt records level and basis"),
    unseen(
        "PJ-05",
        "RFC 0007 5.2",
        "reconstruction patterns are limited and flagged",
        "flags are the owner's alone; budgets are PJ-06",
    ),
    seen("PJ-06", "RFC 0007 6.1", "epsilon is counted; beyond the budget 429"),
    seen("PJ-07", "RFC 0007 3.1", "projection is deterministic and keeps the schema"),
    seen("CH-01", "RFC 0016 3.1", "permissions can be revoked and items deleted at any time"),
    seen("CH-02", "RFC 0016 3.2", "every action has a signed receipt in a chain"),
    unseen(
        "CH-03",
        "RFC 0016 3.6",
        "the whole state is exported and imported",
        "the owner's bundle is no command of the owner's side; a grantee's is EX-1",
    ),
    seen("CH-04", "RFC 0016 3.7", "nothing but relevance ranks"),
    unseen(
        "CH-05",
        "RFC 0016 3.8",
        "nobody is denied by wallet, place, reputation or language",
        "a probe has none of them",
    ),
    unseen(
        "CH-06",
        "RFC 0016 3.9",
        "guardianship is honoured",
        "no scope is declared a minor's from outside",
    ),
    unseen(
        "CH-07",
        "RFC 0016 4.2",
        "the user has the Decision Records",
        "what the owner's log names them by is looked at; a record itself is no command of the owner's side",
    ),
    unseen(
        "CH-08",
        "RFC 0016 4.3",
        "\"do not learn\" is honoured",
        "nothing is learned; nothing would show it",
    ),
    seen("CH-09", "RFC 0016 4.5", "a deletion has a proof"),
    unseen("CH-10", "RFC 0016 5.1", "memory is encrypted by default", "at rest nothing is asked over HTTP"),
    unseen(
        "CH-11",
        "RFC 0016 5.2",
        "the master copy is on the user's device",
        "where a gateway runs is not seen",
    ),
    unseen("CH-12", "RFC 0016 5.5", "algorithms can be changed", "there is one"),
    unseen(
        "CH-13",
        "RFC 0016 5.7",
        "English and the official language of the jurisdiction",
        "texts for people",
    ),
    unseen("CH-14", "RFC 0016 6", "the charter is a precondition of L4", "not claimed"),
    unseen("CF-01", "RFC 0019 7.2", "attested anew after 90 days or a change", "of a release"),
    seen("CF-02", "RFC 0019 7.3", "no signature is a placeholder"),
    unseen("CF-03", "RFC 0019 10", "a receipt's revocation has an endpoint", "as CO-40"),
    unseen("CF-04", "RFC 0019 10", "the key of the receipt is the publisher's", "as CO-40"),
    unseen("CF-05", "RFC 0019 11", "the receipt has no data of third parties", "as CO-40"),
    unseen("CF-06", "RFC 0019 6", "consumers verify before they act", "of a consumer"),
    unseen("CF-07", "RFC 0019 7.1", "L4 and L5 have witnesses", "not claimed"),
    unseen("ST-01", "RFC 0023 3.1", "put, get, delete, query, subscribe, export, import", "not declared"),
    seen("ST-02", "RFC 0023 3.2", "every mutation has a receipt"),
    seen("ST-03", "RFC 0023 3.3", "tags are never stripped, derivations cite their source"),
    unseen(
        "ST-04",
        "RFC 0023 3.4",
        "every read is evaluated before data leaves",
        "how is inside; that nothing leaves which may not is ME-14",
    ),
    unseen("ST-05", "RFC 0023 3.5", "tenants are apart", "a gateway has one principal"),
    seen("ST-06", "RFC 0023 3.6", "an export is signed, with items and tags"),
    seen("ST-07", "RFC 0023 3.7", "erasure reaches what was derived"),
    unseen(
        "ST-08",
        "RFC 0023 7",
        "encrypted at rest, TLS 1.3, told within 72 hours",
        "TLS is CO-09; the rest is not seen",
    ),
    unseen("ST-09", "RFC 0023 7", "the gate runs apart from the storage", "inside"),
    unseen(
        "PV-01",
        "RFC 0031 3.3",
        "a provisioning manifest is an organization's",
        "a gateway is a person's; none is asked for",
    ),
    unseen("PV-02", "RFC 0031 3.4", "a context switch is evaluated on all layers", "not built"),
    unseen("PV-03", "RFC 0031 3.7", "a context bridge cites its provisioning manifest", "not built"),
    unseen("PV-04", "RFC 0031 3.10", "memory that moves on a switch uses RFC 0010", "not built"),
    unseen("PV-05", "RFC 0031 5", "envelopes are signed by the principal", "not built"),
    unseen("PV-06", "RFC 0031 6", "envelopes are kept by principal and agents alone", "not built"),
    unseen(
        "PV-07",
        "RFC 0031 7",
        "contexts are apart across scopes",
        "not built; scopes are PS-03 and PS-04",
    ),
    unseen(
        "IF-01",
        "RFC 0034 4.1",
        "the label of an output is that of its inputs together",
        "labels are shown as they were captured; gates are CO-18",
    ),
    seen("IF-02", "RFC 0034 4.2", "what the destination may not have is blocked"),
    unseen("IF-03", "RFC 0034 3", "a proof in place of hashes", "optional, not built"),
    unseen("IF-04", "RFC 0034 5", "proving keys are cached", "no such proofs"),
    seen(
        "FE-1",
        "protocol 13.1",
        "a letter that is not signed, not for the principal, over or malformed is refused",
    ),
    seen("FE-2", "protocol 13.2", "a letter has its effect once, and a signed reply that names it"),
    seen(
        "FE-3",
        "protocol 13.1",
        "senders who are not proved cannot be told apart by what they are answered",
    ),
    seen("FE-4", "protocol 13.3", "a request for access gives none, and tells nobody of another's"),
    seen("FE-5", "protocol 14", "a notice of who gave no grant changes nothing and tells nothing"),
    seen("FE-6", "protocol 15", "the agent card is signed and agrees with the manifests"),
    seen("FE-7", "protocol 2", "a key that comes into use was named by the one before it"),
    unseen(
        "FE-8",
        "protocol 15",
        "what changed at a peer is taken over where it was signed for, and else the owner is asked",
        "of whoever asks, not of whoever is asked",
    ),
    seen(
        "FE-9",
        "protocol 17.3",
        "a push is taken of a subscription's granter alone, and whoever is not proved is told the same",
    ),
    seen(
        "FE-10",
        "protocol 17.1",
        "a subscription needs a bound token, a grant for it and for queries, and an address of the grantee's own",
    ),
    seen(
        "FE-11",
        "protocol 17.2, 17.4",
        "an event is an answer to its subscriber, with what became of the view since the last one that came",
    ),
    seen(
        "FE-12",
        "protocol 16.3",
        "a witness reads what has the form, and signs no log that nobody asked it to",
    ),
    seen(
        "FE-13",
        "protocol 16.2, 16.4",
        "the log is signed, goes on, and shows a receipt to whom it was given alone",
    ),
    seen(
        "FE-14",
        "protocol 8.1",
        "an acknowledgement is of an answer, by whom it was given to, counts once, and comes in its turn",
    ),
    seen("FE-15", "protocol 18", "who is not wanted for a device is told so, whoever they are"),
    seen("FE-16", "protocol 18", "what changed is told to devices alone"),
];

/// The requirement of an id.
#[must_use]
pub fn of(id: &str) -> Option<&'static Requirement> {
    ALL.iter().find(|requirement| requirement.id == id)
}

/// Every requirement as a row of the table in `docs/probes.md`: with the probes that look at it, or why none does.
#[must_use]
pub fn page() -> String {
    let probes = super::all();
    let mut page = "| id | source | requirement | probes, or why none |\n|---|---|---|---|\n".to_owned();
    for Requirement { id, source, text, unseen } in ALL {
        let by =
            probes.iter().filter(|probe| probe.checks.contains(id)).map(|probe| format!("`{}`", probe.id));
        let how = unseen.map_or_else(|| by.collect::<Vec<_>>().join(", "), |why| format!("none: {why}"));
        page.push_str(&format!("| {id} | {source} | {text} | {how} |\n"));
    }
    page
}
