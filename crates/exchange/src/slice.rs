//! From all items to those of one grant: what a view and a preview are made of alike.

use crate::allowance::Allowance;
use crate::gate::{Fired, Gate, Report};
use crate::lens::{Lens, Terms};
use crate::member::{Entering, Labels, Member};
use crate::rank::{Index, Matches};
use crate::setting::{Embed, RETRY, Setting, ViewError};
use crate::vector::Vector;
use oap_identity::{ItemId, Timestamp};
use oap_memory::commitment::Committed;
use oap_memory::project::Projected;
use oap_memory::record::Head;
use rayon::prelude::*;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The items of one grant. Each member has a place, which it keeps.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) lens: Arc<Lens>,
    places: BTreeMap<ItemId, u32>,
    members: Vec<Option<Member>>,
    free: Vec<u32>,
    /// Members that end, by when.
    ends: BTreeSet<(Timestamp, ItemId)>,
    labels: Labels,
    index: Index,
    /// Whether there is a model, and it was in reach: then every member has a vector.
    embedded: bool,
    /// When a model that was out of reach is asked again.
    retry: Option<Timestamp>,
    /// For the owner alone. Behind a lock of its own, so that a change of what is kept back waits for no answer, nor an answer
    /// for it.
    judged: Mutex<Judged>,
    recent: Recent,
    bytes: usize,
}

/// Most changes that a view remembers, the newest.
pub(crate) const MAX_RECENT: usize = 1024;

/// Most items that are loaded and projected at once when a slice is built.
const AT_ONCE: usize = 256;

/// Which members came, changed or went lately, by their ids.
#[derive(Debug, Default)]
struct Recent {
    /// How many changes there were.
    count: u64,
    /// The items of the last of them, the newest last.
    items: VecDeque<ItemId>,
}

impl Recent {
    fn note(&mut self, item: ItemId) {
        self.count += 1;
        if self.items.len() == MAX_RECENT {
            self.items.pop_front();
        }
        self.items.push_back(item);
    }

    /// The items of all changes but the first so many; `None` where not all of them are remembered.
    fn since(&self, count: u64) -> Option<impl Iterator<Item = ItemId>> {
        let new = usize::try_from(self.count.checked_sub(count)?).ok()?;
        let known = self.items.len().checked_sub(new)?;
        Some(self.items.range(known..).copied())
    }
}

/// How a view stood at some time: which one it was, and how often it had changed. It does not hold on to the view.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    lens: Weak<Lens>,
    count: u64,
}

/// What the gates decided.
#[derive(Debug, Default)]
struct Judged {
    /// What they kept back of what the grant selects.
    withheld: BTreeMap<ItemId, Withheld>,
    /// Those of it that end, by when.
    ends: BTreeSet<(Timestamp, ItemId)>,
    report: Report,
}

/// An item that the gates keep back: the rules that do, and when it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Withheld {
    pub(crate) rules: Fired,
    pub(crate) end: Option<Timestamp>,
}

impl Judged {
    fn withhold(&mut self, item: ItemId, withheld: Withheld) {
        self.report.note(withheld.rules, false);
        self.ends.extend(withheld.end.map(|end| (end, item)));
        self.withheld.insert(item, withheld);
    }

    fn let_go(&mut self, item: ItemId) {
        if let Some(Withheld { rules, end }) = self.withheld.remove(&item) {
            self.report.take_back(rules, false);
            end.map(|end| self.ends.remove(&(end, item)));
        }
    }

    /// Lets go of what ended.
    fn expire(&mut self, now: Timestamp) {
        while let Some((end, item)) = self.ends.first().copied()
            && end <= now
        {
            self.let_go(item);
        }
    }
}

/// What the model says of items that enter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reach {
    /// There is none.
    NoModel,
    /// Their vectors are with them.
    Embedded,
    /// It is asked again then.
    Out(Timestamp),
}

impl Reach {
    /// Gives items that enter their vectors.
    pub(crate) fn embed(entering: &mut [&mut Entering], embed: Option<Embed<'_>>, now: Timestamp) -> Self {
        let Some(embed) = embed else { return Self::NoModel };
        let vectors = embed(entering.iter().map(|entering| entering.text.clone()).collect());
        let Some(vectors) = vectors.filter(|vectors| vectors.len() == entering.len()) else {
            return Self::Out(now.plus(RETRY));
        };
        for (entering, vector) in entering.iter_mut().zip(vectors) {
            entering.member.vector = Some(vector);
        }
        Self::Embedded
    }
}

impl Slice {
    /// Selects, passes the gates, projects and caps. Items are loaded only when they passed, on all cores; one that `load` finds
    /// no more was erased meanwhile, and is in no view. With what `each` makes of every one, in the order of ids.
    pub(crate) fn build<'h, E: Send, T: Send, W: Borrow<Committed>>(
        terms: Terms,
        allowance: &Allowance,
        setting: &Setting,
        heads: impl Iterator<Item = &'h Head>,
        load: impl Fn(&Head) -> Result<Option<W>, E> + Sync,
        each: impl Fn(&Entering, &Projected, &W) -> Result<T, ViewError<E>> + Sync,
    ) -> Result<(Self, Vec<T>), ViewError<E>> {
        let lens = Arc::new(Lens::new(terms, allowance, setting)?);
        let mut selected: Vec<&Head> = heads.filter(|head| lens.selects(head, setting.now)).collect();
        selected.sort_by_key(|head| head.item_id);
        let mut entering = Vec::new();
        let mut slice = Self {
            places: BTreeMap::new(),
            members: Vec::new(),
            free: Vec::new(),
            ends: BTreeSet::new(),
            labels: Labels::default(),
            index: Index::new(lens.language),
            embedded: false,
            retry: None,
            judged: Mutex::default(),
            recent: Recent::default(),
            bytes: 0,
            lens: lens.clone(),
        };
        selected.retain(|head| match lens.withholds(head) {
            Some(withheld) => {
                slice.withhold(head.item_id, withheld);
                false
            }
            None => true,
        });
        let enter = |head: &&Head| {
            let Some(loaded) = load(head).map_err(ViewError::Store)? else { return Ok(None) };
            let (one, projected) = lens.enter(head, loaded.borrow())?;
            let made = each(&one, &projected, &loaded)?;
            Ok(Some((one, made)))
        };
        let mut all_made = Vec::new();
        // Not all at once: what enters has its text with it.
        for heads in selected.chunks(AT_ONCE) {
            let entered: Vec<_> = heads.par_iter().map(enter).collect::<Result<_, ViewError<E>>>()?;
            for (one, made) in entered.into_iter().flatten() {
                all_made.push(made);
                match setting.model {
                    Some(_) => entering.push(one),
                    None => slice.insert(one),
                }
            }
        }
        let embed = setting.model.map(|model| model.embed);
        slice.reached(Reach::embed(&mut entering.iter_mut().collect::<Vec<_>>(), embed, setting.now));
        entering.into_iter().for_each(|entering| slice.insert(entering));
        slice.index.shrink();
        slice.members.shrink_to_fit();
        // Whoever has no mark of it looks at all of it.
        slice.recent = Recent::default();
        Ok((slice, all_made))
    }

    /// Notes how the model was reached. Without the vector of every member the view has none.
    pub(crate) fn reached(&mut self, reach: Reach) {
        match reach {
            Reach::NoModel => {}
            Reach::Embedded => self.embedded = true,
            Reach::Out(retry) => {
                (self.embedded, self.retry) = (false, Some(retry));
                for member in self.members.iter_mut().flatten() {
                    self.bytes -= member.bytes();
                    member.vector = None;
                    self.bytes += member.bytes();
                }
            }
        }
    }

    /// Adds a member that is not there.
    pub(crate) fn insert(&mut self, Entering { mut member, text, words }: Entering) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.members.push(None);
            self.members.len() as u32 - 1
        });
        if !self.embedded {
            member.vector = None;
        }
        self.recent.note(member.id());
        self.index.insert_words(place, &member.document(&text), words);
        self.places.insert(member.id(), place);
        self.ends.extend(member.end_of_life.map(|end| (end, member.id())));
        self.judged_mut().report.note(member.rules, true);
        self.bytes += member.bytes();
        member.labels = self.labels.keep(member.labels);
        self.members[place as usize] = Some(member);
    }

    /// Notes an item that the gates keep back.
    pub(crate) fn withhold(&mut self, item: ItemId, withheld: Withheld) {
        self.judged_mut().withhold(item, withheld);
    }

    /// Notes an item that is no member as the gates judge it now.
    pub(crate) fn keep_back(&self, head: &Head, at: Timestamp) {
        let withheld = self.lens.withholds(head).filter(|_| self.lens.selects(head, at));
        let mut judged = self.judged();
        judged.let_go(head.item_id);
        if let Some(withheld) = withheld {
            judged.withhold(head.item_id, withheld);
        }
    }

    /// Judges everything that is selected anew, by other gates and the heads of now: members that do not pass any more go. Those that
    /// pass now and are no members are given back: they are to be looked at in a step.
    pub(crate) fn judge_anew(
        &mut self,
        gate: Gate,
        head: impl Fn(ItemId) -> Option<Arc<Head>>,
    ) -> Vec<ItemId> {
        let lens = Arc::new(self.lens.behind(gate));
        self.lens = lens.clone();
        let withheld: Vec<(ItemId, Withheld)> =
            self.judged_mut().withheld.iter().map(|(item, withheld)| (*item, *withheld)).collect();
        let members: Vec<(ItemId, u32)> = self.places.iter().map(|(item, place)| (*item, *place)).collect();
        for (item, place) in members {
            let Some(head) = head(item) else { continue };
            let (rules, passes) = lens.judges(&head);
            if !passes {
                self.remove(item);
                self.withhold(item, Withheld { rules, end: head.end_of_life });
            } else if let Some(Some(member)) = self.members.get_mut(place as usize) {
                let report = &mut self.judged.get_mut().unwrap_or_else(PoisonError::into_inner).report;
                report.take_back(member.rules, true);
                report.note(rules, true);
                member.rules = rules;
            }
        }
        let mut passing = Vec::new();
        for (item, before) in withheld {
            let Some(head) = head(item) else { continue };
            let (rules, passes) = lens.judges(&head);
            if passes {
                passing.push(item);
            } else if rules != before.rules {
                let judged = self.judged_mut();
                judged.let_go(item);
                judged.withhold(item, Withheld { rules, ..before });
            }
        }
        passing
    }

    /// Lets go of an item that is no member.
    pub(crate) fn let_go(&self, item: ItemId) {
        self.judged().let_go(item);
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judged_mut(&mut self) -> &mut Judged {
        self.judged.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an item out, where it is there.
    pub(crate) fn remove(&mut self, item: ItemId) {
        self.judged_mut().let_go(item);
        let Some(place) = self.places.remove(&item) else { return };
        let Some(member) = self.members.get_mut(place as usize).and_then(Option::take) else { return };
        self.free.push(place);
        self.recent.note(item);
        self.index.remove(place, item, member.captured_at);
        if let Some(end) = member.end_of_life {
            self.ends.remove(&(end, item));
        }
        self.judged_mut().report.take_back(member.rules, true);
        self.bytes -= member.bytes();
        self.labels.release(&member.labels);
    }

    /// Takes out the members whose end has come.
    pub(crate) fn expire(&mut self, now: Timestamp) {
        while let Some((end, item)) = self.ends.first().copied()
            && end <= now
        {
            self.remove(item);
        }
    }

    /// When the first of its members ends.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// When it must be built anew: a gate may decide otherwise, or the model is asked again.
    pub(crate) fn rebuilt_at(&self) -> Option<Timestamp> {
        self.lens.gate.ends().into_iter().chain(self.retry).min()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn contains(&self, item: ItemId) -> bool {
        self.places.contains_key(&item)
    }

    /// Whether the gates keep an item back that the grant selects.
    pub(crate) fn keeps_back(&self, item: ItemId) -> bool {
        self.judged().withheld.contains_key(&item)
    }

    pub(crate) fn member(&self, item: ItemId) -> Option<&Member> {
        self.at(*self.places.get(&item)?)
    }

    /// The member at a place.
    pub(crate) fn at(&self, place: u32) -> Option<&Member> {
        self.members.get(place as usize)?.as_ref()
    }

    /// Its members, in the order of ids.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.places.values().filter_map(|place| self.at(*place))
    }

    /// Its members with their places, in no order that says anything.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (u32, &Member)> {
        (0..).zip(&self.members).filter_map(|(place, member)| Some((place, member.as_ref()?)))
    }

    /// How it stands now.
    pub(crate) fn mark(&self) -> Mark {
        Mark { lens: Arc::downgrade(&self.lens), count: self.recent.count }
    }

    /// The items that came, changed or went since a mark; `None` for a mark of another slice, and where that is too long ago.
    pub(crate) fn since(&self, mark: &Mark) -> Option<impl Iterator<Item = ItemId>> {
        let is_here = Weak::as_ptr(&mark.lens) == Arc::as_ptr(&self.lens);
        self.recent.since(mark.count).filter(|_| is_here)
    }

    pub(crate) fn matches(&self, query: &str) -> Matches {
        self.index.matches(query)
    }

    /// Whether its members have vectors.
    pub(crate) fn has_vectors(&self) -> bool {
        self.embedded && self.len() > 0
    }

    /// Whether it has a model whose vectors enter with new members.
    pub(crate) const fn is_embedded(&self) -> bool {
        self.embedded
    }

    /// How near each member is to a meaning, by place.
    pub(crate) fn nearness(&self, meaning: &Vector) -> Vec<f32> {
        let near = |member: &Member| member.vector.as_ref().map_or(0.0, |vector| vector.cosine(meaning));
        self.members.iter().map(|member| member.as_ref().map_or(0.0, near)).collect()
    }

    /// What the gates decided of what is selected at that time.
    pub(crate) fn report(&self, now: Timestamp) -> Report {
        let mut judged = self.judged();
        judged.expire(now);
        judged.report.clone()
    }

    /// How much memory it takes for its members, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.judged().withheld.len() * WITHHELD + self.index.bytes() + self.labels.bytes()
    }
}

/// How much memory an item takes that the gates keep back, in bytes, in nodes that are half full.
const WITHHELD: usize = 2 * (size_of::<ItemId>() + size_of::<Withheld>());
