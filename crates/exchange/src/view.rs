//! A grant is a view (protocol section 0):
//!
//! ```text
//! View(grant) = cap( project( gate( select(store, grant.filter) ), profile, trust_level ), max_items )
//! ```
//!
//! [`View::build`] alone sees whole items. Everything that answers a grantee works on the view it made.

use crate::allowance::Allowance;
use crate::gate::{Gate, Report};
use crate::rank::{Document, Index};
use crate::vector::Vector;
use oap_identity::json::{self, JsonError, canonical_text};
use oap_identity::{Hash, ItemId, ScopeId, Timestamp};
use oap_memory::commitment::CommitmentError;
use oap_memory::epistemic::{self, Epistemic};
use oap_memory::project::project;
use oap_memory::record::{Head, Whole};
use oap_memory::text::Language;
use oap_memory::{Confidence, Filter, Kind, Profile, TrustLevel};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a grant asks for, as far as a view depends on it.
#[derive(Debug, Clone)]
pub struct Terms<'a> {
    /// What is selected.
    pub filter: &'a Filter,
    /// The scope of a filter that names none.
    pub scope: &'a ScopeId,
    /// What is shown.
    pub profile: &'a Profile,
    /// To whom.
    pub level: TrustLevel,
    /// Whether the grantee is one of the owner's own agents.
    pub own_agent: bool,
    /// What was disclosed already, and how much may be.
    pub allowance: &'a Allowance,
    /// Whether embeddings are shown.
    pub embeddings: bool,
    /// The model of embeddings, where one is set up.
    pub model: Option<&'a Model<'a>>,
    /// The gateway's belief threshold.
    pub belief_threshold: Confidence,
    /// The two gates.
    pub gate: &'a Gate,
    /// How words are matched.
    pub language: Language,
    /// The gateway's clock.
    pub now: Timestamp,
}

/// A model of embeddings, as far as a view needs it.
pub struct Model<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many dimensions its vectors have.
    pub dimensions: usize,
    /// Where the vector of an item is served, up to its id.
    pub url: &'a str,
    /// The vectors of texts, all visible ones, in their order; `None` while the model is out of reach.
    pub embed: &'a dyn Fn(Vec<String>) -> Option<Vec<Vector>>,
}

impl std::fmt::Debug for Model<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Model").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long a view goes without vectors before the model is asked again.
const RETRY: Duration = Duration::from_secs(60);

/// Why a view could not be built.
#[derive(Debug, thiserror::Error)]
pub enum ViewError<E> {
    /// The store failed.
    #[error(transparent)]
    Store(E),
    /// A stored version is not what was committed.
    #[error("item {0}: {1}")]
    Commitment(ItemId, CommitmentError),
    /// A stored document has no canonical form.
    #[error(transparent)]
    Json(#[from] JsonError),
}

/// One item of a view: what its grantee sees of it, written out.
#[derive(Debug, Clone)]
pub struct ViewItem {
    pub(crate) id: ItemId,
    pub(crate) seq: u32,
    pub(crate) commitment: Hash,
    pub(crate) kind: Option<Kind>,
    pub(crate) labels: Vec<String>,
    pub(crate) confidence: Option<Confidence>,
    pub(crate) captured_at: Timestamp,
    /// The members before `integrity`, between it and `relevance`, and after, in canonical order.
    pub(crate) members: [Box<str>; 3],
    /// `"capture_receipt":…,"chain":…`.
    pub(crate) chain: Box<str>,
    pub(crate) sd_jwt: Box<str>,
}

impl ViewItem {
    /// The item.
    #[must_use]
    pub const fn id(&self) -> ItemId {
        self.id
    }

    /// The number of the last link of its chain: what is shown of it is in force until another follows.
    #[must_use]
    pub const fn last_link(&self) -> u32 {
        self.seq
    }

    /// About so many bytes of an answer.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.iter().map(|members| members.len()).sum::<usize>() + self.chain.len() + self.sd_jwt.len()
    }

    /// The commitment of the version in force.
    #[must_use]
    pub const fn commitment(&self) -> Hash {
        self.commitment
    }

    /// The kind, where the profile shows it.
    #[must_use]
    pub const fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The item as its grantee sees it, without proof and relevance.
    ///
    /// # Errors
    /// Never in practice: the members were written by this module.
    pub fn visible(&self) -> Result<Value, JsonError> {
        let parts: Vec<&str> = self.members.iter().map(|part| &**part).filter(|p| !p.is_empty()).collect();
        json::parse(format!("{{{}}}", parts.join(",")).as_bytes())
    }
}

/// All that a grantee can learn under one grant.
#[derive(Debug)]
pub struct View {
    items: Vec<ViewItem>,
    members: BTreeSet<ItemId>,
    index: Index,
    /// One for each item, or none at all.
    vectors: Vec<Vector>,
    shows_vectors: bool,
    exhausted: Vec<bool>,
    ends: Option<Timestamp>,
    bytes: usize,
}

impl View {
    /// Selects, passes the gates, projects and caps. Items are loaded only when they passed; one that `load` finds no
    /// more was erased meanwhile, and is in no view. Beside the view it says what the gates decided, which is for the
    /// owner alone.
    ///
    /// # Errors
    /// [`ViewError`]; a view that cannot be built whole is not built.
    pub fn build<'h, E>(
        terms: &Terms,
        heads: impl Iterator<Item = &'h Head>,
        mut load: impl FnMut(&Head) -> Result<Option<Whole>, E>,
    ) -> Result<(Self, Report), ViewError<E>> {
        let selected = heads
            .filter(|head| terms.filter.admits(head, terms.scope, terms.own_agent, terms.now))
            .filter(|head| terms.allowance.admits(head.item_id));
        let (mut selected, report) = terms.gate.pass(selected);
        selected.sort_by_key(|head| head.item_id);
        let mut items = Vec::with_capacity(selected.len());
        let mut texts = Vec::with_capacity(selected.len());
        for head in &selected {
            let Some(whole) = load(head).map_err(ViewError::Store)? else { continue };
            let (item, text) = show(head, &whole, terms)?;
            items.push(item);
            texts.push(text);
        }
        let documents: Vec<Document> = items
            .iter()
            .zip(&texts)
            .map(|(item, text)| Document {
                text,
                kind: item.kind.unwrap_or(Kind::Fact),
                captured_at: item.captured_at,
            })
            .collect();
        let index = Index::build(&documents, terms.language);
        let embedded = terms.model.map(|model| (model.embed)(texts));
        let unreachable = matches!(embedded, Some(None)).then(|| terms.now.plus(RETRY));
        let vectors = embedded.flatten().filter(|v| v.len() == items.len()).unwrap_or_default();
        let shows_vectors = terms.embeddings && terms.profile.shows_embedding(terms.level);
        if let Some(model) = terms.model.filter(|_| shows_vectors && !vectors.is_empty()) {
            items.iter_mut().try_for_each(|item| item.refer(model))?;
        }
        let ends = selected.iter().filter_map(|head| head.end_of_life);
        let ends = ends.chain(terms.gate.ends()).chain(unreachable).min();
        let view = Self {
            members: items.iter().map(|item| item.id).collect(),
            bytes: items.iter().map(ViewItem::bytes).sum::<usize>()
                + index.bytes()
                + vectors.iter().map(Vector::bytes).sum::<usize>(),
            items,
            index,
            vectors,
            shows_vectors,
            exhausted: terms.allowance.exhausted(),
            ends,
        };
        Ok((view, report))
    }

    /// The items, in the order of their ids.
    #[must_use]
    pub fn items(&self) -> &[ViewItem] {
        &self.items
    }

    /// Whether the item is in the view.
    #[must_use]
    pub fn contains(&self, item: ItemId) -> bool {
        self.members.contains(&item)
    }

    /// When the first of its items expires or a gate may decide otherwise: the view must not be used from then on.
    #[must_use]
    pub const fn ends(&self) -> Option<Timestamp> {
        self.ends
    }

    /// How much memory it takes, in bytes: items, index and vectors, about.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Which grants had no more to give when it was built: under those it holds only what was disclosed before. A view
    /// that was built before that came to be is to be built again.
    #[must_use]
    pub fn exhausted(&self) -> &[bool] {
        &self.exhausted
    }

    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }

    /// The vectors of the items, in their order; none without a model.
    #[must_use]
    pub fn vectors(&self) -> &[Vector] {
        &self.vectors
    }

    /// The vector of an item, where the grantee may see it.
    #[must_use]
    pub fn vector(&self, item: ItemId) -> Option<&Vector> {
        let place = self.items.binary_search_by_key(&item, |item| item.id).ok()?;
        self.vectors.get(place).filter(|_| self.shows_vectors)
    }

    /// An item of the view.
    #[must_use]
    pub fn item(&self, item: ItemId) -> Option<&ViewItem> {
        self.items.binary_search_by_key(&item, |item| item.id).ok().map(|place| &self.items[place])
    }
}

impl ViewItem {
    /// The item as its grantee sees it, with its proof, as it stands in a bundle.
    ///
    /// # Errors
    /// Never in practice: the members were written by this module.
    pub fn proved(&self) -> Result<Value, JsonError> {
        let mut item = self.visible()?;
        item["integrity"] =
            json::parse(format!(r#"{{{},"sd_jwt":"{}"}}"#, self.chain, self.sd_jwt).as_bytes())?;
        Ok(item)
    }

    /// Adds where the item's vector is. `embedding_ref` sorts between `content` and `epistemic`, all before
    /// `integrity`.
    fn refer<E>(&mut self, model: &Model) -> Result<(), ViewError<E>> {
        let reference = json!({
            "model": model.name, "dimensions": model.dimensions,
            "vector_url": format!("{}{}", model.url, self.id),
        });
        let before = json::parse(format!("{{{}}}", self.members[0]).as_bytes())?;
        let mut members: BTreeMap<String, Value> =
            before.as_object().cloned().unwrap_or_default().into_iter().collect();
        members.insert("embedding_ref".to_owned(), reference);
        let all = canonical_text(&members)?;
        self.members[0] = all[1..all.len() - 1].into();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.members.iter().map(|part| part.len()).sum::<usize>() + self.chain.len() + self.sd_jwt.len() + 200
    }
}

/// What a grantee sees of an item: written out, and as text to match.
fn show<E>(head: &Head, whole: &Whole, terms: &Terms) -> Result<(ViewItem, String), ViewError<E>> {
    let wrong = |e| ViewError::Commitment(head.item_id, e);
    let projected = project(&whole.committed, terms.profile, terms.level, terms.embeddings).map_err(wrong)?;
    let visible = projected.item();
    let attitude = epistemic::classify(head.confidence, head.meta.human_verified, terms.belief_threshold);
    let item = ViewItem {
        id: head.item_id,
        seq: head.seq,
        commitment: whole.committed.commitment(),
        kind: visible.get("kind").and_then(Value::as_str).and_then(|kind| kind.parse().ok()),
        labels: strings(visible.get("labels")),
        confidence: visible
            .get("provenance")
            .and_then(|p| p.get("confidence"))
            .and_then(Value::as_f64)
            .and_then(|c| c.try_into().ok()),
        captured_at: visible
            .get("provenance")
            .and_then(|p| p.get("captured_at"))
            .and_then(Value::as_str)
            .and_then(|at| at.parse().ok())
            .unwrap_or(Timestamp::from_millis(0)),
        members: members(visible, attitude)?,
        chain: chain(whole),
        sd_jwt: projected.sd_jwt(&whole.committed).into(),
    };
    Ok((item, visible_text(visible)))
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let texts = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    texts.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// The item's members in canonical order, in three parts: `integrity` and `relevance` go between them.
fn members(visible: &Map<String, Value>, attitude: Epistemic) -> Result<[Box<str>; 3], JsonError> {
    let attitude = Value::from(attitude.as_str());
    let mut all: BTreeMap<&str, &Value> =
        visible.iter().map(|(name, value)| (name.as_str(), value)).collect();
    all.insert("epistemic", &attitude);
    let mut parts = [String::new(), String::new(), String::new()];
    for (name, value) in all {
        let part = match name {
            n if n < "integrity" => &mut parts[0],
            n if n < "relevance" => &mut parts[1],
            _ => &mut parts[2],
        };
        if !part.is_empty() {
            part.push(',');
        }
        part.push_str(&canonical_text(&name)?);
        part.push(':');
        part.push_str(&canonical_text(value)?);
    }
    Ok(parts.map(String::into_boxed_str))
}

fn chain(whole: &Whole) -> Box<str> {
    format!(r#""capture_receipt":{},"chain":[{}]"#, whole.capture_receipt, whole.chain.join(",")).into()
}

/// Everything visible as a string: text, labels, subject, structured leaves (protocol section 0).
#[must_use]
pub fn visible_text(visible: &Map<String, Value>) -> String {
    let mut text = String::new();
    for name in ["content", "labels", "subject_entity_id"] {
        if let Some(value) = visible.get(name) {
            leaves(value, &mut text);
        }
    }
    text
}

fn leaves(value: &Value, text: &mut String) {
    match value {
        Value::String(leaf) => {
            text.push_str(leaf);
            text.push('\n');
        }
        Value::Number(leaf) => {
            text.push_str(&leaf.to_string());
            text.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|v| leaves(v, text)),
        Value::Object(map) => map.values().for_each(|v| leaves(v, text)),
        Value::Bool(_) | Value::Null => {}
    }
}
