//! What happens in a history, and histories out of numbers.

use super::wire::{HOUSES, Link};
use crate::interleavings::Dice;
use std::time::Duration;

/// What an owner does while another gateway asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Revoke,
    Delete,
    LockDown,
}

/// One step. Where it names what is not there nothing happens, so that any part of a history is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An owner writes something down.
    Write {
        by: usize,
    },
    /// Asks for access: something new, or the same as before.
    Ask {
        by: usize,
        of: usize,
        same: bool,
        most: u32,
        days: u64,
    },
    /// Asks what became of it.
    Again {
        by: usize,
        pick: usize,
    },
    Withdraw {
        by: usize,
        pick: usize,
    },
    Approve {
        by: usize,
        pick: usize,
    },
    Decline {
        by: usize,
        pick: usize,
    },
    /// A grant by another way: to a gateway, whose owner puts it into the wallet, or, `to` oneself, to a key without a gateway.
    Give {
        by: usize,
        to: usize,
        most: u32,
        days: u64,
    },
    /// Removes a grant from the wallet.
    Drop {
        by: usize,
        pick: usize,
    },
    /// Looks a grant of the wallet up in its granter's status list.
    Check {
        by: usize,
        pick: usize,
    },
    Recall {
        by: usize,
    },
    /// Whoever has a key alone asks under what it was given.
    KeyAsks {
        of: usize,
    },
    Revoke {
        by: usize,
        pick: usize,
    },
    Delete {
        by: usize,
        pick: usize,
    },
    /// An act of an owner's while another gateway recalls.
    Meanwhile {
        by: usize,
        owner: usize,
        act: Act,
        pick: usize,
    },
    LockDown {
        by: usize,
    },
    Lift {
        by: usize,
    },
    /// Letters that are due are sent.
    Send {
        by: usize,
    },
    /// The same, and of one of the gateways the disk ends after so many batches; it is killed.
    SendAndFail {
        by: usize,
        who: usize,
        after: u8,
    },
    Sweep {
        who: usize,
    },
    /// Killed, and started again.
    Kill {
        who: usize,
    },
    Link {
        a: usize,
        b: usize,
        is: Link,
    },
    Wait {
        pause: usize,
    },
}

/// For how long nothing happens.
pub const PAUSES: [Duration; 6] = [
    Duration::from_secs(2),
    Duration::from_secs(45),
    // Longer than a letter is remembered.
    Duration::from_secs(16 * 60),
    Duration::from_secs(7 * 3600),
    Duration::from_secs(2 * 86_400),
    // Longer than a letter is tried.
    Duration::from_secs(31 * 86_400),
];

fn link(dice: &mut Dice) -> Link {
    match dice.roll(6) {
        0 | 1 => Link::Up,
        2 | 3 => Link::Cut,
        4 => Link::Deaf,
        _ => Link::Twice,
    }
}

fn step(dice: &mut Dice) -> Step {
    let (by, pick) = (dice.roll(HOUSES), dice.roll(64));
    let other = (by + 1 + dice.roll(HOUSES - 1)) % HOUSES;
    let (most, days) = ([1, 2, 500][dice.roll(3)], [1, 20, 45][dice.roll(3)]);
    match dice.roll(100) {
        0..=5 => Step::Write { by },
        6..=12 => Step::Ask { by, of: other, same: dice.roll(4) == 0, most, days },
        13 => Step::Again { by, pick },
        14..=15 => Step::Withdraw { by, pick },
        16..=22 => Step::Approve { by, pick },
        23..=24 => Step::Decline { by, pick },
        25..=29 => Step::Give { by, to: if dice.roll(5) == 0 { by } else { other }, most, days },
        30..=31 => Step::Drop { by, pick },
        32..=33 => Step::Check { by, pick },
        34..=43 => Step::Recall { by },
        44..=45 => Step::KeyAsks { of: by },
        46..=49 => Step::Revoke { by, pick },
        50..=54 => Step::Delete { by, pick },
        55..=58 => {
            let act = [Act::Revoke, Act::Delete, Act::Delete, Act::LockDown][dice.roll(4)];
            Step::Meanwhile { by, owner: other, act, pick }
        }
        59 => Step::LockDown { by },
        60..=61 => Step::Lift { by },
        62..=77 => Step::Send { by },
        78..=80 => {
            let who = if dice.roll(2) == 0 { by } else { other };
            Step::SendAndFail { by, who, after: u8::try_from(dice.roll(4)).unwrap() }
        }
        81 => Step::Sweep { who: by },
        82..=84 => Step::Kill { who: by },
        85..=91 => Step::Link { a: by, b: other, is: link(dice) },
        _ => Step::Wait { pause: [0, 1, 1, 2, 2, 2, 3, 3, 4, 5][dice.roll(10)] },
    }
}

/// The history of a seed: everybody has something to show, and then whatever comes.
pub fn history(seed: u64, length: usize) -> Vec<Step> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let written = (0..HOUSES).flat_map(|by| [Step::Write { by }; 2]);
    let rest: Vec<Step> = (0..length).map(|_| step(&mut dice)).collect();
    written.chain(rest).collect()
}

/// A shorter history that fails, too: parts are left out for as long as it does, so many times at most.
pub fn shorter(mut steps: Vec<Step>, mut most: usize, fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut part = steps.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < steps.len() && most > 0 {
            let rest = [&steps[..at], &steps[(at + part).min(steps.len())..]].concat();
            most -= 1;
            if fails(&rest) { steps = rest } else { at += part }
        }
        part /= 2;
    }
    steps
}

/// What is left out of a history is what it does not need to fail.
#[test]
fn a_history_is_cut_to_what_fails() {
    let needed = [Step::Send { by: 1 }, Step::Recall { by: 2 }];
    let fails = |steps: &[Step]| needed.iter().all(|step| steps.contains(step));
    let long = [&[Step::Kill { who: 0 }; 9][..], &needed, &[Step::Sweep { who: 0 }; 9]].concat();
    assert_eq!(shorter(long, 200, fails), needed);
}
