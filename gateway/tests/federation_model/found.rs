//! Histories that are played on purpose: those in which the program once did what it should not, and those with a network that does what no
//! gateway would, by which a model is found out that sees nothing.

use super::holds;
use super::steps::Step;
use super::wire::{Fault, Link};
use oap_federation::LetterKind;

/// The number in `PAUSES` of one that is longer than a letter is remembered.
const FORGETS: usize = 2;
const GIVE: Step = Step::Give { by: 0, to: 1, most: 500, days: 20 };
const ASK: Step = Step::Ask { by: 1, of: 0, same: false, most: 500, days: 20 };

const fn between(is: Link) -> Step {
    Step::Link { a: 0, b: 1, is }
}

/// The reply to a notice is lost, and the letter forgotten before it comes again: its deletion is confirmed once.
#[test]
fn a_deletion_is_confirmed_once() {
    let steps = [
        Step::Write { by: 0 },
        GIVE,
        Step::Recall { by: 1 },
        Step::Delete { by: 0, pick: 0 },
        between(Link::Deaf),
        Step::Send { by: 0 },
        Step::Sweep { who: 1 },
        between(Link::Up),
        Step::Wait { pause: FORGETS },
        Step::Sweep { who: 1 },
        Step::Kill { who: 1 },
        Step::Send { by: 0 },
    ];
    assert!(holds(1, &steps, Fault::None));
}

/// The reply to a delivery is lost, and its receiver removes the grant meanwhile: it does not come back with the next attempt.
#[test]
fn a_grant_that_was_removed_stays_removed() {
    let steps = [
        ASK,
        Step::Send { by: 1 },
        Step::Approve { by: 0, pick: 0 },
        between(Link::Deaf),
        Step::Send { by: 0 },
        Step::Drop { by: 1, pick: 0 },
        between(Link::Up),
        Step::Wait { pause: FORGETS },
        Step::Send { by: 0 },
    ];
    assert!(holds(2, &steps, Fault::None));
}

/// The same where the request itself comes again, whose answer has the grant by then.
#[test]
fn a_removed_grant_does_not_come_back_with_an_old_request() {
    let steps = [
        ASK,
        between(Link::Deaf),
        Step::Send { by: 1 },
        between(Link::Up),
        Step::Approve { by: 0, pick: 0 },
        Step::Send { by: 0 },
        Step::Drop { by: 1, pick: 0 },
        Step::Wait { pause: FORGETS },
        Step::Send { by: 1 },
    ];
    assert!(holds(3, &steps, Fault::None));
}

/// A lockdown is of what others get: its owner recalls as ever.
#[test]
fn the_owner_recalls_during_a_lockdown() {
    let steps = [Step::Write { by: 0 }, GIVE, Step::LockDown { by: 1 }, Step::Recall { by: 1 }];
    assert!(holds(4, &steps, Fault::None));
}

/// A bit of everything, of which nothing is lost.
const EVERYTHING: [Step; 14] = [
    Step::Write { by: 0 },
    Step::Write { by: 0 },
    ASK,
    Step::Send { by: 1 },
    Step::Approve { by: 0, pick: 0 },
    Step::Send { by: 0 },
    Step::Recall { by: 1 },
    Step::Delete { by: 0, pick: 0 },
    Step::Send { by: 0 },
    Step::Revoke { by: 0, pick: 0 },
    Step::Recall { by: 1 },
    Step::Send { by: 0 },
    Step::Kill { who: 1 },
    Step::Recall { by: 1 },
];

/// Left out or done once too often: the model notices each. What has its effect once by what it names may come twice.
#[test]
fn the_model_notices_what_is_left_out_and_what_is_done_twice() {
    assert!(holds(5, &EVERYTHING, Fault::None));
    for fault in [
        Fault::Swallows(LetterKind::AccessRequest),
        Fault::Swallows(LetterKind::GrantDelivery),
        Fault::Swallows(LetterKind::RevocationNotice),
        Fault::Swallows(LetterKind::DeletionNotice),
        Fault::Doubles(LetterKind::AccessRequest),
        Fault::Replays,
    ] {
        assert!(!holds(5, &EVERYTHING, fault), "{fault:?} is not noticed");
    }
    for kind in [LetterKind::GrantDelivery, LetterKind::RevocationNotice, LetterKind::DeletionNotice] {
        assert!(holds(5, &EVERYTHING, Fault::Doubles(kind)), "{kind:?} twice");
    }
}
