//! The router, built of the list of routes: one without a handler, or a handler without a route, does not compile.

use super::door::{Door, door, door_importing, door_reading, door_with_lines};
use super::owner::{
    access, acks, agents, audit, clients, contexts, deletion, devices as owner_devices, disclosures, grants,
    house, items, keys, peers, policy, recall, selections, subscriptions as subscribed, transfer,
    witnesses as owners,
};
use super::{
    App, brain, coordination, devices, discovery, exchange, invoke, jobs, letters, mcp, oauth, openintent,
    subscriptions, witnesses,
};

use crate::api::routes::{Access, Name, ROUTES, Route, endpoint};
use crate::service::import::{BundleChunk, RecordChunk};
use axum::Router;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};

/// Every route that everybody can reach.
pub(super) fn public() -> Router<App> {
    router(|route| route.permission != Access::Socket)
}

/// The routes of the owner's own socket; with `lock`, whoever may write to it may also end the process.
pub(super) fn socket(lock: bool) -> Router<App> {
    router(|route| match route.permission {
        Access::Owner(_) => true,
        Access::Socket => lock,
        Access::Public => matches!(route.name, Name::Audit | Name::OpenApi | Name::Healthy | Name::Ready),
        Access::Grantee | Access::Agent => false,
    })
}

fn router(has: impl Fn(&Route) -> bool) -> Router<App> {
    let routes = ROUTES.iter().filter(|route| has(route));
    routes.fold(Router::new(), |router, route| router.route(route.path, handler(route)))
}

/// By which method a route is called.
fn by(method: &Method) -> MethodFilter {
    match method.as_str() {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "PATCH" => MethodFilter::PATCH,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}

/// One handler a route. Of the owner's, it is a handler of the route's own endpoint, or does not compile.
macro_rules! handlers {
    ($route:ident: others { $($name:ident => $handler:expr;)+ } owner { $($owned:ident => $door:expr;)+ }) => {{
        let by = by(&$route.method);
        match $route.name {
            $(Name::$name => on(by, $handler),)+
            $(Name::$owned => Door::<endpoint::$owned>::into_router($door),)+
        }
    }};
}

fn handler(route: &Route) -> MethodRouter<App> {
    handlers! {
        route:
        others {
            MemoryManifest => discovery::memory;
            ToolManifest => discovery::tool;
            Scopes => discovery::scopes;
            Did => discovery::did;
            Handovers => discovery::handovers;
            AgentCard => discovery::agent_card;
            Query => exchange::query;
            Exchange => exchange::grant;
            GrantState => exchange::grant_state;
            ExportView => exchange::export;
            Vector => exchange::vector;
            Changes => devices::changes;
            Changed => devices::changed;
            Ack => exchange::ack;
            StatusList => exchange::status;
            Invoke => invoke::invoke;
            Discover => discovery::discover;
            Incidents => discovery::incidents;
            Conformance => discovery::conformance;
            ReceiptVerify => discovery::receipt_verify;
            Audit => audit::audit;
            OpenApi => discovery::openapi;
            Letter => letters::letter;
            Checkpoint => witnesses::checkpoint;
            Consistency => witnesses::consistency;
            Witnessed => witnesses::witnessed;
            AddCheckpoint => witnesses::add_checkpoint;
            Cosigned => witnesses::last_of;
            NewSubscription => subscriptions::subscribe;
            SubscriptionOver => subscriptions::end;
            SubscriptionEvents => subscriptions::events;
            Pushed => subscriptions::pushed;
            AgentCall => agents::call_by_key;
            AskBrain => brain::sparql;
            TellBrain => brain::sparql;
            Mcp => mcp::mcp;
            McpResource => oauth::resource;
            McpResourceRoot => oauth::resource;
            McpServer => oauth::server;
            Authorize => oauth::authorize;
            Authorizing => oauth::authorizing;
            Token => oauth::token;
            RevokeToken => oauth::revoke;
            CreateEntry => openintent::create;
            QueryEntries => openintent::query;
            ShowEntry => openintent::show;
            ChangeEntry => openintent::change;
            DeleteEntry => openintent::delete;
            WriteEntries => openintent::write_all;
            DeleteEntries => openintent::delete_all;
            ListNamespaces => openintent::namespaces;
            ShowNamespace => openintent::namespace;
            ShareNamespace => openintent::share;
            ListEntries => openintent::list;
            SummarizeEntries => openintent::summary;
            ListEntriesIn => openintent::list_in;
            GetEntry => openintent::get;
            PutEntry => openintent::put;
            SearchEntries => openintent::search;
            AgentEvents => coordination::agent_events;
            MakeIntent => coordination::make_intent;
            ShowIntent => coordination::show_intent;
            IntentEvents => coordination::intent_events;
            ListTasks => coordination::list_tasks;
            MakeTask => coordination::make_task;
            ShowTask => coordination::show_task;
            ChangeTask => coordination::change_task;
            DiscoverOpenIntent => openintent::discover;
            Healthy => async || "ok\n";
            Ready => discovery::ready;
            Lock => house::lock;
        }
        owner {
            ListItems => door(items::list);
            WriteItems => door_reading(items::new_items, items::write);
            ShowItem => door(items::show);
            ExplainItem => door(items::explain);
            CorrectItem => door(items::correct);
            RelabelItem => door(items::relabel);
            RetractItem => door(items::retract);
            RejectItem => door(items::reject);
            RestoreItem => door(items::restore);
            ConfirmItem => door(items::confirm);
            ResealItem => door(items::reseal);

            ResolveItems => door(selections::resolve);
            SearchItems => door(selections::search);
            SelectItems => door(selections::select);
            RelabelItems => door(selections::relabel);
            RetractItems => door(selections::retract);

            ListAgents => door(agents::list);
            AddAgent => door(agents::add);
            ShowAgent => door(agents::show);
            SetAgent => door(agents::set);
            RotateAgent => door(agents::rotate);
            RemoveAgent => door(agents::remove);
            CallTool => door(agents::call);
            Injected => door(agents::injected);

            ListConsents => door(clients::list_consents);
            ShowConsent => door(clients::show);
            ApproveConsent => door(clients::approve);
            DeclineConsent => door(clients::decline);
            DeclineWaiting => door(clients::decline_waiting);
            EndConsent => door(clients::end);
            ListClients => door(clients::list);
            AddClient => door(clients::add);
            RemoveClient => door(clients::remove);

            ItemHistory => door(disclosures::history);
            Who => door(disclosures::who);
            Decision => door(contexts::decision);

            Delete => door(deletion::delete);
            ReportDeletion => door(deletion::report);
            ListHolds => door(deletion::list_holds);
            SetHold => door(deletion::set_holds);
            ReleaseHolds => door(deletion::release_holds);

            ListProfiles => door(grants::list_profiles);
            ListGrants => door(grants::list);
            IssueGrant => door(grants::issue);
            PreviewGrant => door(grants::preview);
            ShowGrant => door(grants::show);
            RevokeGrant => door(grants::revoke);
            ResumeGrants => door(grants::resume);
            Consent => door(grants::consent);
            ListAsks => door(access::list_asks);
            ShowAsk => door(access::show_ask);
            ApproveAsk => door(access::approve);
            DeclineAsk => door(access::decline);
            ListAsked => door(access::list_asked);
            RequestAccess => door(access::request);
            ShowAsked => door(access::show_asked);
            AskAgain => door(access::again);
            WithdrawAsked => door(access::withdraw);
            ListAcks => door(acks::list);
            SetAcks => door(acks::set);
            ShowAck => door(acks::show);
            GiveAck => door(acks::give);
            RecallItems => door(recall::recall);
            ListLies => door(recall::lies);
            ListSubscriptions => door(subscribed::list);
            Subscribe => door(subscribed::subscribe);
            EndSubscription => door(subscribed::end);
            ListReceived => door(access::list_received);
            AddReceived => door(access::add_received);
            ShowReceived => door(access::show_received);
            CheckReceived => door(access::check_received);
            DelegateReceived => door(access::delegate_received);
            NoteAnswer => door(access::note_answer);
            RemoveReceived => door(access::remove_received);
            ListLetters => door(access::list_letters);
            ListBudgets => door(grants::list_budgets);
            RefillBudget => door(grants::refill_budget);
            ShowPolicy => door(policy::show);
            SetPolicy => door(policy::set);

            ListContexts => door(contexts::list);
            SetContext => door(contexts::set);
            RemoveContext => door(contexts::remove);
            ListBridges => door(contexts::list_bridges);
            IssueBridge => door(contexts::issue_bridge);
            RevokeBridge => door(contexts::revoke_bridge);

            ListPeers => door(peers::list);
            AddPeer => door(peers::add);
            FindPeer => door(peers::find);
            ShowPeer => door(peers::show);
            CheckPeer => door(peers::check);
            AcceptPeer => door(peers::accept);
            RemovePeer => door(peers::remove);
            ListWitnesses => door(owners::list);
            AddWitness => door(owners::add);
            RemoveWitness => door(owners::remove);
            ListWitnessed => door(owners::witnessed);
            WitnessFor => door(owners::witness_for);
            EndWitness => door(owners::end);
            ListDemands => door(owners::demands);
            SetDemand => door(owners::demand);

            ListDevices => door(owner_devices::list);
            AddDevice => door(owner_devices::add);
            ConfirmDevice => door(owner_devices::confirm);
            ShowDevice => door(owner_devices::show);
            RemoveDevice => door(owner_devices::remove);
            SyncDevice => door(owner_devices::sync);

            ListKeys => door(keys::list);
            RotateKeys => door(keys::rotate);
            RevokeKey => door(keys::revoke);
            Prove => door(keys::prove);

            ExportHeader => door(transfer::export_header);
            ExportPage => door_with_lines(transfer::export_page);
            ExportSeal => door(transfer::export_seal);
            ImportBundle => door_importing(BundleChunk::parse, transfer::import_bundle);
            ImportRecords => door_importing(RecordChunk::parse, transfer::import_records);
            ImportFinish => door(transfer::import_finish);

            ListChains => door(audit::list_chains);
            ReportIncident => door(house::report_incident);

            ListJobs => door(jobs::list);
            BeginJob => door(jobs::begin);
            ShowJob => door(jobs::show);
            CancelJob => door(jobs::cancel);

            Status => door(house::status);
            Clock => door(house::clock);
            AcceptClock => door(house::accept_clock);
            LockDown => door(house::lock_down);
            ShowLockdown => door(house::show_lockdown);
            LiftLockdown => door(house::lift_lockdown);
            Attest => door(house::attest);
            Witness => door(house::witness);
        }
    }
}
