//! From all items to those of one grant, projected: what a view and a preview are made of alike.

use crate::allowance::Allowance;
use crate::gate::{Destination, Gate, Obligations, Report};
use crate::item::{Showing, ViewItem, show};
use crate::rank::{Document, Index};
use crate::vector::Vector;
use oap_grants::limits::{LimitError, check_profile};
use oap_grants::{Grant, VerifiedGrant};
use oap_identity::json::JsonError;
use oap_identity::{Did, Hash, ItemId, Timestamp};
use oap_memory::commitment::CommitmentError;
use oap_memory::record::{Head, Whole};
use oap_memory::text::Language;
use oap_memory::{Confidence, Kind, Profile};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a view rests on beside its grant: what is the gateway's own.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// The profiles that are set up: the one that the grant names is applied.
    pub profiles: &'a [Profile],
    /// What the owner owes, and the bridges that hold.
    pub obligations: Obligations,
    /// Whether the owner consented to this very grant.
    pub consented: bool,
    /// Whether embeddings are asked for. They are shown where grant and profile give them, too.
    pub embeddings: bool,
    /// The model of embeddings, where one is set up.
    pub model: Option<&'a Model<'a>>,
    /// The gateway's belief threshold.
    pub belief_threshold: Confidence,
    /// How words are matched.
    pub language: Language,
    /// The gateway's clock.
    pub now: Timestamp,
}

/// A model of embeddings, as far as a view needs it.
#[allow(missing_docs, reason = "the names say it")]
pub struct Model<'a> {
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
    /// The profile that the grant names is not there, or needs a higher level.
    #[error(transparent)]
    Profile(#[from] LimitError),
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

/// A grant, and those through whose hands it came.
pub(crate) struct Terms<'a> {
    grant: &'a Grant,
    /// Its grantee first.
    grantees: Vec<Did>,
    /// Whether it is one of the owner's own agents, and nobody else stands between.
    own_agent: bool,
}

impl<'a> Terms<'a> {
    pub(crate) fn verified(grant: &'a VerifiedGrant) -> Self {
        Self {
            grant: grant.grant(),
            grantees: grant.grantees().cloned().collect(),
            own_agent: grant.is_own_agent(),
        }
    }

    /// Of a grant that its owner thinks of giving.
    pub(crate) fn proposed(grant: &'a Grant) -> Self {
        let own_agent = grant.grantee == grant.granter.principal;
        Self { grant, grantees: vec![grant.grantee.clone()], own_agent }
    }
}

/// The profile that was applied.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub(crate) name: String,
    pub(crate) hash: Hash,
    pub(crate) redacted_field_count: usize,
}

/// The items of one grant.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) items: Vec<ViewItem>,
    members: BTreeSet<ItemId>,
    pub(crate) index: Index,
    /// One for each item, or none at all.
    pub(crate) vectors: Vec<Vector>,
    pub(crate) shows_vectors: bool,
    pub(crate) exhausted: Vec<bool>,
    pub(crate) ends: Option<Timestamp>,
    pub(crate) bytes: usize,
    pub(crate) gate: Gate,
    pub(crate) applied: Applied,
}

impl Slice {
    /// Selects, passes the gates, projects and caps. Items are loaded only when they passed; one that `load` finds no
    /// more was erased meanwhile, and is in no view.
    pub(crate) fn build<'h, E>(
        terms: Terms,
        allowance: &Allowance,
        setting: &Setting,
        heads: impl Iterator<Item = &'h Head>,
        mut load: impl FnMut(&Head) -> Result<Option<Whole>, E>,
    ) -> Result<(Self, Report), ViewError<E>> {
        let Terms { grant, grantees, own_agent } = terms;
        let named = setting.profiles.iter().find(|profile| profile.name() == grant.redaction_profile);
        let profile = check_profile(grant, named)?;
        let level = grant.trust_level;
        let destination = Destination {
            grantees,
            own_agent,
            scope: grant.granter.scope.clone(),
            consented: setting.consented,
            anonymous: profile.is_anonymous(level),
            shows_subject: profile.shows_subject(level),
        };
        let gate = Gate::new(setting.obligations.clone(), destination, setting.now);
        let selected = heads
            .filter(|head| grant.filter.admits(head, &grant.granter.scope, own_agent, setting.now))
            .filter(|head| allowance.admits(head.item_id));
        let (mut selected, report) = gate.pass(selected);
        selected.sort_by_key(|head| head.item_id);
        let embeddings = setting.embeddings && grant.embedding_access;
        let by = Showing { profile, level, embeddings, belief_threshold: setting.belief_threshold };
        let mut items = Vec::with_capacity(selected.len());
        let mut texts = Vec::with_capacity(selected.len());
        for head in &selected {
            let Some(whole) = load(head).map_err(ViewError::Store)? else { continue };
            let (item, text) = show(head, &whole, by)?;
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
        let index = Index::build(&documents, setting.language);
        let embedded = setting.model.map(|model| (model.embed)(texts));
        let unreachable = matches!(embedded, Some(None)).then(|| setting.now.plus(RETRY));
        let vectors = embedded.flatten().filter(|v| v.len() == items.len()).unwrap_or_default();
        let shows_vectors = embeddings && profile.shows_embedding(level);
        if let Some(model) = setting.model.filter(|_| shows_vectors && !vectors.is_empty()) {
            items.iter_mut().try_for_each(|item| item.refer(model))?;
        }
        let ends = selected.iter().filter_map(|head| head.end_of_life);
        let ends = ends.chain(gate.ends()).chain(unreachable).min();
        let slice = Self {
            members: items.iter().map(|item| item.id).collect(),
            bytes: items.iter().map(ViewItem::bytes).sum::<usize>()
                + index.bytes()
                + vectors.iter().map(Vector::bytes).sum::<usize>(),
            items,
            index,
            vectors,
            shows_vectors,
            exhausted: allowance.exhausted(),
            ends,
            gate,
            applied: Applied {
                name: profile.name().to_owned(),
                hash: profile.hash(),
                redacted_field_count: profile.redacted_field_count(level),
            },
        };
        Ok((slice, report))
    }

    pub(crate) fn contains(&self, item: ItemId) -> bool {
        self.members.contains(&item)
    }

    fn place(&self, item: ItemId) -> Option<usize> {
        self.items.binary_search_by_key(&item, |item| item.id).ok()
    }

    pub(crate) fn item(&self, item: ItemId) -> Option<&ViewItem> {
        self.items.get(self.place(item)?)
    }

    pub(crate) fn vector(&self, item: ItemId) -> Option<&Vector> {
        self.vectors.get(self.place(item)?)
    }
}
