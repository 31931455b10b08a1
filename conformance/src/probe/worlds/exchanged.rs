//! What grants are exchanged for, and what is told of their state, beside what the model says.

use super::super::wire::Reply;
use super::super::{Failed, judged};
use super::Finding;
use super::ask::{leaks, leaks_beyond};
use super::fill::Lived;
use crate::probe::refusals::read;
use serde_json::json;

/// The reply to an exchange of a grant in force, whose receipt is in the log then.
pub(super) fn exchanged(lived: &mut Lived<'_>, grant: usize, reply: &Reply, findings: &mut Vec<Finding>) {
    let Some(live) = lived.grants.get(&grant) else { return };
    let thumbprint = live.session.grantee.public().thumbprint();
    let Some(expected) = lived.model.exchange(live.id(), &thumbprint, lived.now()) else { return };
    let answer = reply.json();
    let token = answer["memory_grant_jwt"].as_str().unwrap_or_default();
    judged::note();
    let mut differences = expected.differences(&answer, &read(token, 0), &read(token, 1));
    // The token names the grant's scope.
    leaks_beyond(lived, reply, &live.known, &mut differences);
    findings.extend(differences.into_iter().map(|difference| Finding {
        seed: lived.world.seed,
        grant: format!("grant {grant}"),
        query: json!("an exchange"),
        difference,
    }));
    if let Some(receipt) = answer["receipt_id"].as_str() {
        lived.disclosed.exchanged(&lived.model, live.id(), receipt);
    }
}

/// What its grantee is told of the state of a grant, and maybe what another one is told.
///
/// # Errors
/// When the run is over.
pub(super) async fn state(
    lived: &Lived<'_>,
    grant: usize,
    by_another: bool,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
    let stranger = lived.context.stranger();
    let by = if by_another { &stranger } else { &live.session.grantee };
    let reply = lived.context.state_of(by, &live.session.grant).await?;
    let expected = lived.model.state(live.id(), !by_another, lived.now());
    judged::note();
    let mut differences = expected.differences(reply.status, &reply.json());
    leaks(lived, grant, &reply, None, &mut differences);
    findings.extend(differences.into_iter().map(|difference| Finding {
        seed: lived.world.seed,
        grant: format!("grant {grant}"),
        query: json!("the state of the grant"),
        difference,
    }));
    Ok(())
}
