//! The audit log.

use crate::Error;
use crate::api::audit::{AuditQuery, Chains, ListChains, Receipts};
use crate::http::App;
use crate::http::credential::as_grantee;
use crate::http::door::{Answer, Call};
use crate::http::request::{Incoming, Oap, presented};
use crate::service::{Audit, Exchange};
use crate::state::gateway::{Gateway, blocking};
use crate::state::owner::mark::Admin;
use crate::state::refusals::{Counted, Refusals};
use axum::extract::State;

/// `GET /oap/audit`: the owner sees everything, a grantee the receipts that name it (under a bearer token, and an own agent, those of
/// the token's grant), anybody else those of anonymous calls (protocol section 8).
pub(in crate::http) async fn audit(
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Oap<Receipts>, Error> {
    let query: AuditQuery = request.query()?;
    let credential = !request.header("authorization").is_empty();
    let is_owner = credential && presented(&request, Gateway::presents_trust_token);
    if !is_owner {
        app.gateway.is_open()?;
    }
    let receipts = if !credential {
        request.rate_limit()?;
        Audit(&app.gateway).audit_public(&query)?.into()
    } else if is_owner {
        let owner = request.owner::<Admin>().await?;
        let gateway = app.gateway.clone();
        blocking(move || Audit(&gateway).audit_owner(&owner, &query)).await?
    } else {
        as_grantee(&mut request, async |_, caller| {
            let now = app.gateway.clock.now();
            if !app.gateway.refusals.admit(Counted::Audit, caller.first(), now) {
                return Err(Error::RateLimited(Refusals::anew(now)));
            }
            Exchange(&app.gateway).in_force(caller).await?;
            Exchange(&app.gateway).keep_proof(caller).await?;
            let (gateway, grantee) = (app.gateway.clone(), caller.grantee().clone());
            let only = caller.confined(app.gateway.principal());
            blocking(move || Audit(&gateway).audit_grantee(&grantee, only, &query)).await
        })
        .await?
        .into()
    };
    if !is_owner {
        // A lockdown may have begun meanwhile, and no transaction says so here.
        app.gateway.is_open()?;
    }
    Ok(Oap(Receipts::of(receipts)?))
}

pub(in crate::http) async fn list_chains(call: Call<ListChains>) -> Answer<ListChains> {
    Ok(Chains { chains: Audit(&call.gateway).chain_list(&call.owner)? })
}
