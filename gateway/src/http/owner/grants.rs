//! Grants: tried, issued, listed, taken back; consent, what they spend, and the profiles that they name.

use crate::api::Done;
use crate::api::budgets::{ListBudgets, RefillBudget};
use crate::api::grants::{
    ConsentToGrant, GrantList, IssueGrant, ListGrants, PreviewGrant, ResumeGrants, RevokeGrant, ShowGrant,
};
use crate::api::standing::{ListProfiles, Profiles};
use crate::http::door::{Answer, Call};
use crate::service::{Budgets, Gates, Grants};

pub(in crate::http) async fn preview(call: Call<PreviewGrant>) -> Answer<PreviewGrant> {
    Grants(&call.gateway).preview(&call.owner, call.body).await
}

pub(in crate::http) async fn issue(call: Call<IssueGrant>) -> Answer<IssueGrant> {
    let Call { owner, gateway, query, body: draft, .. } = call;
    let grants = Grants(&gateway);
    if !query.offline {
        grants.resolve_grantee(&owner, &draft.grantee).await?;
    }
    let signed = grants.issue(&owner, draft).await?;
    grants.grant_info(&owner, signed.grant().grant_id)
}

pub(in crate::http) async fn list(call: Call<ListGrants>) -> Answer<ListGrants> {
    Ok(GrantList { grants: Grants(&call.gateway).grant_list(&call.owner) })
}

pub(in crate::http) async fn show(call: Call<ShowGrant>) -> Answer<ShowGrant> {
    Grants(&call.gateway).grant_info(&call.owner, call.place)
}

pub(in crate::http) async fn revoke(call: Call<RevokeGrant>) -> Answer<RevokeGrant> {
    Grants(&call.gateway).revoke(&call.owner, call.place).await
}

pub(in crate::http) async fn resume(call: Call<ResumeGrants>) -> Answer<ResumeGrants> {
    Grants(&call.gateway).resume(&call.owner).await
}

pub(in crate::http) async fn consent(call: Call<ConsentToGrant>) -> Answer<ConsentToGrant> {
    Gates(&call.gateway).consent(&call.owner, call.place, call.body.given).await.map(|()| Done {})
}

pub(in crate::http) async fn list_budgets(call: Call<ListBudgets>) -> Answer<ListBudgets> {
    Budgets(&call.gateway).accounts(&call.owner)
}

pub(in crate::http) async fn refill_budget(call: Call<RefillBudget>) -> Answer<RefillBudget> {
    Budgets(&call.gateway).refill(&call.owner, call.body).await.map(|()| Done {})
}

pub(in crate::http) async fn list_profiles(call: Call<ListProfiles>) -> Answer<ListProfiles> {
    Ok(Profiles { profiles: Grants(&call.gateway).profile_list(&call.owner) })
}
