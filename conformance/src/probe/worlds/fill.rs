//! A world in a gateway: items captured, grants issued, passed on and exchanged, and the model told of all.

use super::super::Failed;
use super::super::context::{Context, PURPOSE, Session, expect, mcp, tagged};
use super::super::refusals::Door;
use super::exchanged::exchanged;
use super::{Finding, judge};
use crate::model::{Disclosed, Model, ProfileText};
use crate::world::{Canaries, Item, OWN, World};
use oap_grants::grant as signed;
use oap_identity::{GrantId, Hash, Signer, Timestamp, json as strict, random};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How a query is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Through {
    /// At the query endpoint.
    Query,
    /// As the action `memory.query`.
    Action,
    /// By the tools at `/mcp`.
    Mcp,
}

impl Through {
    /// The door that it goes through.
    pub(in super::super) const fn door(self) -> Door {
        match self {
            Self::Query => Door::Query,
            Self::Action => Door::Invoke,
            Self::Mcp => Door::Mcp,
        }
    }

    /// Whether a query can be made so.
    pub(in super::super) fn takes(self, query: &Value) -> bool {
        self != Self::Mcp || mcp::takes(query)
    }
}

/// A grant of a world in force.
pub(in super::super) struct Live {
    /// The token and its keys.
    pub(super) session: Session,
    /// The grants above it, first one first.
    pub(super) above: Vec<Value>,
    /// What its grantee knows of its own grant.
    pub(super) known: String,
}

impl Live {
    /// The grant's id.
    pub(super) fn id(&self) -> &str {
        self.session.grant["grant_id"].as_str().unwrap_or_default()
    }
}

/// A world that a gateway holds, as far as it was brought there.
pub(in super::super) struct Lived<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) world: &'a World,
    /// By the numbers of the world's items: their ids.
    pub(super) ids: BTreeMap<usize, String>,
    /// By the numbers of the world's grants.
    pub(super) grants: BTreeMap<usize, Live>,
    pub(in super::super) model: Model,
    pub(super) disclosed: Disclosed,
    pub(super) canaries: &'a Canaries,
    /// How far the gateway's clock is ahead of this one, in milliseconds, as its last receipt told it; 0 where that is less than a second.
    pub(super) ahead: i64,
    /// How queries are made.
    pub(in super::super) through: Through,
    /// The grantees' keys.
    keys: Vec<[u8; 32]>,
}

/// The canaries of a world, each with its item and place.
pub(in super::super) fn canaries_of(world: &World, into: &mut Canaries) {
    for (number, item) in world.items().enumerate() {
        for (word, at) in &item.planted.canaries {
            into.add(word, format!("world {}, item {number}, {at}", world.seed));
        }
    }
}

impl<'a> Lived<'a> {
    /// A world of which nothing was brought to the gateway yet.
    ///
    /// # Errors
    /// [`Failed::Wrong`] where the manifest names no principal.
    pub(super) fn new(
        context: &'a Context<'a>,
        world: &'a World,
        manifest: &Value,
        canaries: &'a Canaries,
    ) -> Result<Self, Failed> {
        let principal = manifest["principal"].as_str().and_then(|did| did.parse().ok());
        let principal = principal.ok_or_else(|| Failed::Wrong("the manifest has no principal".to_owned()))?;
        let grantees = world.grants.iter().map(|grant| grant.grantee + 1).max().unwrap_or(0);
        Ok(Self {
            context,
            world,
            ids: BTreeMap::new(),
            grants: BTreeMap::new(),
            model: Model::new(principal, manifest, OWN.map(|text| ProfileText(text.to_owned())).into()),
            disclosed: Disclosed::default(),
            canaries,
            ahead: 0,
            through: Through::Query,
            keys: (0..grantees).map(|_| random::bytes(context.random())).collect(),
        })
    }

    /// The gateway's clock, as its last receipt told it.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.context.now().millis() + self.ahead)
    }

    /// A grantee of the world.
    ///
    /// # Errors
    /// [`Failed::Skipped`]; none in practice.
    pub(super) fn grantee(&self, number: usize) -> Result<Signer, Failed> {
        let key = self.keys.get(number).copied().unwrap_or_default();
        Signer::did_key(&key).map_err(|e| Failed::Skipped(e.to_string()))
    }

    /// Brings a whole world to the gateway.
    ///
    /// # Errors
    /// As those of [`Context::owner`] and [`Context::session`]; what exchanges showed.
    pub(in super::super) async fn fill(
        context: &'a Context<'a>,
        world: &'a World,
        manifest: &Value,
        canaries: &'a Canaries,
    ) -> Result<Self, Failed> {
        let mut lived = Self::new(context, world, manifest, canaries)?;
        let mut findings = Vec::new();
        let done = lived.filled(&mut findings).await;
        judge(&findings).and(done)?;
        Ok(lived)
    }

    async fn filled(&mut self, findings: &mut Vec<Finding>) -> Result<(), Failed> {
        let world = self.world;
        // A grant that names no scope tells which one the default is; items are read by it.
        for (number, _) in world.grants.iter().enumerate().filter(|(_, grant)| grant.is_unscoped()) {
            self.grant(number, findings).await?;
            let granter = self.grants.get(&number).and_then(|live| live.session.grant["granter"].as_str());
            if let Some((_, scope)) = granter.and_then(|granter| granter.split_once('#')) {
                self.model.default_scope(scope);
            }
        }
        let mut number = 0;
        for batch in &world.batches {
            let items: Vec<(usize, &Item)> = (number..).zip(batch).collect();
            number += batch.len();
            self.capture(&items).await?;
        }
        for number in 0..world.grants.len() {
            if !self.grants.contains_key(&number) {
                self.grant(number, findings).await?;
            }
        }
        Ok(())
    }

    /// Reads the keys of the principal's DID document: what they must not have become is found.
    pub(super) async fn read_keys(&mut self, findings: &mut Vec<Finding>) -> Result<(), Failed> {
        let document = self.context.get("/.well-known/did.json").await?;
        findings.extend(self.model.documented(&document).into_iter().map(|difference| Finding {
            seed: self.world.seed,
            grant: "the DID document".to_owned(),
            query: json!("/.well-known/did.json"),
            difference,
        }));
        Ok(())
    }

    /// Captures items of the world.
    pub(super) async fn capture(&mut self, items: &[(usize, &Item)]) -> Result<(), Failed> {
        if items.is_empty() {
            return Ok(());
        }
        let drafts: Vec<Value> = items.iter().map(|(_, item)| self.draft(item)).collect();
        let ids = self.context.capture(&drafts).await?;
        expect(ids.len() == drafts.len(), || "capture did not give an id for each item".to_owned())?;
        let at = self.context.now();
        for ((id, draft), (number, item)) in ids.into_iter().zip(&drafts).zip(items) {
            self.model.captured(&id, draft, at, &item.planted);
            self.ids.insert(*number, id);
        }
        Ok(())
    }

    /// A draft with the ids of the items that it was made from, as far as they are there.
    fn draft(&self, item: &Item) -> Value {
        let mut draft = item.draft.clone();
        let ids: Vec<&str> =
            item.derived_from.iter().filter_map(|n| self.ids.get(n).map(String::as_str)).collect();
        if !ids.is_empty() {
            draft["derived_from"] = json!(ids);
        }
        tagged(&draft)
    }

    /// Has a grant of the world issued, and does not exchange it yet.
    pub(super) async fn issue(&mut self, number: usize) -> Result<(), Failed> {
        let Some(planned) = self.world.grants.get(number) else { return Ok(()) };
        let grantee = self.grantee(planned.grantee)?;
        let mut draft = planned.draft.clone();
        draft["grantee"] = json!(grantee.did());
        let grant = self.context.issued(draft).await?;
        self.model.granted(&grant);
        let known = grant.to_string();
        let session = Session { grantee, grant, token: String::new(), bearer: false };
        self.grants.insert(number, Live { session, above: Vec::new(), known });
        Ok(())
    }

    /// Has a grant of the world issued, or made by the grantee of another that is there, and exchanges it.
    pub(super) async fn grant(&mut self, number: usize, findings: &mut Vec<Finding>) -> Result<(), Failed> {
        let Some(grant) = self.world.grants.get(number) else { return Ok(()) };
        let grantee = self.grantee(grant.grantee)?;
        let ((session, reply), above) = match grant.parent {
            None => {
                let mut draft = grant.draft.clone();
                draft["grantee"] = json!(grantee.did());
                (self.context.session_and_reply(grantee, draft).await?, Vec::new())
            }
            Some(parent) => {
                let Some(parent) = self.grants.get(&parent) else { return Ok(()) };
                let mut above = parent.above.clone();
                above.push(parent.session.grant.clone());
                let mut draft = grant.draft.clone();
                draft["purpose"] = json!(PURPOSE);
                let child = child(self.context, &parent.session, &grantee, &draft)?;
                (self.context.session_below(grantee, child, &above).await?, above)
            }
        };
        self.model.granted(&session.grant);
        let known = session.grant.to_string();
        self.grants.insert(number, Live { session, above, known });
        exchanged(self, number, &reply, findings);
        Ok(())
    }
}

/// When a grant is made from another: now, but not before that one, whose times are the gateway's clock's.
pub(in super::super) fn issued_below(context: &Context<'_>, above: &Value) -> Timestamp {
    let begun = ["not_before", "issued_at"].into_iter().find_map(|name| above[name].as_str()?.parse().ok());
    begun.map_or(context.now(), |begun: Timestamp| begun.max(context.now()))
}

impl Drop for Lived<'_> {
    fn drop(&mut self) {
        self.context.decided(&self.model);
    }
}

/// A grant that a grantee makes of its own for another: as its own, but for what the draft says.
fn child(context: &Context<'_>, parent: &Session, grantee: &Signer, draft: &Value) -> Result<Value, Failed> {
    let failed = |e: &dyn std::fmt::Display| Failed::Skipped(format!("a grant to pass on: {e}"));
    let now = context.now();
    let mut child = parent.grant.clone();
    if let Some(members) = child.as_object_mut() {
        for member in ["signature", "delegable", "status", "not_before"] {
            members.remove(member);
        }
        for (name, value) in draft.as_object().into_iter().flatten() {
            members.insert(name.clone(), value.clone());
        }
    }
    child["grant_id"] = json!(GrantId::new(now, context.random()));
    child["grantee"] = json!(grantee.did());
    child["issued_at"] = json!(issued_below(context, &parent.grant));
    child["parent"] = json!(Hash::of_canonical(&parent.grant).map_err(|e| failed(&e))?);
    let child: signed::Grant = strict::from_value(child).map_err(|e| failed(&e))?;
    let child = signed::SignedGrant::sign(child, &parent.grantee).map_err(|e| failed(&e))?;
    Ok(child.document().clone())
}
