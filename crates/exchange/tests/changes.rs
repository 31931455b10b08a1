//! A subscriber that is told of what changed since the last look has what one has of whom all items are looked at each time: random
//! histories of items, of what is disclosed, and of pushes that come, are lost, or follow each other unacknowledged.

mod support;

use oap_exchange::allowance::Disclosed;
use oap_exchange::changes::{
    Compared, Delta, Holdings, Look, MAX_DIFFERING, Sent, acknowledge, find_changes,
};
use oap_exchange::respond::Frame;
use oap_exchange::{Allowance, Model, Query, Setting, Vector, View};
use oap_grants::{Grant, VerifiedGrant};
use oap_identity::random::{Seeded, bytes};
use oap_identity::{ItemId, RequestId};
use oap_memory::record::ItemRecord;
use oap_memory::{Filter, Head, Profile, TrustLevel};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use support::*;

/// Most bytes of what is pushed at once: more than a few items have.
const BYTES: usize = 1 << 20;

fn listing() -> Query {
    Query { max_results: Some(3), ..Query::default() }
}

fn note(text: &str) -> Value {
    json!({"kind": "fact", "content": {"text": text}})
}

/// A memory, and the view of a grant on it, which follows what is changed.
struct House {
    owner: Owner,
    grant: VerifiedGrant,
    profiles: Vec<Profile>,
    items: Vec<(Head, ItemRecord)>,
    disclosed: BTreeSet<ItemId>,
    most: usize,
}

impl House {
    fn new(most: usize) -> Self {
        let (owner, profiles) = (Owner::new(5), Profile::built_in());
        let profile = &profiles[0];
        let level = profile.minimum_level().max(3_u8.try_into().unwrap());
        let grant = presented(&owner, grant(&Filter::default(), profile.name(), level));
        Self { owner, grant, profiles, items: Vec::new(), disclosed: BTreeSet::new(), most }
    }

    fn allowance(&self) -> Allowance {
        Allowance::new(vec![Arc::new(Disclosed::new(self.most, self.disclosed.iter().copied()))])
    }

    fn build(&self) -> View {
        let heads = self.items.iter().map(|(head, _)| head);
        let load = |head: &Head| {
            let found = self.items.iter().find(|(known, _)| known.item_id == head.item_id);
            Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()))
        };
        View::build(&self.grant, &self.allowance(), &setting(&self.profiles), heads, load).unwrap()
    }

    /// Lets a view take over what became of an item.
    fn follow(&self, view: &mut View, item: ItemId) {
        let found = self.items.iter().find(|(head, _)| head.item_id == item);
        let head = found.map(|(head, _)| Arc::new(head.clone()));
        let load = |_: &Head| Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()));
        let step = view.renewal().step([(item, head)], None, now(), load).unwrap();
        assert!(view.take(step));
    }

    fn capture(&mut self, text: &str) -> ItemId {
        let (head, whole) = self.owner.capture(&note(text));
        let item = head.item_id;
        self.items.push((head, whole));
        item
    }

    /// Corrects the item at a place.
    fn correct(&mut self, place: usize, text: &str) -> ItemId {
        let body = self.owner.body(&note(text));
        let (head, whole) = &mut self.items[place];
        *whole = self.owner.correct(whole, &note(text));
        head.seq += 1;
        head.version_seq = head.seq;
        head.take(&body);
        head.item_id
    }

    /// The items that a push of a delta shows, and that left; and whether there is more behind.
    fn push(&self, delta: Delta, sequence: u64) -> (Sent, Vec<ItemId>, bool) {
        let Delta { found, left, more_left } = delta;
        let answer = write_out(found, &self.items);
        let more = more_left || answer.next().is_some();
        let name = || RequestId::new(now(), &Seeded::new(1));
        let unsent = answer.write(Frame { request_id: name(), response_id: name(), next_cursor: None });
        let shown = unsent.shown().iter().map(|shown| shown.item).collect();
        (Sent::of(sequence, unsent.shown(), &left), shown, more)
    }
}

/// What is known of a subscriber.
#[derive(Default)]
struct Subscriber {
    /// What it has, as far as it said so.
    stored: Holdings,
    underway: Vec<Sent>,
    compared: Option<Compared>,
    sequence: u64,
}

impl Subscriber {
    /// A look that goes on from the one before; what is known of its items alone is enough. It finds what a look at all items finds.
    fn look(&mut self, house: &House, view: &View) -> (Delta, Option<usize>) {
        let arrived = |mut has: Holdings| {
            self.underway.iter().for_each(|sent| sent.arrives(&mut has));
            has
        };
        let look = Look::after(view, self.compared.as_ref());
        let items = look.items();
        let mut stored = self.stored.clone();
        stored.retain(|item, _| items.is_none_or(|items| items.contains(item)));
        let changes = |has: &Holdings, look: &Look| {
            find_changes(view, &house.allowance(), &listing(), has, look, BYTES)
        };
        let said = |delta: Delta| house.push(delta, self.sequence + 1);
        let of_all = said(changes(&arrived(self.stored.clone()), &Look::at_all(view)));
        assert_eq!(said(changes(&arrived(stored.clone()), &look)), of_all);
        let delta = changes(&arrived(stored.clone()), &look);
        let looked_at = items.map(BTreeSet::len);
        self.compared = look.compare(view, &stored);
        (delta, looked_at)
    }

    fn send(&mut self, house: &mut House, delta: Delta) {
        self.sequence += 1;
        let (sent, shown, _) = house.push(delta, self.sequence);
        sent.leaves(&mut self.stored);
        self.underway.push(sent);
        house.disclosed.extend(shown);
    }

    fn says(&mut self, last: u64) {
        acknowledge(&mut self.stored, &self.underway, last);
        self.underway.clear();
    }
}

/// Whatever becomes of items and pushes: looks that go on from one another find what looks at all items find.
#[test]
fn a_look_at_what_changed_finds_what_a_look_at_all_finds() {
    let mut fewer = 0;
    for seed in 0..60 {
        let random = Seeded::new(seed);
        // Of some grants there is less to give than there are items.
        let mut house = House::new(if seed % 2 == 0 { 5 } else { 100 });
        let mut view = house.build();
        let mut subscriber = Subscriber::default();
        for step in 0..80 {
            let [what, which, luck] = bytes::<3>(&random);
            let place = usize::from(which) % house.items.len().max(1);
            let changed = match what % 8 {
                0 | 1 => Some(house.capture(&format!("note {step}"))),
                2 if !house.items.is_empty() => Some(house.correct(place, &format!("corrected {step}"))),
                3 if !house.items.is_empty() => Some(house.items.remove(place).0.item_id),
                // Another question discloses something.
                4 if !house.items.is_empty() && house.disclosed.len() < house.most => {
                    house.disclosed.insert(house.items[place].0.item_id);
                    None
                }
                _ => None,
            };
            match changed {
                Some(item) => house.follow(&mut view, item),
                None if luck == 0 => view = house.build(),
                None => {}
            }
            if view.is_over(&house.allowance(), now()) {
                view = house.build();
            }
            if what % 2 == 0 {
                continue;
            }
            let (delta, looked_at) = subscriber.look(&house, &view);
            fewer += usize::from(looked_at.is_some_and(|items| items < house.items.len()));
            if !delta.is_empty() {
                subscriber.send(&mut house, delta);
            }
            match luck % 4 {
                0 => subscriber.says(subscriber.sequence),
                // The last one was lost.
                1 => subscriber.says(subscriber.sequence.saturating_sub(1)),
                // The next one follows on the same stream.
                _ => {}
            }
        }
    }
    assert!(fewer > 60, "{fewer} looks were at less than all items");
}

/// A tick costs what changed since the last one: nothing, where nothing did, however much the view has.
#[test]
fn a_look_is_at_what_changed_alone() {
    let mut house = House::new(1000);
    let first: Vec<ItemId> = (0..40).map(|n| house.capture(&format!("note {n}"))).collect();
    let mut view = house.build();
    let mut subscriber = Subscriber::default();
    // The first one is at all; then at what is not there yet.
    let mut looked_at = Vec::new();
    loop {
        let (delta, items) = subscriber.look(&house, &view);
        looked_at.push(items);
        if delta.is_empty() {
            break;
        }
        subscriber.send(&mut house, delta);
        subscriber.says(subscriber.sequence);
    }
    // What was sent and came is looked at once more.
    let then = (0..14).map(|pushes| Some(40 - 3 * pushes));
    assert_eq!(looked_at, std::iter::once(None).chain(then).collect::<Vec<_>>());
    assert_eq!(subscriber.look(&house, &view).1, Some(0));
    // One changes, one comes.
    house.correct(7, "another");
    house.follow(&mut view, first[7]);
    let new = house.capture("new");
    house.follow(&mut view, new);
    let (delta, items) = subscriber.look(&house, &view);
    assert_eq!((items, delta.is_empty()), (Some(2), false));
    // A view that was built anew is another one.
    assert_eq!(subscriber.look(&house, &house.build()).1, None);
}

/// What is remembered has an end: of more than that, all are looked at.
#[test]
fn what_is_remembered_is_bounded() {
    let mut house = House::new(10_000);
    for n in 0..=MAX_DIFFERING {
        house.capture(&format!("note {n}"));
    }
    let mut view = house.build();
    let mut subscriber = Subscriber::default();
    let mut looks = |view: &View| {
        let look = Look::after(view, subscriber.compared.as_ref());
        let looked_at = look.items().map(BTreeSet::len);
        subscriber.compared = look.compare(view, &Holdings::new());
        looked_at
    };
    // One too many is different.
    assert_eq!([looks(&view), looks(&view)], [None, None]);
    let (last, _) = house.items.pop().unwrap();
    house.follow(&mut view, last.item_id);
    assert_eq!([looks(&view), looks(&view)], [None, Some(MAX_DIFFERING)]);
    // So is one that changed more often since than is remembered of the view.
    let item = house.items[0].0.item_id;
    // Each time it is taken out and put in.
    (0..513).for_each(|_| house.follow(&mut view, item));
    assert_eq!(looks(&view), None);
    assert_eq!(looks(&view), Some(MAX_DIFFERING));
    (0..512).for_each(|_| house.follow(&mut view, item));
    assert_eq!(looks(&view), Some(MAX_DIFFERING));
}

/// What is written out at once has a bound that each item takes its part of: members, chain, and where its vector is. One item is written
/// out in any case.
#[test]
fn no_more_is_written_out_than_has_room() {
    let mut house = House::new(100);
    for text in ["tea", "jam", "pie"] {
        house.capture(text);
    }
    let embed = |texts: Vec<String>| texts.iter().map(|_| Vector::new(vec![1.0, 0.0])).collect();
    let model = Model { name: "even", dimensions: 2, url: "https://user.example/vec/", embed: &embed };
    let profile = &house.profiles[0];
    let terms = grant(&Filter::default(), profile.name(), TrustLevel::INNER_CIRCLE);
    house.grant = presented(&house.owner, Grant { embedding_access: true, ..terms });
    let setting = Setting { embeddings: true, model: Some(&model), ..setting(&house.profiles) };
    let heads = house.items.iter().map(|(head, _)| head);
    let load = |head: &Head| {
        let found = house.items.iter().find(|(known, _)| known.item_id == head.item_id);
        Ok::<_, Infallible>(found.map(|(_, whole)| whole.clone()))
    };
    let with_vectors = View::build(&house.grant, &house.allowance(), &setting, heads, load).unwrap();
    let shown = |view: &View, bytes: usize| {
        let (has, look) = (Holdings::new(), Look::at_all(view));
        let delta = find_changes(view, &house.allowance(), &listing(), &has, &look, bytes);
        let (_, shown, more) = house.push(delta, 1);
        assert_eq!(more, shown.len() < 3);
        shown.len()
    };
    let least = |view: &View, items: usize| {
        let (mut too_few, mut enough) = (0, BYTES);
        while too_few + 1 < enough {
            let middle = usize::midpoint(too_few, enough);
            if shown(view, middle) < items { too_few = middle } else { enough = middle }
        }
        enough
    };
    let plain = house.build();
    for view in [&plain, &with_vectors] {
        assert_eq!(shown(view, 0), 1);
        assert_eq!(shown(view, BYTES), 3);
        // They are of one size, each with its chain.
        assert!(least(view, 2) > 2 * 300);
        assert_eq!(least(view, 2) * 3, least(view, 3) * 2);
    }
    assert!(least(&with_vectors, 2) > least(&plain, 2) + 2 * model.url.len());
    // A link more each.
    let before = least(&plain, 2);
    for (place, text) in ["tee", "jar", "pit"].iter().enumerate() {
        house.correct(place, text);
    }
    let corrected = house.build();
    let shown = |bytes: usize| {
        let delta = find_changes(
            &corrected,
            &house.allowance(),
            &listing(),
            &Holdings::new(),
            &Look::at_all(&corrected),
            bytes,
        );
        house.push(delta, 1).1.len()
    };
    assert_eq!((shown(before), shown(before + 300)), (1, 1));
}
