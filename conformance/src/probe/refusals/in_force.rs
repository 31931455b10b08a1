//! Conditions on the grant that a token is for, brought to every door at which it is judged.

use super::children::child;
use super::doors::{Family, Said, dealt};
use super::queries::{Ground, Violation, violations};
use super::rules::{Condition, Door, ShownAt};
use super::scene::{Ahead, Scene, everything, noted};
use crate::model::rule::{Refusal, Rule};
use crate::probe::Failed;
use crate::probe::context::{Context, expect, mcp};
use oap_identity::Timestamp;
use oap_identity::signed::sign_document;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// A door where a grant is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// With a token.
    Token(Door),
    /// With a token, at `/mcp`, where one item is explained.
    Explained,
    /// With the grant or a proof.
    Shown(ShownAt),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl At {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token(door) => door.as_str(),
            Self::Explained => "memory_explain",
            Self::Shown(place) => place.as_str(),
        }
    }

    /// What is said of a grant there, and the state of it, where that is what is asked.
    async fn asked(self, context: &Context<'_>, scene: &Scene) -> Result<(Said, Option<String>), Failed> {
        Ok(match self {
            Self::Token(door) => (door.said(&scene.asked(context, door).await?), None),
            Self::Explained => {
                let of = json!({"item_id": scene.item});
                let reply = context.call(&scene.session, self.as_str(), &of).await?;
                (Said::of(&mcp::said(&reply)), None)
            }
            Self::Shown(place) => {
                let reply = place.asked(context, scene).await?;
                let state =
                    (place == ShownAt::State).then(|| reply.json()["state"].as_str().map(str::to_owned));
                (Said::of(&reply), state.flatten())
            }
        })
    }

    /// That it lets a grant in that is in force.
    async fn lets_in(self, context: &Context<'_>, scene: &Scene, what: &str) -> Result<(), Failed> {
        let (said, state) = self.asked(context, scene).await?;
        let must = match self {
            Self::Token(door) => door.let_in(scene),
            Self::Explained | Self::Shown(_) => 200,
        };
        expect(said.status == must && state.as_deref().is_none_or(|state| state == "active"), || {
            format!("{self}: {what}, before: status {}, must be {must}", said.status)
        })
    }

    /// That it refuses a grant for this, or says so where that is what is asked.
    async fn refuses(self, context: &Context<'_>, scene: &Scene, refusal: Refusal) -> Result<(), Failed> {
        let (said, state) = self.asked(context, scene).await?;
        if let Some(state) = state {
            let must = if refusal == Refusal::Expired { "expired" } else { "revoked" };
            expect(said.status == 200 && state == must, || {
                format!("{self}: {refusal}: is said to be {state}, must be {must}")
            })?;
        } else {
            let (codes, statuses) = refusal.form();
            let is_so = statuses.contains(&said.status) && codes.contains(&said.code.as_str());
            expect(is_so, || {
                format!(
                    "{self}: {refusal}: status {} with {:?}, must be one of {statuses:?} with one of {codes:?}",
                    said.status, said.code
                )
            })?;
        }
        context.note_at(&Condition::Refusal(refusal), self.as_str());
        Ok(())
    }
}

/// Whether it ends whatever the grant gives.
const fn is_over(ground: Ground) -> bool {
    matches!(ground, Ground::Revoked | Ground::AboveRevoked)
}

/// Whether a door asks for it. A subscription ends with its grant, and what ended is answered as what never was; and no grant of a probe's is a
/// device's.
fn is_asked(ground: Ground, door: Door, has_vectors: bool) -> bool {
    let is_budget = matches!(ground, Ground::Queries | Ground::Epsilon | Ground::Above);
    match door {
        Door::Query | Door::Invoke | Door::Mcp => {
            is_over(ground) || is_budget || ground == Ground::NotForQueries
        }
        Door::Export => is_over(ground) || is_budget || ground == Ground::NotForExports,
        // A vector that there is not costs nothing.
        Door::Vector => match ground {
            Ground::NotForQueries | Ground::NoEmbeddings => true,
            _ => is_over(ground) || (is_budget && has_vectors),
        },
        Door::Subscribe => is_over(ground) || ground == Ground::NotForQueries,
        Door::Log | Door::Events | Door::Witnessed => is_over(ground),
        Door::EndSubscription | Door::Changes | Door::Changed => false,
    }
}

/// The doors that are asked where time costs some.
const FEW: usize = 3;

/// What a gateway offers of what it need not.
struct Offer {
    families: Vec<Family>,
    subscriptions: bool,
}

impl Offer {
    async fn of(context: &Context<'_>) -> Result<Self, Failed> {
        let mut families = vec![Family::Exchange];
        for family in [Family::Subscriptions, Family::Witnessed, Family::Mcp] {
            match family.offered(context).await {
                Ok(()) => families.push(family),
                Err(Failed::NotDeclared(_)) => {}
                Err(other) => return Err(other),
            }
        }
        let subscriptions = families.contains(&Family::Subscriptions);
        Ok(Self { families, subscriptions })
    }

    /// The doors at which a grant is judged so; where time costs some, a few of them.
    fn doors(&self, context: &Context<'_>, ground: Ground) -> Vec<At> {
        let has_vectors = context.declared().embeddings;
        let is_there =
            |door: &Door| self.families.contains(&door.family()) && is_asked(ground, *door, has_vectors);
        let mut all: Vec<At> = Door::ALL.iter().copied().filter(is_there).map(At::Token).collect();
        all.extend(is_there(&Door::Mcp).then_some(At::Explained));
        if is_over(ground) {
            all.extend(ShownAt::ALL.iter().copied().map(At::Shown));
        }
        let few = FEW.min(all.len());
        dealt(context, &all, 1, few).into_iter().flatten().collect()
    }

    /// A grantee with a grant for everything, but for what is said of it.
    async fn scene(&self, context: &Context<'_>, more: impl FnOnce(&mut Value)) -> Result<Scene, Failed> {
        let (label, item) = noted(context).await?;
        let grantee = context.stranger();
        let mut draft = everything(context, &grantee, &label, self.subscriptions);
        more(&mut draft);
        let session = context.session(grantee, draft).await?;
        self.subscribed(context, Scene::of(context, session, Vec::new(), &item).await?).await
    }

    async fn subscribed(&self, context: &Context<'_>, mut scene: Scene) -> Result<Scene, Failed> {
        if self.subscriptions {
            scene.subscribe(context).await?;
        }
        Ok(scene)
    }

    /// A grantee with a delegable grant, and another one with a grant that was made from it.
    async fn delegated(
        &self,
        context: &Context<'_>,
        more: impl FnOnce(&mut Value),
        of_child: impl FnOnce(&mut Value),
    ) -> Result<(Scene, Scene), Failed> {
        let (label, item) = noted(context).await?;
        let grantee = context.stranger();
        let mut draft = everything(context, &grantee, &label, self.subscriptions);
        draft["delegable"] = json!({"max_depth": 1});
        more(&mut draft);
        let session = context.session(grantee, draft).await?;
        let above = Scene::of(context, session, Vec::new(), &item).await?;
        let grantee = context.stranger();
        let mut made = child(context, &above.session.grant, &grantee)?;
        of_child(&mut made);
        sign_document(&mut made, &above.session.grantee).map_err(|e| Failed::Skipped(e.to_string()))?;
        let chain = vec![above.session.grant.clone()];
        let (session, _) = context.session_below(grantee, made, &chain).await?;
        let below = self.subscribed(context, Scene::of(context, session, chain, &item).await?).await?;
        Ok((above, below))
    }
}

/// Every such condition, at every door where it is asked for.
pub(in super::super) async fn under_grants(context: &Context<'_>) -> Result<(), Failed> {
    let offer = Offer::of(context).await?;
    for refusal in Refusal::ALL.iter().copied() {
        let Violation::UnderGrant(_, ground) = violations(refusal) else { continue };
        let doors = offer.doors(context, ground);
        let scene = broken(context, &offer, ground, &doors).await?;
        for at in doors {
            at.refuses(context, &scene, refusal).await?;
        }
    }
    Ok(())
}

/// A grant that gives nothing at these doors any more, each of which let it in before, or another one that is right in this.
async fn broken(context: &Context<'_>, offer: &Offer, ground: Ground, doors: &[At]) -> Result<Scene, Failed> {
    let what = format!("{ground:?}");
    let asked = async |scene: &Scene| {
        for at in doors {
            at.lets_in(context, scene, &what).await?;
        }
        Ok::<(), Failed>(())
    };
    let revoke = async |scene: &Scene| {
        context.owner(json!({"do": "revoke", "grant_id": scene.session.grant["grant_id"]})).await.map(drop)
    };
    // One answer tells the gateway's clock, and each door gives one more.
    let answers = doors.len() as u64 + 1;
    match ground {
        Ground::Revoked => {
            let scene = offer.scene(context, |_| {}).await?;
            asked(&scene).await?;
            revoke(&scene).await?;
            Ok(scene)
        }
        Ground::AboveRevoked => {
            let (above, below) = offer.delegated(context, |_| {}, |_| {}).await?;
            asked(&below).await?;
            revoke(&above).await?;
            Ok(below)
        }
        Ground::NotForQueries | Ground::NotForExports | Ground::NoEmbeddings => {
            let right = offer.scene(context, |_| {}).await?;
            asked(&right).await?;
            let grantee = context.stranger();
            let mut draft = everything(context, &grantee, "l0", offer.subscriptions);
            let operations = draft["operations"].as_array().cloned().unwrap_or_default();
            let without =
                |name: &str| json!(operations.iter().filter(|one| **one != name).collect::<Vec<_>>());
            match ground {
                Ground::NotForQueries => draft["operations"] = without("query"),
                Ground::NotForExports => draft["operations"] = without("export"),
                _ => draft["embedding_access"] = json!(false),
            }
            let session = context.session(grantee, draft).await?;
            Ok(Scene { session, ..right })
        }
        Ground::Queries => {
            let scene = offer.scene(context, |draft| draft["budget"] = json!({"queries": answers})).await?;
            asked(&scene).await?;
            Ok(scene)
        }
        Ground::Epsilon => {
            // The first answer costs 0.01, each that has its item again 0.011, and what is left is less than either.
            let thousandths = 10 + 11 * (answers - 1) + 5;
            let epsilon = json!({"epsilon": thousandths as f64 / 1_000.0});
            let scene = offer.scene(context, |draft| draft["budget"] = epsilon).await?;
            asked(&scene).await?;
            Ok(scene)
        }
        Ground::Above => {
            // One more for the grantee above: of its own, the child has one left.
            let budget = json!({"queries": answers + 1});
            let (_, below) = offer.delegated(context, |draft| draft["budget"] = budget, |_| {}).await?;
            asked(&below).await?;
            Ok(below)
        }
    }
}

/// How long a grant lives that is to end, for each few doors that ask for it before; and how often one is tried.
const LIFE: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;

/// A grant just before its end and at it, at every door; and one that was made from another and ends before that does.
pub(in super::super) async fn ending(context: &Context<'_>) -> Result<(), Failed> {
    let refusal = Refusal::Expired;
    let offer = Offer::of(context).await?;
    let doors = offer.doors(context, Ground::Revoked);
    let life = LIFE * u32::try_from(doors.len().div_ceil(FEW)).unwrap_or(1);
    let other = context.granted(&context.word(), 2).await?;
    for tried in 1..=TRIES {
        let ahead = Ahead::told(context, &other).await?;
        // A token ends with a second: with the one that the grant ends with.
        let end = Timestamp::from_seconds(ahead.latest(context).seconds() + 1).plus(life);
        let set = async {
            let scene = offer.scene(context, |draft| draft["expires_at"] = json!(end)).await?;
            let (_, below) =
                offer.delegated(context, |_| {}, |child| child["expires_at"] = json!(end)).await?;
            if scene.ahead.is_exact(context) {
                scene.ahead.before(context, Timestamp::from_millis(end.millis() - 1)).await?;
            }
            for at in &doors {
                at.lets_in(context, &scene, &refusal.to_string()).await?;
                at.lets_in(context, &below, "a child's own end").await?;
            }
            Ok([scene, below])
        };
        let scenes = match set.await {
            // A gateway that had to be waited for meanwhile has ended it.
            Err(Failed::Wrong(why)) if ahead.latest(context) >= end => {
                if tried < TRIES {
                    continue;
                }
                return Err(Failed::Skipped(format!("a grant has ended before its doors were asked: {why}")));
            }
            set => set?,
        };
        if !scenes[0].ahead.after(context, end).await? {
            context.wait(life + Duration::from_secs(1)).await?;
        }
        for at in doors {
            for scene in &scenes {
                at.refuses(context, scene, refusal).await?;
            }
        }
        context.note(&Rule::Refusal(refusal));
        return Ok(());
    }
    Ok(())
}
