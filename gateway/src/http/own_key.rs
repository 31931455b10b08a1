//! An agent that proves its own key (docs/protocol.md section 10), from the head of its request alone.

use super::mcp;
use super::request::{Incoming, Sender};
use crate::Error;
use crate::error::Unproved;
use crate::state::agents::Agent;
use crate::state::own_key::proves_own_key;
use crate::state::owner::mark::Read;
use oap_grants::dpop;

/// Whether a request is by such an agent.
pub(super) fn is_presented(request: &Incoming) -> bool {
    let [authorization, key, proofs] =
        ["authorization", "x-api-key", "dpop"].map(|name| request.header(name));
    proves_own_key(&authorization, &key, &proofs)
}

/// Which agent it is. Its proof is used up when this returns; who has no room uses none up.
pub(super) async fn agent(request: &mut Incoming) -> Result<Agent<Read>, Error> {
    let gateway = request.app().gateway.clone();
    let (method, url) = request.target();
    let target = dpop::Request { method: &method, url: &url };
    let (authorization, proofs) = (request.header("authorization"), request.header("dpop"));
    match gateway.agent_by_own_key(&authorization, &proofs, target) {
        Ok(proving) => {
            // Whoever has nothing but a proof that was used takes nothing from its agent.
            if proving.is_used(&gateway) {
                request.rate_limit()?;
                return Err(Error::Owner(Unproved::UsedProof));
            }
            mcp::has_room(&gateway, proving.claimed())?;
            let agent = gateway.proved(proving).await?;
            request.sent_by(Sender::Agent);
            Ok(agent)
        }
        Err(error) => {
            // Whoever tries keys is nobody.
            request.rate_limit()?;
            Err(error)
        }
    }
}
