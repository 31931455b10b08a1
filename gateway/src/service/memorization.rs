//! The memorization audit (RFC 0010 A.11; Carlini et al., "The Secret Sharer", USENIX Security 2019).
//!
//! Canaries, random personal data of the classes that a profile hides, are planted in a throw-away gateway with
//! this one's profiles and model of embeddings. Then each derived artefact that a grantee could get hold of is asked
//! how well it ranks the planted canary among [`CANDIDATES`] that could have been planted as well:
//! *exposure* = log2(candidates) - log2(rank), ties in the middle. What has not seen the canary ranks it anywhere: its
//! exposure is 1.44 bits on average. An artefact passes when its mean exposure stays within four standard errors
//! of that.
//!
//! The artefacts: the projected text with spans hidden (*detector output*), the index that queries are matched
//! with, and the embeddings where a model is set up. This gateway makes no summaries.

use crate::api::Document;
use crate::api::audit::Memorization as Report;
use crate::embedding::Embeddings;
use crate::error::{Error, Unavailable};
use crate::service::{Items, Memorization};
use crate::state::commits::chain_of;
use crate::state::gateway::{Gateway, Parts};
use crate::state::jobs::Progress;
use crate::state::keyring::StoredKeys;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::owner::{Acting, Owner};
use crate::state::schema::MEMORIZATION;
use crate::system::config::Config;
use data_encoding::HEXLOWER;
use oap_exchange::Preview;
use oap_grants::{Grant, LawfulBasis, Operation};
use oap_identity::{GrantId, Hash, Random, ScopedDid, random};
use oap_memory::detect::SpanClass;
use oap_memory::receipt::Action;
use oap_memory::{Filter, Profile, TrustLevel};
use oap_store::Store;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Canaries of each class.
const CANARIES: usize = 8;
/// Values that are ranked for each canary, itself among them.
const CANDIDATES: usize = 64;
/// Mean and standard deviation of the exposure of what was never seen, in bits: -log2 of a uniform number.
const CHANCE: f64 = std::f64::consts::LOG2_E;
/// The classes that canaries are made of.
const CLASSES: [SpanClass; 3] = [SpanClass::Secret, SpanClass::Email, SpanClass::Phone];

/// A planted value and those that might have been.
struct Canary {
    class: SpanClass,
    name: &'static str,
    /// The planted one first.
    values: Vec<String>,
}

const NAMES: [&str; CANARIES] = ["amber", "basalt", "cobalt", "dune", "ember", "fjord", "garnet", "harbour"];

impl Canary {
    fn new(class: SpanClass, name: &'static str, random: &dyn Random) -> Self {
        let mut values = BTreeSet::new();
        while values.len() < CANDIDATES {
            let bytes: [u8; 12] = random::bytes(random);
            values.insert(match class {
                SpanClass::Email => {
                    let letters = bytes.map(|b| char::from(b'a' + b % 26));
                    format!("{}@mail.example", letters.iter().collect::<String>())
                }
                SpanClass::Phone => {
                    format!(
                        "+49 30 {}",
                        bytes[..8].iter().map(|b| char::from(b'2' + b % 8)).collect::<String>()
                    )
                }
                _ => HEXLOWER.encode(&bytes),
            });
        }
        // The set is sorted; the planted one is any of them.
        let mut values: Vec<String> = values.into_iter().collect();
        let [place] = random::bytes::<1>(random);
        values.swap(0, usize::from(place) % CANDIDATES);
        Self { class, name, values }
    }

    /// The sentence with one of the values.
    fn sentence(&self, value: &str) -> String {
        let name = self.name;
        match self.class {
            SpanClass::Email => format!("The contact of project {name} is {value} for questions"),
            SpanClass::Phone => format!("The number of project {name} is {value} for questions"),
            _ => format!("For project {name} the password: {value}"),
        }
    }

    fn label(&self) -> String {
        format!("{}_{}", self.class, self.name)
    }
}

/// The exposure of the first of the scores, in bits; ties in the middle.
fn exposure(scores: &[f64]) -> f64 {
    let (mine, others) = (scores[0], &scores[1..]);
    let better = others.iter().filter(|score| **score > mine).count() as f64;
    let alike = others.iter().filter(|score| **score == mine).count() as f64;
    (scores.len() as f64).log2() - (1.0 + better + alike / 2.0).log2()
}

/// The exposures that one artefact had under one profile and level.
#[derive(Default)]
struct Artefact(Vec<f64>);

impl Artefact {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    fn bound(&self) -> f64 {
        CHANCE + 4.0 * CHANCE / (self.0.len().max(1) as f64).sqrt()
    }

    fn report(&self, artefact: &str, profile: &Profile, level: TrustLevel) -> Value {
        let round = |bits: f64| (bits * 1000.0).round() / 1000.0;
        json!({
            "artefact": artefact, "profile": profile.name(), "trust_level": level, "canaries": self.0.len(),
            "mean_exposure_bits": round(self.mean()), "bound_bits": round(self.bound()),
            "max_exposure_bits": round(self.0.iter().copied().fold(0.0, f64::max)),
            "passed": self.mean() <= self.bound(),
        })
    }
}

impl Memorization<'_> {
    /// Runs the audit, stores its result and declares it in the manifest; the whole report.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the model of embeddings is out of reach, [`Error::Cancelled`]: half an audit declares nothing.
    pub async fn audit_memorization(
        self,
        owner: &Owner<impl Permits<Admin>>,
        progress: &Progress,
    ) -> Result<Document<Report>, Error> {
        let random = &*self.0.random;
        let canaries: Vec<Canary> =
            CLASSES.iter().flat_map(|class| NAMES.map(|name| Canary::new(*class, name, random))).collect();
        progress.expect(canaries.len());
        let scratch = self.scratch().await?;
        for canary in &canaries {
            let text = canary.sentence(&canary.values[0]);
            let item = json!({"kind": "fact", "content": {"text": text}, "labels": [canary.label()]});
            Items(&scratch).capture_for(Acting::House, &[item]).await?;
            progress.step()?;
        }
        let mut artefacts = Vec::new();
        for profile in &self.0.profiles {
            for level in TrustLevel::all().filter(|level| *level >= profile.minimum_level()) {
                let text = profile.general_table().text(level);
                let hidden: Vec<&Canary> =
                    canaries.iter().filter(|canary| !text.shows(canary.class)).collect();
                if !hidden.is_empty() {
                    progress.expect(1);
                    let found = self.expose(&scratch, profile, level, &hidden).await?;
                    artefacts.extend(found.iter().map(|(name, a)| a.report(name, profile, level)));
                    progress.step()?;
                }
            }
        }
        Ok(Document::read(self.declare(owner, artefacts).await?)?)
    }

    /// A gateway in memory with this one's profiles; it answers nobody.
    async fn scratch(self) -> Result<Arc<Gateway>, Error> {
        let store = Store::in_memory(self.0.random.clone())?;
        Gateway::init(&store, &StoredKeys::generate(&*self.0.random, self.0.clock.now())).await?;
        // Boxed: a gateway that opens another one.
        Box::pin(Gateway::open(Parts {
            config: Config { did: Some(self.0.principal.clone()), ..Config::default() },
            principal: self.0.principal.clone(),
            store,
            clock: self.0.clock.clone(),
            random: self.0.random.clone(),
            resolver: self.0.resolver.clone(),
            profiles: self.0.profiles.clone(),
            sanctions: BTreeMap::new(),
            embeddings: None,
            erasures: None,
            home: None,
        }))
        .await
    }

    async fn expose(
        self,
        scratch: &Arc<Gateway>,
        profile: &Profile,
        level: TrustLevel,
        canaries: &[&Canary],
    ) -> Result<BTreeMap<&'static str, Artefact>, Error> {
        let grant = Memorization(scratch).open_grant(profile, level);
        let shown = scratch.would_show(&grant)?;
        let mut found: BTreeMap<&'static str, Artefact> = BTreeMap::new();
        let mut note = |artefact, exposure| found.entry(artefact).or_default().0.push(exposure);
        for canary in canaries {
            let text = visible_text(&Memorization(scratch).labelled_item(&canary.label())?, &shown)?;
            let scores: Vec<f64> =
                canary.values.iter().map(|v| f64::from(u8::from(text.contains(v.as_str())))).collect();
            note("detector_output", exposure(&scores));
            let scores = canary.values.iter().map(|value| shown.matching(value) as f64);
            note("index", exposure(&scores.collect::<Vec<_>>()));
            if let Some(embeddings) = self.0.embeddings.as_ref().filter(|_| !text.is_empty()) {
                note("embeddings", exposure(&nearness(embeddings, canary, text).await?));
            }
        }
        Ok(found)
    }

    /// The item with a label.
    fn labelled_item(self, label: &str) -> Result<oap_identity::ItemId, Error> {
        let heads = self.0.heads.all();
        let head = heads.iter().find(|head| head.labels.iter().any(|l| l == label));
        head.map(|head| head.item_id).ok_or(Error::NotFound)
    }

    /// A grant over everything; never signed.
    fn open_grant(self, profile: &Profile, level: TrustLevel) -> Grant {
        let now = self.0.clock.now();
        Grant {
            version: 1,
            grant_id: GrantId::new(now, &*self.0.random),
            granter: ScopedDid {
                principal: self.0.principal.clone(),
                scope: self.0.config.default_scope.clone(),
            },
            grantee: self.0.principal.clone(),
            purpose: "memorization audit".to_owned(),
            purpose_codes: Vec::new(),
            filter: Filter::default(),
            max_items: 10_000,
            issued_at: now,
            not_before: None,
            expires_at: now.plus(Duration::from_secs(3600)),
            revocable: true,
            redaction_profile: profile.name().to_owned(),
            trust_level: level,
            lawful_basis: LawfulBasis::Consent,
            operations: BTreeSet::from([Operation::Query]),
            embedding_access: true,
            delegable: None,
            parent: None,
            budget: None,
            bearer: false,
            status: None,
        }
    }

    async fn declare(
        self,
        owner: &Owner<impl Permits<Admin>>,
        artefacts: Vec<Value>,
    ) -> Result<Value, Error> {
        let passed = artefacts.iter().all(|artefact| artefact["passed"] == true);
        let worst: BTreeMap<&str, f64> = artefacts.iter().fold(BTreeMap::new(), |mut worst, artefact| {
            let bits = artefact["mean_exposure_bits"].as_f64().unwrap_or(f64::MAX);
            let entry = worst.entry(artefact["artefact"].as_str().unwrap_or_default()).or_insert(0.0);
            *entry = f64::max(*entry, bits);
            worst
        });
        let declared = json!({
            "status": if passed { "passed" } else { "failed" },
            "performed_at": self.0.clock.now(),
            "method": "canary exposure (Carlini et al. 2019)",
            "canaries": CLASSES.len() * CANARIES,
            "candidates": CANDIDATES,
            "worst_mean_exposure_bits": worst,
            "exposure_of_the_unseen_bits": (CHANCE * 1000.0).round() / 1000.0,
            "model": self.0.embeddings.as_ref().map(|e| e.model().name()),
            "summaries": "none are made",
        });
        let bytes = oap_identity::json::canonical(&declared)?;
        let gateway = self.0.clone();
        self.0
            .commit_as(owner, move |w| {
                MEMORIZATION.put(w.tx, &bytes)?;
                let publishing = gateway.clone();
                w.tx.on_commit(move || publishing.publish());
                let mut draft = gateway.draft(Action::AuditMemorization, gateway.principal.as_str());
                draft.rules = vec!["principal".to_owned()];
                draft.output_hash = Some(Hash::of(&bytes));
                w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
                Ok(())
            })
            .await?;
        let mut report = declared;
        report["artefacts"] = json!(artefacts);
        Ok(report)
    }
}

/// How near each candidate's sentence is to what is visible of the canary's item.
async fn nearness(embeddings: &Embeddings, canary: &Canary, text: String) -> Result<Vec<f64>, Error> {
    let sentences = canary.values.iter().map(|value| canary.sentence(value));
    let texts: Vec<String> = std::iter::once(text).chain(sentences).collect();
    let space = Hash::of(b"memorization audit");
    let vectors = embeddings.of(space, texts).await.map_err(|error| {
        tracing::warn!(%error, "the memorization audit needs the model of embeddings");
        Error::Unavailable(Unavailable::Model)
    })?;
    let (visible, candidates) = vectors.split_first().ok_or(Error::NotFound)?;
    Ok(candidates.iter().map(|candidate| f64::from(candidate.cosine(visible))).collect())
}

fn visible_text(item: &oap_identity::ItemId, shown: &Preview) -> Result<String, Error> {
    let visible = shown.item(*item).ok_or(Error::NotFound)?.visible()?;
    Ok(visible.pointer("/content/text").and_then(Value::as_str).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exposure_is_the_information_in_the_rank() {
        let first = [vec![1.0], vec![0.0; 63]].concat();
        assert_eq!(exposure(&first), 6.0);
        let last = [vec![0.0], vec![1.0; 63]].concat();
        assert_eq!(exposure(&last), 0.0);
        assert!(exposure(&[0.5; 64]) < 1.0, "what tells nothing");
    }
}
