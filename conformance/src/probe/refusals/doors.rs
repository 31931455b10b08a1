//! The endpoints that take a token: what is sent there, and what lets a request in.

use super::rules::{Door, TokenRule};
use super::scene::Scene;
use crate::probe::Failed;
use crate::probe::context::{Context, INVOKE, expect, mcp};
use crate::probe::declared::Place;
use crate::probe::wire::{Reply, Request};
use oap_identity::{RequestId, random};
use serde_json::{Value, json};

/// An item and a receipt that there are not.
const NO_ITEM: &str = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
const NO_RECEIPT: &str = "urn:oap:receipt:01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
/// A subscription that there is not.
pub(super) const NO_SUBSCRIPTION: &str = "sub_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";

/// Where grantees subscribe.
const SUBSCRIBE: &str = "/oap/memory/subscribe";

/// What a gateway offers or not, and has one or more doors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::probe) enum Family {
    /// Every one has it.
    Exchange,
    Subscriptions,
    Witnessed,
    Devices,
    Mcp,
}

impl Family {
    /// Its doors.
    pub(super) fn doors(self) -> Vec<Door> {
        Door::ALL.iter().copied().filter(|door| door.family() == self).collect()
    }

    /// That a gateway offers it: without a token it says that one is needed. What it does not offer is not there for anybody.
    pub(in crate::probe) async fn offered(self, context: &Context<'_>) -> Result<(), Failed> {
        let Some(door) = self.doors().first().copied() else { return Ok(()) };
        let path = door.path(context, NO_SUBSCRIPTION, None);
        let status = context.send(door.bare(context, path.clone(), None)?).await?.status;
        if self != Self::Exchange && is_absent(status) && !self.is_hidden(context, door, &path).await? {
            return Err(Failed::NotDeclared(format!("there is no {path}")));
        }
        expect(status == 401, || format!("{path} without a token: status {status} instead of 401"))
    }

    /// Whether there is something behind a door for whoever shows a token.
    async fn is_hidden(self, context: &Context<'_>, door: Door, path: &str) -> Result<bool, Failed> {
        if self != Self::Witnessed {
            let scene = Scene::set(context, false, false).await?;
            return Ok(!is_absent(scene.asked(context, door).await?.status));
        }
        // A receipt that there is not is 404 to everybody: but a token that is none is refused, where one is looked at.
        let word = context.word();
        let mut told = Vec::new();
        for path in [path.to_owned(), path.replace("witnessed", &word)] {
            let mut request = door.bare(context, path, None)?;
            request.headers.push(("authorization".to_owned(), format!("DPoP {word}")));
            told.push(context.send(request).await?.status);
        }
        Ok(told.first() != told.last())
    }
}

/// Whether a status says that there is nothing of the kind.
pub(super) fn is_absent(status: u16) -> bool {
    [404, 405].contains(&status)
}

/// What is said at a door, as a status and a code of protocol section 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) status: u16,
    pub(super) code: String,
}

impl Door {
    pub(super) const fn family(self) -> Family {
        match self {
            Self::Query | Self::Export | Self::Vector | Self::Log | Self::Invoke => Family::Exchange,
            Self::Subscribe | Self::EndSubscription | Self::Events => Family::Subscriptions,
            Self::Witnessed => Family::Witnessed,
            Self::Changes | Self::Changed => Family::Devices,
            Self::Mcp => Family::Mcp,
        }
    }

    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Query
            | Self::Export
            | Self::Invoke
            | Self::Subscribe
            | Self::EndSubscription
            | Self::Changes
            | Self::Changed
            | Self::Mcp => "POST",
            Self::Vector | Self::Log | Self::Events | Self::Witnessed => "GET",
        }
    }

    /// Its path: below it what there is not, but for events of a subscription and the vector of an item.
    pub(super) fn path(self, context: &Context<'_>, subscription: &str, item: Option<&str>) -> String {
        match self {
            Self::Query => context.at(Place::Query).to_owned(),
            Self::Export => context.at(Place::Export).to_owned(),
            Self::Vector => format!("/oap/memory/vec/{}", item.unwrap_or(NO_ITEM)),
            Self::Log => "/oap/audit".to_owned(),
            Self::Invoke => INVOKE.to_owned(),
            Self::Subscribe => SUBSCRIBE.to_owned(),
            Self::EndSubscription => format!("{SUBSCRIBE}/{NO_SUBSCRIPTION}/end"),
            Self::Events => format!("{SUBSCRIBE}/{subscription}/events"),
            Self::Witnessed => format!("/oap/memory/witnessed/{NO_RECEIPT}"),
            Self::Changes => "/oap/memory/changes".to_owned(),
            Self::Changed => "/oap/memory/changes/items".to_owned(),
            Self::Mcp => mcp::MCP.to_owned(),
        }
    }

    /// The status of a request that is let in. What a door is asked for that there is not is 404 to whoever has a token; what only the owner's
    /// own devices are told is 403.
    pub(super) fn let_in(self, scene: &Scene) -> u16 {
        let is_there = match self {
            Self::Vector => scene.vector.is_some(),
            Self::Events => scene.is_subscribed,
            Self::EndSubscription | Self::Witnessed => false,
            Self::Changes | Self::Changed => return 403,
            Self::Query | Self::Export | Self::Log | Self::Invoke | Self::Subscribe | Self::Mcp => true,
        };
        if is_there { 200 } else { 404 }
    }

    /// Whether a condition on tokens applies: whoever shows no token at all reads the public log, and nobody subscribes with a bearer token.
    pub(super) fn applies(self, rule: TokenRule, bearer: bool) -> bool {
        match self {
            Self::Log => rule != TokenRule::Present,
            Self::Subscribe => !bearer,
            _ => true,
        }
    }

    /// Sends a request; where it is waited for its proofs and its envelope are made anew, for their times are those of the request.
    pub(super) async fn send(
        self,
        context: &Context<'_>,
        scene: &Scene,
        authorization: &[String],
        proofs: impl Fn() -> Vec<String> + Send + Sync,
    ) -> Result<Reply, Failed> {
        let made = || self.request(context, scene, authorization, &proofs());
        if self == Self::Events { context.send_for_event(made).await } else { context.send_each(made).await }
    }

    /// What a reply says, whatever it is wrapped in here.
    pub(super) fn said(self, reply: &Reply) -> Said {
        let reply = if self == Self::Mcp { mcp::said(reply) } else { reply.clone() };
        Said::of(&reply)
    }

    fn request(
        self,
        context: &Context<'_>,
        scene: &Scene,
        authorization: &[String],
        proofs: &[String],
    ) -> Result<Request, Failed> {
        let path = self.path(context, &scene.subscription, scene.vector.as_deref());
        let mut request = self.bare(context, path, Some(scene))?;
        let all = [("authorization", authorization), ("dpop", proofs)];
        let headers = all
            .into_iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name.to_owned(), value.clone())));
        request.headers.extend(headers);
        Ok(request)
    }

    /// A request without a credential.
    fn bare(self, context: &Context<'_>, path: String, scene: Option<&Scene>) -> Result<Request, Failed> {
        let name = || RequestId::new(context.now(), context.random());
        let body: Option<Value> = match self {
            Self::Query | Self::EndSubscription => Some(json!({})),
            Self::Invoke => match scene {
                Some(scene) => Some(context.envelope(&scene.session.grantee, "memory.query", &json!({}))?),
                None => Some(json!({})),
            },
            Self::Subscribe => {
                let subscription = scene.map_or(NO_SUBSCRIPTION, |scene| scene.subscription.as_str());
                Some(json!({"subscription": subscription, "window": 3_600}))
            }
            Self::Changes => Some(json!({"request_id": name()})),
            Self::Changed => Some(json!({"items": [NO_ITEM], "request_id": name()})),
            Self::Mcp => return Ok(mcp::call(Vec::new(), "memory_query", &json!({}))),
            Self::Export | Self::Vector | Self::Log | Self::Events | Self::Witnessed => None,
        };
        let media = ("content-type".to_owned(), "application/oap+json".to_owned());
        let headers = body.iter().map(|_| media.clone()).collect();
        let body = body.map(|body| body.to_string().into_bytes());
        Ok(Request { method: self.method(), path, headers, body })
    }
}

impl Said {
    pub(super) fn of(reply: &Reply) -> Self {
        let body = reply.json();
        let error = &body["error"];
        let code = error.as_str().or_else(|| error["code"].as_str()).unwrap_or_default().to_owned();
        Self { status: reply.status, code }
    }
}

/// Which of these are brought by one of the ways by which the same is judged: all by the first one; by another every other one, dealt by the
/// run's seed, unless time costs none or the run is told to bring all.
pub(super) fn of_way<R: Copy>(
    context: &Context<'_>,
    all: &'static [R],
    is_first: bool,
) -> impl Iterator<Item = R> {
    let every = if is_first || context.asks_everywhere() { 1 } else { 2 };
    let [byte] = random::bytes::<1>(context.random());
    all.iter().copied().skip(usize::from(byte) % every).step_by(every)
}

/// Which of these are brought to each of so many doors: all to all where time costs none or the run is told to, and else as few as that each is brought somewhere,
/// and so many to each door at least, dealt by the run's seed.
pub(super) fn dealt<R: Copy>(context: &Context<'_>, all: &[R], doors: usize, least: usize) -> Vec<Vec<R>> {
    if context.asks_everywhere() || doors == 0 {
        return vec![all.to_vec(); doors];
    }
    let begin = u32::from_le_bytes(random::bytes(context.random())) as usize;
    let mut dealt = vec![Vec::new(); doors];
    for number in 0..least * doors {
        let rule = all.get((begin + number) % all.len().max(1));
        let hand = dealt.get_mut(number % doors);
        if let Some((hand, rule)) = hand.zip(rule) {
            hand.push(*rule);
        }
    }
    dealt
}
