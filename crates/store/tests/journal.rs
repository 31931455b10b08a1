//! Batches that stand in journals before the database has them: what is read is the same, and what was acknowledged is there
//! after `kill -9`.
//!
//! The disk says that it is small, so that journals are: they are filled, turned and written to the database all the time.

use oap_identity::random::Seeded;
use oap_identity::{Random, random};
use oap_store::{Disk, Engine, EngineKind, Op, Space};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// One after the other: whoever is forked holds the locks of all open stores for a moment.
static ALONE: Mutex<()> = Mutex::new(());

const CHILD: &str = "OAP_JOURNAL_CHILD";
const ROUNDS: usize = 12;

/// A small disk with room.
#[derive(Debug)]
struct Small;

impl Disk for Small {
    fn total(&self) -> std::io::Result<u64> {
        Ok(1 << 20)
    }
    fn free(&self) -> std::io::Result<u64> {
        Ok(1 << 40)
    }
    fn held(&self) -> std::io::Result<u64> {
        Ok(1 << 20)
    }
    fn hold(&self, _: u64) -> std::io::Result<()> {
        Ok(())
    }
}

fn open(folder: &Path) -> Arc<dyn Engine> {
    EngineKind::Redb.open(folder, &Space::on(Small).unwrap()).unwrap()
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

struct Dice(Seeded);

impl Dice {
    fn roll(&self, below: u64) -> u64 {
        u64::from_le_bytes(random::bytes(&self.0)) % below.max(1)
    }

    fn key(&self) -> Vec<u8> {
        let length = 1 + self.roll(3) as usize;
        (0..length).map(|_| self.roll(6) as u8).collect()
    }

    /// Mostly small batches; some are too large for a journal.
    fn batch(&self) -> Vec<Op> {
        let most = [4, 40, 400][self.roll(12) as usize / 5];
        (0..1 + self.roll(most))
            .map(|_| {
                let key = self.key();
                if self.roll(3) == 0 {
                    return Op::Delete(key);
                }
                let mut value = vec![0; self.roll(3_000) as usize];
                self.0.fill(&mut value);
                Op::Put(key, value)
            })
            .collect()
    }
}

fn take(model: &mut Model, batch: &[Op]) {
    for op in batch {
        match op {
            Op::Put(key, value) => drop(model.insert(key.clone(), value.clone())),
            Op::Delete(key) => drop(model.remove(key)),
        }
    }
}

fn all(engine: &dyn Engine) -> Model {
    engine.scan(&[], &[], false).map(Result::unwrap).collect()
}

/// What a scan has to give.
fn expected(model: &Model, prefix: &[u8], from: &[u8], descending: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = model.iter().filter(|(key, _)| key.starts_with(prefix));
    let pairs =
        pairs.filter(|(key, _)| if descending { key.as_slice() <= from } else { key.as_slice() >= from });
    let mut pairs: Vec<_> = pairs.map(|(key, value)| (key.clone(), value.clone())).collect();
    if descending {
        pairs.reverse();
    }
    pairs
}

#[test]
fn what_is_read_is_what_was_written_wherever_it_stands() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut settled = 0;
    for seed in 0..6 {
        let dice = Dice(Seeded::new(seed));
        let folder = tempfile::tempdir().unwrap();
        let mut engine = open(folder.path());
        let mut model = Model::new();
        let mut snapshots = Vec::new();
        for _ in 0..250 {
            match dice.roll(20) {
                0 => {
                    drop(snapshots.drain(..).map(same).collect::<Vec<_>>());
                    drop(engine);
                    engine = open(folder.path());
                    assert_eq!(engine.owed(), 0, "a store that was closed owes nothing");
                }
                1 => {
                    engine.settle().unwrap();
                    assert_eq!(engine.owed(), 0);
                    settled += 1;
                }
                2 => snapshots.push((engine.snapshot().unwrap(), model.clone())),
                _ => {
                    let batch = dice.batch();
                    take(&mut model, &batch);
                    engine.apply(batch).unwrap();
                }
            }
            let (prefix, descending) = (dice.key(), dice.roll(2) == 0);
            let from = [prefix.clone(), dice.key()][..1 + dice.roll(2) as usize].concat();
            let found: Vec<_> = engine.scan(&prefix, &from, descending).map(Result::unwrap).collect();
            assert!(
                found == expected(&model, &prefix, &from, descending),
                "seed {seed}: {prefix:?} {from:?}"
            );
            assert_eq!(engine.get(&prefix).unwrap(), model.get(&prefix).cloned(), "seed {seed}");
        }
        assert!(all(&*engine) == model, "seed {seed}");
        snapshots.into_iter().for_each(same);
    }
    assert!(settled > 20);
}

/// A snapshot is what was there when it was taken.
fn same((snapshot, model): (oap_store::OwnedPairs, Model)) {
    assert!(snapshot.map(Result::unwrap).eq(model));
}

/// The batch of that number, with the number in it.
fn numbered(number: u64) -> Vec<Op> {
    let mut batch = Dice(Seeded::new(number)).batch();
    batch.push(Op::Put(b"number".to_vec(), number.to_be_bytes().to_vec()));
    batch
}

fn number(model: &Model) -> u64 {
    model
        .get(b"number".as_slice())
        .map_or(0, |bytes| u64::from_be_bytes(bytes.as_slice().try_into().unwrap()))
}

/// Writes batches, and says the number of each that is durable.
fn write(folder: &Path) -> ! {
    let engine = open(folder);
    let first = number(&all(&*engine)) + 1;
    for number in first.. {
        engine.apply(numbered(number)).unwrap();
        let mut out = std::io::stdout();
        writeln!(out, "durable {number}").unwrap();
        out.flush().unwrap();
    }
    unreachable!()
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    if let Some(folder) = std::env::var_os(CHILD) {
        write(Path::new(&folder));
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let dice = Dice(Seeded::new(7));
    let (mut model, mut taken) = (Model::new(), 0);
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "what_was_acknowledged_is_there_after_a_kill", "--nocapture"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let durable =
            lines.map(Result::unwrap).filter_map(|line| line.strip_prefix("durable ")?.parse().ok());
        let acknowledged: u64 = durable.take(1 + dice.roll(120) as usize).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Some are opened by the next one first.
        if round % 3 == 1 {
            continue;
        }
        let engine = open(folder.path());
        let found = all(&*engine);
        let last = number(&found);
        // What was written meanwhile may be there, in order.
        assert!(last >= acknowledged, "round {round}: {last} of {acknowledged}");
        for number in taken + 1..=last {
            take(&mut model, &numbered(number));
        }
        taken = last;
        assert!(found == model, "round {round}: batch {last}");
    }
}
