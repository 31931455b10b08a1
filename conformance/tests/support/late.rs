//! The real gateway behind an owner's side that refuses no grant: what may not be is issued, and refused at its exchange.

use super::front::{body, refused};
use super::inside::{Behind, Inside};
use crate::common::*;
use oap_conformance::probe::{Reply, Request, Setup, SetupError, Wire, wire::Pending};
use oap_identity::signed::sign_document;
use oap_identity::{GrantId, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The gateway and its owner's side.
pub struct Late<'a> {
    inside: Inside<'a>,
    /// Drafts that the real gateway would issue, and this one does not let in.
    also: fn(&Value) -> bool,
    /// The grants that were issued and may not be, by their ids: the statuses of their exchanges.
    issued: Mutex<BTreeMap<String, Vec<u16>>>,
}

impl<'a> Late<'a> {
    pub fn of(world: &'a World, also: fn(&Value) -> bool) -> Self {
        Self { inside: Inside(world), also, issued: Mutex::default() }
    }

    /// The statuses of the exchanges of what was issued and may not be, grant by grant.
    pub fn exchanges(&self) -> Vec<Vec<u16>> {
        self.issued.lock().unwrap().values().cloned().collect()
    }

    /// The way to it.
    pub fn wire(&self) -> impl Wire {
        Behind::of(self.inside.0, |request: &Request, reply: Reply| {
            let grant = &body(request)["grant"];
            let mut issued = self.issued.lock().unwrap();
            let Some(statuses) = issued.get_mut(grant["grant_id"].as_str().unwrap_or_default()) else {
                return reply;
            };
            // It looks at the time first.
            let begins: Option<Timestamp> = grant["not_before"].as_str().and_then(|at| at.parse().ok());
            let is_early = begins.is_some_and(|begins| begins > self.inside.0.now());
            let reply = if is_early { refused(reply, 403, "policy_block") } else { reply };
            statuses.push(reply.status);
            reply
        })
    }

    /// A grant as it was drafted, with the principal's signature: the gateway does not know it.
    fn issue(&self, draft: &Value) -> Value {
        let (world, mut grant) = (self.inside.0, draft.clone());
        let scope = grant.as_object_mut().and_then(|members| members.remove("scope"));
        let scope = scope.as_ref().and_then(Value::as_str).unwrap_or("personal");
        let id = GrantId::new(world.now(), &world.fresh()).to_string();
        let mut issued = self.issued.lock().unwrap();
        grant["version"] = json!(1);
        grant["grant_id"] = json!(id);
        grant["granter"] = json!(format!("{PRINCIPAL}#{scope}"));
        grant["issued_at"] = json!(world.now());
        grant["status"] =
            json!({"status_list": {"idx": issued.len(), "uri": format!("{ORIGIN}/oap/memory/status")}});
        sign_document(&mut grant, world.gateway.keys().current()).unwrap();
        issued.insert(id, Vec::new());
        grant
    }
}

impl Setup for Late<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        Box::pin(async move {
            if command["do"] != "grant" {
                return self.inside.call(command).await;
            }
            let draft = command["draft"].clone();
            if (self.also)(&draft) {
                return Ok(json!({"grant": self.issue(&draft)}));
            }
            match self.inside.call(command).await {
                Err(SetupError::Refused(_)) => Ok(json!({"grant": self.issue(&draft)})),
                done => done,
            }
        })
    }

    fn may_lock_down(&self) -> bool {
        true
    }
}
