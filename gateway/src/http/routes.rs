//! The router, built of the list of routes: one without a handler, or a handler without a route, does not compile.

use super::owner::{
    audit, contexts, deletion, disclosures, grants, house, items, keys, selections, transfer,
};
use super::{App, discovery, exchange, invoke, jobs};
use crate::api::routes::{Access, Name, ROUTES, Route};
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
        Access::Grantee => false,
    })
}

fn router(has: impl Fn(&Route) -> bool) -> Router<App> {
    let routes = ROUTES.iter().filter(|route| has(route));
    routes.fold(Router::new(), |router, route| router.route(route.path, handler(route)))
}

#[rustfmt::skip]
fn handler(route: &Route) -> MethodRouter<App> {
    let by = if route.method == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
    match route.name {
        Name::MemoryManifest => on(by, discovery::memory),
        Name::ToolManifest => on(by, discovery::tool),
        Name::Scopes => on(by, discovery::scopes),
        Name::Did => on(by, discovery::did),
        Name::Query => on(by, exchange::query),
        Name::Exchange => on(by, exchange::grant),
        Name::GrantState => on(by, exchange::grant_state),
        Name::ExportView => on(by, exchange::export),
        Name::Vector => on(by, exchange::vector),
        Name::Ack => on(by, exchange::ack),
        Name::StatusList => on(by, exchange::status),
        Name::Invoke => on(by, invoke::invoke),
        Name::Discover => on(by, discovery::discover),
        Name::Incidents => on(by, discovery::incidents),
        Name::Conformance => on(by, discovery::conformance),
        Name::ReceiptVerify => on(by, discovery::receipt_verify),
        Name::Audit => on(by, audit::audit),
        Name::OpenApi => on(by, discovery::openapi),
        Name::Healthy => on(by, async || "ok\n"),
        Name::Ready => on(by, discovery::ready),
        Name::ListItems => on(by, items::list_items),
        Name::WriteItems => on(by, items::write_items),
        Name::ShowItem => on(by, items::read_item),
        Name::ExplainItem => on(by, items::explain_item),
        Name::CorrectItem => on(by, items::correct_item),
        Name::RelabelItem => on(by, items::relabel_item),
        Name::RetractItem => on(by, items::retract_item),
        Name::RestoreItem => on(by, items::restore_item),
        Name::ConfirmItem => on(by, items::confirm_item),
        Name::ResealItem => on(by, items::reseal_item),
        Name::ResolveItems => on(by, selections::resolve),
        Name::SearchItems => on(by, selections::search),
        Name::SelectItems => on(by, selections::select),
        Name::RelabelItems => on(by, selections::relabel),
        Name::RetractItems => on(by, selections::retract),
        Name::ItemHistory => on(by, disclosures::history),
        Name::Who => on(by, disclosures::who),
        Name::Decision => on(by, disclosures::decision),
        Name::Delete => on(by, deletion::delete),
        Name::ListHolds => on(by, deletion::list_holds),
        Name::SetHold => on(by, deletion::set_hold),
        Name::ReleaseHolds => on(by, deletion::release_holds),
        Name::ListProfiles => on(by, grants::list_profiles),
        Name::ListGrants => on(by, grants::list_grants),
        Name::IssueGrant => on(by, grants::issue_grant),
        Name::PreviewGrant => on(by, grants::preview_grant),
        Name::ShowGrant => on(by, grants::show_grant),
        Name::RevokeGrant => on(by, grants::revoke_grant),
        Name::Consent => on(by, grants::consent),
        Name::ListBudgets => on(by, grants::list_budgets),
        Name::RefillBudget => on(by, grants::refill_budget),
        Name::ListContexts => on(by, contexts::list_contexts),
        Name::SetContext => on(by, contexts::set_context),
        Name::RemoveContext => on(by, contexts::remove_context),
        Name::ListBridges => on(by, contexts::list_bridges),
        Name::IssueBridge => on(by, contexts::issue_bridge),
        Name::RevokeBridge => on(by, contexts::revoke_bridge),
        Name::ListKeys => on(by, keys::list_keys),
        Name::RotateKeys => on(by, keys::rotate_keys),
        Name::RevokeKey => on(by, keys::revoke_key),
        Name::Prove => on(by, keys::prove),
        Name::ExportHeader => on(by, transfer::export_header),
        Name::ExportPage => on(by, transfer::export_page),
        Name::ExportSeal => on(by, transfer::export_seal),
        Name::ImportBundle => on(by, transfer::import_bundle),
        Name::ImportRecords => on(by, transfer::import_records),
        Name::ImportFinish => on(by, transfer::import_finish),
        Name::ListChains => on(by, audit::list_chains),
        Name::AuditMemorization => on(by, audit::audit_memorization),
        Name::ReportIncident => on(by, audit::report_incident),
        Name::ListJobs => on(by, jobs::list),
        Name::BeginJob => on(by, jobs::begin),
        Name::ShowJob => on(by, jobs::show),
        Name::CancelJob => on(by, jobs::cancel),
        Name::Status => on(by, house::status),
        Name::Clock => on(by, house::clock),
        Name::AcceptClock => on(by, house::accept_clock),
        Name::Attest => on(by, house::attest),
        Name::Witness => on(by, house::witness),
        Name::Lock => on(by, house::lock),
    }
}
