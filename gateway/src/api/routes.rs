//! Every route of the gateway: the router is built of this list, and tests walk it.

use super::{Permission, openapi};
use axum::http::Method;
use oap_manifest::path;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody. Some routes tell more to whoever presents a credential, or ask for a proof in the body.
    Public,
    /// A grantee, with a token and its DPoP proof.
    Grantee,
    /// One of the owner's agents, with a trust token that permits this and its DPoP proof.
    Owner(Permission),
    /// Whoever may write to the owner's socket; no other listener has the route.
    Socket,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Which one it is.
    pub name: Name,
    /// Its method.
    pub method: Method,
    /// Its path; the parts of it that vary are in braces.
    pub path: &'static str,
    /// Who may call it.
    pub permission: Access,
}

impl Route {
    /// Its path with a text in place of each part that varies.
    #[must_use]
    pub fn at(&self, part: &str) -> String {
        let steps = self.path.split('/').map(|step| if step.starts_with('{') { part } else { step });
        steps.collect::<Vec<_>>().join("/")
    }
}

macro_rules! routes {
    ($($name:ident: $method:ident $path:expr, $access:expr;)+) => {
        /// The name of a route.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the list of routes says what each is")]
        pub enum Name {
            $($name,)+
        }

        /// Every route.
        pub const ROUTES: &[Route] = &[
            $(Route { name: Name::$name, method: Method::$method, path: $path, permission: $access },)+
        ];
    };
}

use Access::{Grantee, Owner, Public, Socket};
use Permission::{Admin, Read, Write};

routes! {
    MemoryManifest: GET path::MEMORY_MANIFEST, Public;
    ToolManifest: GET path::TOOL_MANIFEST, Public;
    Scopes: GET path::SCOPES, Public;
    Did: GET path::DID, Public;
    Query: POST path::QUERY, Grantee;
    Exchange: POST path::GRANT, Public;
    GrantState: GET "/oap/memory/grant/{id}", Public;
    ExportView: POST path::EXPORT, Grantee;
    Vector: GET "/oap/memory/vec/{id}", Grantee;
    Ack: POST path::ACK, Public;
    StatusList: GET path::STATUS, Public;
    Invoke: POST path::INVOKE, Public;
    Discover: POST path::DISCOVER, Public;
    Incidents: GET path::INCIDENT, Public;
    Conformance: GET path::CONFORMANCE, Public;
    ReceiptVerify: POST path::RECEIPT_VERIFY, Public;
    Audit: GET path::AUDIT, Public;
    OpenApi: GET openapi::PATH, Public;
    Healthy: GET "/healthz", Public;
    Ready: GET "/readyz", Public;

    ListItems: GET "/oap/owner/items", Owner(Read);
    WriteItems: POST "/oap/owner/items", Owner(Write);
    ShowItem: GET "/oap/owner/items/{id}", Owner(Read);
    ExplainItem: GET "/oap/owner/items/{id}/explain", Owner(Read);
    CorrectItem: POST "/oap/owner/items/{id}/correct", Owner(Write);
    RelabelItem: POST "/oap/owner/items/{id}/relabel", Owner(Write);
    RetractItem: POST "/oap/owner/items/{id}/retract", Owner(Write);
    RestoreItem: POST "/oap/owner/items/{id}/restore", Owner(Write);
    ConfirmItem: POST "/oap/owner/items/{id}/confirm", Owner(Write);
    ResealItem: POST "/oap/owner/items/{id}/reseal", Owner(Write);

    ResolveItems: POST "/oap/owner/items/resolve", Owner(Read);
    SearchItems: POST "/oap/owner/items/search", Owner(Read);
    SelectItems: POST "/oap/owner/items/select", Owner(Admin);
    RelabelItems: POST "/oap/owner/items/relabel", Owner(Write);
    RetractItems: POST "/oap/owner/items/retract", Owner(Write);

    ItemHistory: GET "/oap/owner/items/{id}/history", Owner(Admin);
    Who: POST "/oap/owner/who", Owner(Admin);
    Decision: GET "/oap/owner/decisions/{id}", Owner(Admin);

    Delete: POST path::DATA_DELETE, Owner(Admin);
    ListHolds: GET "/oap/owner/holds", Owner(Admin);
    SetHold: POST "/oap/owner/holds", Owner(Admin);
    ReleaseHolds: POST "/oap/owner/holds/release", Owner(Admin);

    ListProfiles: GET "/oap/owner/profiles", Owner(Read);
    ListGrants: GET "/oap/owner/grants", Owner(Admin);
    IssueGrant: POST "/oap/owner/grants", Owner(Admin);
    PreviewGrant: POST "/oap/owner/grants/preview", Owner(Admin);
    ShowGrant: GET "/oap/owner/grants/{id}", Owner(Admin);
    RevokeGrant: POST "/oap/owner/grants/{id}/revoke", Owner(Admin);
    Consent: POST "/oap/owner/grants/{id}/consent", Owner(Admin);
    ListBudgets: GET "/oap/owner/budgets", Owner(Admin);
    RefillBudget: POST "/oap/owner/budgets/refill", Owner(Admin);

    ListContexts: GET "/oap/owner/contexts", Owner(Admin);
    SetContext: POST "/oap/owner/contexts", Owner(Admin);
    RemoveContext: POST "/oap/owner/contexts/{scope}/remove", Owner(Admin);
    ListBridges: GET "/oap/owner/bridges", Owner(Admin);
    IssueBridge: POST "/oap/owner/bridges", Owner(Admin);
    RevokeBridge: POST "/oap/owner/bridges/{id}/revoke", Owner(Admin);

    ListKeys: GET "/oap/owner/keys", Owner(Admin);
    RotateKeys: POST "/oap/owner/keys/rotate", Owner(Admin);
    RevokeKey: POST "/oap/owner/keys/{fragment}/revoke", Owner(Admin);
    HeldBack: GET "/oap/owner/keys/held-back", Owner(Admin);
    ResealHeld: POST "/oap/owner/keys/reseal", Owner(Admin);
    SignReceiptsAnew: POST "/oap/owner/keys/receipts", Owner(Admin);
    Prove: POST "/oap/owner/prove", Owner(Admin);

    ExportHeader: POST "/oap/owner/export/header", Owner(Admin);
    ExportPage: POST "/oap/owner/export/page", Owner(Admin);
    ExportSeal: POST "/oap/owner/export/seal", Owner(Admin);
    ImportBundle: POST "/oap/owner/import/bundle", Owner(Admin);
    ImportRecords: POST "/oap/owner/import/records", Owner(Admin);
    ImportFinish: POST "/oap/owner/import/finish", Owner(Admin);
    Backup: POST "/oap/owner/backup", Owner(Admin);

    ListChains: GET "/oap/owner/audit/chains", Owner(Admin);
    VerifyAudit: GET "/oap/owner/audit/verify", Owner(Admin);
    AuditMemorization: POST "/oap/owner/audit/memorization", Owner(Admin);
    ReportIncident: POST "/oap/owner/incidents", Owner(Admin);

    ListJobs: GET "/oap/owner/jobs", Owner(Admin);
    BeginJob: POST "/oap/owner/jobs", Owner(Admin);
    ShowJob: GET "/oap/owner/jobs/{id}", Owner(Admin);
    CancelJob: POST "/oap/owner/jobs/{id}/cancel", Owner(Admin);

    Status: GET "/oap/owner/status", Owner(Admin);
    Doctor: GET "/oap/owner/doctor", Owner(Admin);
    Clock: GET "/oap/owner/clock", Owner(Admin);
    AcceptClock: POST "/oap/owner/clock/accept", Owner(Admin);
    Attest: POST "/oap/owner/attest", Owner(Admin);
    Witness: POST "/oap/owner/witness", Owner(Admin);
    Lock: POST "/oap/owner/lock", Socket;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_route_is_there_once_and_is_read_or_written() {
        let mut seen = BTreeSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.path, route.method.as_str())), "{route:?}");
            assert!([Method::GET, Method::POST].contains(&route.method), "{route:?}");
            assert!(route.permission != Owner(Write) || route.method == Method::POST, "{route:?}");
        }
    }

    #[test]
    fn what_is_the_owners_asks_for_the_owner() {
        for route in ROUTES.iter().filter(|route| route.path.starts_with("/oap/owner/")) {
            assert!(matches!(route.permission, Owner(_) | Socket), "{route:?}");
        }
    }

    #[test]
    fn parts_that_vary() {
        let route = ROUTES.iter().find(|route| route.name == Name::ExplainItem).unwrap();
        assert_eq!(route.at("mem_1"), "/oap/owner/items/mem_1/explain");
    }
}
