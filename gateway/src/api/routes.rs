//! Every route of the gateway: the router is built of this list, and tests walk it.

use super::lock::Lock;
use super::permission::mark::Mark;
use super::{
    Endpoint, Permission, access, acks, agents, audit, budgets, deletion, devices, disclosures, gates,
    grants, health, holds, items, jobs, keys, lockdown, oauth, peers, policy, recall, selections, standing,
    subscriptions, transfer, witnesses,
};
use crate::oauth as at;
use axum::http::Method;
use oap_manifest::path;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody. Some routes tell more to whoever presents a credential, or ask for a proof in the body.
    Public,
    /// A grantee, with a token and its DPoP proof.
    Grantee,
    /// One of the owner's own agents, with its API key.
    Agent,
    /// The owner, with a trust token that permits this and its DPoP proof.
    Owner(Permission),
    /// Whoever may write to the owner's socket; no other listener has the route.
    Socket,
}

/// Method, path and permission of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Route {
    /// Which one it is.
    pub name: Name,
    pub method: Method,
    /// Its path; the parts of it that vary are in braces.
    pub path: &'static str,
    /// Who may call it.
    pub permission: Access,
}

impl Route {
    /// Whether nobody but the owner calls it.
    #[must_use]
    pub const fn is_the_owners(&self) -> bool {
        matches!(self.permission, Access::Owner(_) | Socket)
    }

    /// Whether it is served during a lockdown: to the owner, and where it says to others what they need to see that nothing of theirs
    /// counts any more. A route that is not named here is not.
    #[must_use]
    pub const fn stays_in_lockdown(&self) -> bool {
        match self.permission {
            // The owner acts as an agent there: what the assistant does that is connected so.
            Access::Owner(_) => !matches!(self.name, Name::CallTool),
            Socket => true,
            // The handler of the audit log lets the owner in, and nobody else.
            Public => matches!(
                self.name,
                Name::Did | Name::StatusList | Name::Incidents | Name::Audit | Name::Healthy | Name::Ready
            ),
            Grantee | Agent => false,
        }
    }

    /// Its path with a text in place of each part that varies.
    #[must_use]
    pub fn at(&self, part: &str) -> String {
        let steps = self.path.split('/').map(|step| if step.starts_with('{') { part } else { step });
        steps.collect::<Vec<_>>().join("/")
    }
}

macro_rules! routes {
    (
        others { $($name:ident: $method:ident $path:expr, $access:expr;)+ }
        owner { $($owned:ident: $endpoint:ty;)+ }
    ) => {
        /// The name of a route.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the list of routes says what each is")]
        pub enum Name {
            $($name,)+
            $($owned,)+
        }

        /// The endpoints of the owner's, each by the name of its route.
        #[allow(missing_docs, reason = "the list of routes says what each is")]
        pub mod endpoint {
            #[allow(clippy::wildcard_imports, reason = "the endpoints stand in the list as they do above")]
            use super::*;
            $(pub type $owned = $endpoint;)+
        }

        /// Every route.
        pub const ROUTES: &[Route] = &[
            $(Route { name: Name::$name, method: Method::$method, path: $path, permission: $access },)+
            $(Route {
                name: Name::$owned,
                method: <$endpoint as Endpoint>::METHOD,
                path: <$endpoint as Endpoint>::PATH,
                permission: Access::Owner(<<$endpoint as Endpoint>::Needs as Mark>::PERMISSION),
            },)+
        ];
    };
}

use Access::{Agent, Grantee, Public, Socket};

routes! {
    others {
        MemoryManifest: GET path::MEMORY_MANIFEST, Public;
        ToolManifest: GET path::TOOL_MANIFEST, Public;
        Scopes: GET path::SCOPES, Public;
        Did: GET path::DID, Public;
        Handovers: GET path::HANDOVERS, Public;
        AgentCard: GET path::AGENT_CARD, Public;
        Query: POST path::QUERY, Grantee;
        Exchange: POST path::GRANT, Public;
        GrantState: GET "/oap/memory/grant/{id}", Public;
        ExportView: POST path::EXPORT, Grantee;
        Vector: GET "/oap/memory/vec/{id}", Grantee;
        Changes: POST path::CHANGES, Grantee;
        Changed: POST path::CHANGED, Grantee;
        Ack: POST path::ACK, Public;
        StatusList: GET path::STATUS, Public;
        Invoke: POST path::INVOKE, Public;
        Discover: POST path::DISCOVER, Public;
        Incidents: GET path::INCIDENT, Public;
        Conformance: GET path::CONFORMANCE, Public;
        ReceiptVerify: POST path::RECEIPT_VERIFY, Public;
        Audit: GET path::AUDIT, Public;
        OpenApi: GET path::OPENAPI, Public;
        Letter: POST path::LETTER, Public;
        Checkpoint: GET path::CHECKPOINT, Public;
        Consistency: GET path::CONSISTENCY, Public;
        Witnessed: GET "/oap/memory/witnessed/{id}", Grantee;
        AddCheckpoint: POST "/oap/witness/add-checkpoint", Public;
        Cosigned: GET "/oap/witness/{origin}/checkpoint", Public;
        NewSubscription: POST path::SUBSCRIBE, Grantee;
        SubscriptionOver: POST "/oap/memory/subscribe/{id}/end", Grantee;
        SubscriptionEvents: GET "/oap/memory/subscribe/{id}/events", Grantee;
        Pushed: POST "/oap/peer/push/{id}", Public;
        AgentCall: POST "/oap/agent/call", Agent;
        AskBrain: GET "/.well-known/brain/sparql", Agent;
        TellBrain: POST "/.well-known/brain/sparql", Agent;
        Mcp: POST at::RESOURCE, Agent;
        McpResource: GET at::RESOURCE_METADATA, Public;
        McpResourceRoot: GET "/.well-known/oauth-protected-resource", Public;
        McpServer: GET "/.well-known/oauth-authorization-server", Public;
        Authorize: GET at::AUTHORIZE, Public;
        Authorizing: GET "/oauth/authorize/{request}", Public;
        Token: POST at::TOKEN, Public;
        RevokeToken: POST at::REVOKE, Public;
        CreateEntry: POST "/api/v1/memory", Agent;
        QueryEntries: GET "/api/v1/memory", Agent;
        ShowEntry: GET "/api/v1/memory/{id}", Agent;
        ChangeEntry: PATCH "/api/v1/memory/{id}", Agent;
        DeleteEntry: DELETE "/api/v1/memory/{id}", Agent;
        WriteEntries: POST "/api/v1/memory/batch", Agent;
        DeleteEntries: DELETE "/api/v1/memory/batch", Agent;
        ListNamespaces: GET "/api/v1/memory/namespaces", Agent;
        ShowNamespace: GET "/api/v1/memory/namespaces/{namespace}", Agent;
        ShareNamespace: PATCH "/api/v1/memory/namespaces/{namespace}", Agent;
        ListEntries: GET "/api/v1/agents/{agent}/memory", Agent;
        SummarizeEntries: GET "/api/v1/agents/{agent}/memory/summary", Agent;
        ListEntriesIn: GET "/api/v1/agents/{agent}/memory/{namespace}", Agent;
        GetEntry: GET "/api/v1/agents/{agent}/memory/{namespace}/{key}", Agent;
        PutEntry: PUT "/api/v1/agents/{agent}/memory/{namespace}/{key}", Agent;
        SearchEntries: GET "/api/v1/memory/search", Agent;
        AgentEvents: GET "/api/v1/agents/{agent}/events", Agent;
        MakeIntent: POST "/api/v1/intents", Agent;
        ShowIntent: GET "/api/v1/intents/{id}", Agent;
        IntentEvents: GET "/api/v1/intents/{id}/events", Agent;
        ListTasks: GET "/api/v1/intents/{id}/tasks", Agent;
        MakeTask: POST "/api/v1/tasks", Agent;
        ShowTask: GET "/api/v1/tasks/{id}", Agent;
        ChangeTask: PATCH "/api/v1/tasks/{id}", Agent;
        DiscoverOpenIntent: GET "/.well-known/openintent.json", Public;
        Healthy: GET "/healthz", Public;
        Ready: GET "/readyz", Public;

        Lock: POST <Lock as Endpoint>::PATH, Socket;
    }
    owner {
        ListItems: items::ListItems;
        WriteItems: items::WriteItems;
        ShowItem: items::ShowItem;
        ExplainItem: items::ExplainItem;
        CorrectItem: items::CorrectItem;
        RelabelItem: items::RelabelItem;
        RetractItem: items::RetractItem;
        RejectItem: items::RejectItem;
        RestoreItem: items::RestoreItem;
        ConfirmItem: items::ConfirmItem;
        ResealItem: items::ResealItem;

        ResolveItems: selections::ResolveItems;
        SearchItems: selections::SearchItems;
        SelectItems: selections::SelectItems;
        RelabelItems: selections::RelabelItems;
        RetractItems: selections::RetractItems;

        ListAgents: agents::ListAgents;
        AddAgent: agents::AddAgent;
        ShowAgent: agents::ShowAgent;
        SetAgent: agents::SetAgent;
        RotateAgent: agents::RotateAgent;
        RemoveAgent: agents::RemoveAgent;
        CallTool: agents::CallTool;
        Injected: agents::Injected;

        ListConsents: oauth::ListConsents;
        ShowConsent: oauth::ShowConsent;
        ApproveConsent: oauth::ApproveConsent;
        DeclineConsent: oauth::DeclineConsent;
        DeclineWaiting: oauth::DeclineWaiting;
        EndConsent: oauth::EndConsent;
        ListClients: oauth::ListClients;
        AddClient: oauth::AddClient;
        RemoveClient: oauth::RemoveClient;

        ItemHistory: disclosures::ItemHistory;
        Who: disclosures::Who;
        Decision: gates::ShowDecision;

        Delete: deletion::Delete;
        ReportDeletion: deletion::ReportDeletion;
        ListHolds: holds::ListHolds;
        SetHold: holds::SetHolds;
        ReleaseHolds: holds::ReleaseHolds;

        ListProfiles: standing::ListProfiles;
        ListGrants: grants::ListGrants;
        IssueGrant: grants::IssueGrant;
        PreviewGrant: grants::PreviewGrant;
        ShowGrant: grants::ShowGrant;
        RevokeGrant: grants::RevokeGrant;
        ResumeGrants: grants::ResumeGrants;
        Consent: grants::ConsentToGrant;
        ListAsks: access::ListAsks;
        ShowAsk: access::ShowAsk;
        ApproveAsk: access::ApproveAsk;
        DeclineAsk: access::DeclineAsk;
        ListAsked: access::ListAsked;
        RequestAccess: access::RequestAccess;
        ShowAsked: access::ShowAsked;
        AskAgain: access::AskAgain;
        WithdrawAsked: access::WithdrawAsked;
        ListReceived: access::ListReceived;
        AddReceived: access::AddReceived;
        ShowReceived: access::ShowReceived;
        CheckReceived: access::CheckReceived;
        DelegateReceived: access::DelegateReceived;
        NoteAnswer: access::NoteAnswer;
        RemoveReceived: access::RemoveReceived;
        ListLetters: access::ListLetters;
        ListAcks: acks::ListAcks;
        SetAcks: acks::SetAcks;
        ShowAck: acks::ShowAck;
        GiveAck: acks::GiveAck;
        RecallItems: recall::RecallItems;
        ListLies: recall::ListLies;
        ListSubscriptions: subscriptions::ListSubscriptions;
        Subscribe: subscriptions::Subscribe;
        EndSubscription: subscriptions::EndSubscription;
        ListBudgets: budgets::ListBudgets;
        RefillBudget: budgets::RefillBudget;
        ShowPolicy: policy::ShowPolicy;
        SetPolicy: policy::SetPolicy;

        ListContexts: gates::ListContexts;
        SetContext: gates::SetContext;
        RemoveContext: gates::RemoveContext;
        ListBridges: gates::ListBridges;
        IssueBridge: gates::IssueBridge;
        RevokeBridge: gates::RevokeBridge;

        ListPeers: peers::ListPeers;
        AddPeer: peers::AddPeer;
        FindPeer: peers::FindPeer;
        ShowPeer: peers::ShowPeer;
        CheckPeer: peers::CheckPeer;
        AcceptPeer: peers::AcceptPeer;
        RemovePeer: peers::RemovePeer;
        ListWitnesses: witnesses::ListWitnesses;
        AddWitness: witnesses::AddWitness;
        RemoveWitness: witnesses::RemoveWitness;
        ListWitnessed: witnesses::ListWitnessed;
        WitnessFor: witnesses::WitnessFor;
        EndWitness: witnesses::EndWitness;
        ListDemands: witnesses::ListDemands;
        SetDemand: witnesses::SetDemand;

        ListDevices: devices::ListDevices;
        AddDevice: devices::AddDevice;
        ConfirmDevice: devices::ConfirmDevice;
        ShowDevice: devices::ShowDevice;
        RemoveDevice: devices::RemoveDevice;
        SyncDevice: devices::SyncDevice;

        ListKeys: keys::ListKeys;
        RotateKeys: keys::RotateKeys;
        RevokeKey: keys::RevokeKey;
        Prove: standing::Prove;

        ExportHeader: transfer::ExportHeader;
        ExportPage: transfer::ExportPage;
        ExportSeal: transfer::ExportSeal;
        ImportBundle: transfer::ImportBundle;
        ImportRecords: transfer::ImportRecords;
        ImportFinish: transfer::ImportFinish;

        ListChains: audit::ListChains;
        ReportIncident: standing::ReportIncident;

        ListJobs: jobs::ListJobs;
        BeginJob: jobs::BeginJob;
        ShowJob: jobs::ShowJob;
        CancelJob: jobs::CancelJob;

        Status: health::ShowStatus;
        Clock: health::ShowClock;
        AcceptClock: health::AcceptClock;
        LockDown: lockdown::LockDown;
        ShowLockdown: lockdown::ShowLockdown;
        LiftLockdown: lockdown::LiftLockdown;
        Attest: standing::Attest;
        Witness: standing::Witness;
    }
}

#[cfg(test)]
mod tests {
    use super::Access::Owner;
    use super::Permission::Write;
    use super::*;
    use std::collections::BTreeSet;

    /// An endpoint that no route serves would be in openapi.json, and nowhere else.
    #[test]
    fn every_endpoint_has_its_route() {
        for row in crate::api::all() {
            let route = ROUTES.iter().find(|route| (&route.method, route.path) == (&row.method, row.path));
            let permission = route.unwrap_or_else(|| panic!("{}", row.name)).permission;
            // Grantees and strangers read the log, too, each what concerns them.
            let expected = if row.name == "Audit" { Public } else { Owner(row.permission) };
            assert_eq!(permission, expected, "{}", row.name);
        }
    }

    #[test]
    fn a_route_is_there_once_and_is_read_or_written() {
        let mut seen = BTreeSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.path, route.method.as_str())), "{route:?}");
            // The gateway's own routes have two methods; OpenIntent's have its own.
            let is_known = [Method::GET, Method::POST].contains(&route.method);
            assert!(is_known || route.path.starts_with("/api/v1/"), "{route:?}");
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
