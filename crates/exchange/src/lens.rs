//! What one grant selects, and how it is shown: all of a view that stays when items change.

use crate::allowance::Allowance;
use crate::gate::{Destination, Fired, Gate};
use crate::item::{Reference, ViewItem};
use crate::member::{Entering, Member, Version};
use crate::setting::{Setting, ViewError};
use crate::slice::Withheld;
use oap_grants::limits::{LimitError, check_profile};
use oap_grants::{Grant, VerifiedGrant};
use oap_identity::{Did, Hash, ItemId, ScopeId, Timestamp};
use oap_memory::commitment::Committed;
use oap_memory::epistemic;
use oap_memory::project::{Projected, project};
use oap_memory::record::{Head, ItemRecord};
use oap_memory::text::Language;
use oap_memory::{Confidence, Filter, Profile, TrustLevel};

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

/// The profile that is applied.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    pub(crate) name: String,
    pub(crate) hash: Hash,
    pub(crate) redacted_field_count: usize,
}

/// What is selected for one grantee, and how they see it.
#[derive(Debug, Clone)]
pub(crate) struct Lens {
    filter: Filter,
    scope: ScopeId,
    own_agent: bool,
    /// As it was when the view was built.
    allowance: Allowance,
    pub(crate) gate: Gate,
    profile: Profile,
    level: TrustLevel,
    embeddings: bool,
    belief_threshold: Confidence,
    pub(crate) language: Language,
    /// Where vectors are served, where they may be seen.
    pub(crate) reference: Option<Reference>,
    pub(crate) applied: Applied,
}

impl Lens {
    pub(crate) fn new(terms: Terms, allowance: &Allowance, setting: &Setting) -> Result<Self, LimitError> {
        let Terms { grant, grantees, own_agent } = terms;
        let named = setting.profiles.iter().find(|profile| profile.name() == grant.redaction_profile);
        let profile = check_profile(grant, named)?;
        let level = grant.trust_level;
        let scope = &grant.granter.scope;
        let destination = Destination {
            grantees,
            own_agent,
            scope: scope.clone(),
            // As `Filter::check` has it.
            selected: grant.filter.scopes.clone().unwrap_or_else(|| vec![scope.clone()]),
            consented: setting.consented,
            anonymous: profile.is_anonymous(level),
            shows_subject: profile.shows_subject(level),
        };
        let embeddings = setting.embeddings && grant.embedding_access;
        let shows_vectors = embeddings && profile.shows_embedding(level);
        Ok(Self {
            filter: grant.filter.clone(),
            scope: scope.clone(),
            own_agent,
            allowance: allowance.clone(),
            gate: Gate::new(&setting.obligations, destination, setting.now),
            level,
            embeddings,
            belief_threshold: setting.belief_threshold,
            language: setting.language,
            reference: setting.model.filter(|_| shows_vectors).map(Reference::to),
            applied: Applied {
                name: profile.name().to_owned(),
                hash: profile.hash(),
                redacted_field_count: profile.redacted_field_count(level),
            },
            profile: profile.clone(),
        })
    }

    /// Whether the grant selects an item at that time, and may still show it. The gates come after.
    pub(crate) fn selects(&self, head: &Head, at: Timestamp) -> bool {
        self.filter.admits(head, &self.scope, self.own_agent, at) && self.allowance.admits(head.item_id)
    }

    /// Whether an item is in the view at that time.
    pub(crate) fn admits(&self, head: &Head, at: Timestamp) -> bool {
        self.selects(head, at) && self.gate.judge(head).passes
    }

    /// How the gates keep an item back which the grant selects; `None` where it passes.
    pub(crate) fn withholds(&self, head: &Head) -> Option<Withheld> {
        let (rules, passes) = self.judges(head);
        (!passes).then_some(Withheld { rules, end: head.end_of_life })
    }

    /// The rules that fire for an item, and whether it passes.
    pub(crate) fn judges(&self, head: &Head) -> (Fired, bool) {
        let judgement = self.gate.judge(head);
        (Fired::of(&judgement.rules), judgement.passes)
    }

    /// The same, behind other gates.
    pub(crate) fn behind(&self, gate: Gate) -> Self {
        Self { gate, ..self.clone() }
    }

    /// Which of the grants had no more to give.
    pub(crate) fn exhausted(&self) -> Vec<bool> {
        self.allowance.exhausted()
    }

    /// What selecting, ranking and counting need of an item that passed, and what its grantee sees of it.
    pub(crate) fn enter<E>(
        &self,
        head: &Head,
        committed: &Committed,
    ) -> Result<(Entering, Projected), ViewError<E>> {
        let projected = self.project(head.item_id, committed)?;
        let rules = Fired::of(&self.gate.judge(head).rules);
        let attitude = epistemic::classify(head.confidence, head.meta.human_verified, self.belief_threshold);
        let (commitment, visible) = (committed.commitment(), projected.item());
        let entering = Entering::of(head, rules, attitude, commitment, visible, self.language);
        Ok((entering, projected))
    }

    /// A member written out; `None` where that is not the member's version any more.
    pub(crate) fn write<E>(&self, of: &Member, whole: &ItemRecord) -> Result<Option<ViewItem>, ViewError<E>> {
        if whole.committed.commitment() != of.commitment {
            return Ok(None);
        }
        let projected = self.project(of.version.item, &whole.committed)?;
        let item = of.version.item;
        let written = ViewItem::write(item, of.attitude, &projected, whole);
        written.map(Some).map_err(|error| ViewError::Commitment(item, error))
    }

    fn project<E>(&self, item: ItemId, committed: &Committed) -> Result<Projected, ViewError<E>> {
        project(committed, &self.profile, self.level, self.embeddings)
            .map_err(|error| ViewError::Commitment(item, error))
    }

    /// What its written items are kept by, under a grant: with another grant, profile or choice of members they are
    /// others.
    pub(crate) fn key(&self, grant: Hash) -> Hash {
        let [grant, profile] = [grant, self.applied.hash].map(|hash| *hash.as_bytes());
        Hash::of(&[&grant[..], &profile, &[u8::from(self.embeddings)]].concat())
    }
}

impl Version {
    /// The version that a head names.
    #[must_use]
    pub const fn of(head: &Head) -> Self {
        Self { item: head.item_id, number: head.version_seq, last_link: head.seq }
    }
}
