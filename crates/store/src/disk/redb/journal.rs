//! Two files of fixed size that batches are written to, one after the other, before the database has them.
//!
//! A record is, little-endian: the length of its changes (4 bytes), a checksum over the rest (4, CRC-32), the batch's number (8), the
//! changes. A change is 0 and a key, or 1, a key and a value, each with its length (4) before it. A record counts where its checksum
//! holds and its number is the one after the record before it: what stands behind the last record is of an earlier round, and
//! has lower numbers.
//!
//! The files are written out when they are made: neither is there a disk that is full for a record, nor metadata that a sync waits for.
//! A record begins in the block that the one before it ends in, and writes that one's bytes there again as they are: a disk must write a
//! sector whole.

use crate::EngineError;
use crate::StoreError;
use crate::engine::Op;
use crate::space::is_full;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAMES: [&str; 2] = ["journal.0", "journal.1"];
/// Bytes of a record before its changes.
const HEADER: usize = 16;
const REMOVED: u8 = 0;
const WRITTEN: u8 = 1;

/// A batch as it stands in a journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) number: u64,
    pub(super) batch: Vec<Op>,
}

/// The two files, and which of them is written to.
#[derive(Debug)]
pub(super) struct Journals {
    folder: PathBuf,
    /// Bytes of each.
    capacity: u64,
    files: [Option<File>; 2],
    active: usize,
    /// Where the next record goes.
    at: u64,
}

fn failed(error: io::Error) -> StoreError {
    EngineError::File(Arc::new(error)).into()
}

/// A record's bytes.
pub(super) fn encode(number: u64, batch: &[Op]) -> Vec<u8> {
    let size = |op: &Op| match op {
        Op::Put(key, value) => 9 + key.len() + value.len(),
        Op::Delete(key) => 5 + key.len(),
    };
    let mut record = Vec::with_capacity(HEADER + batch.iter().map(size).sum::<usize>());
    record.extend([0; 8]);
    record.extend(number.to_le_bytes());
    let text = |record: &mut Vec<u8>, bytes: &[u8]| {
        // What is longer is in no journal.
        record.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        record.extend(bytes);
    };
    for op in batch {
        match op {
            Op::Put(key, value) => {
                record.push(WRITTEN);
                text(&mut record, key);
                text(&mut record, value);
            }
            Op::Delete(key) => {
                record.push(REMOVED);
                text(&mut record, key);
            }
        }
    }
    let length = u32::try_from(record.len() - HEADER).unwrap_or(u32::MAX);
    let sum = crc32fast::hash(&record[8..]);
    record[..4].copy_from_slice(&length.to_le_bytes());
    record[4..8].copy_from_slice(&sum.to_le_bytes());
    record
}

/// Takes so many bytes off.
fn take<'a>(left: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = left.split_at_checked(length)?;
    *left = rest;
    Some(taken)
}

fn fixed<const N: usize>(left: &mut &[u8]) -> Option<[u8; N]> {
    take(left, N)?.try_into().ok()
}

fn bytes(left: &mut &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(fixed(left)?);
    Some(take(left, usize::try_from(length).ok()?)?.to_vec())
}

/// The record at the beginning, and how long it is; none where there is none that is whole.
fn decode(text: &[u8]) -> Option<(Record, usize)> {
    let mut left = text;
    let length = usize::try_from(u32::from_le_bytes(fixed(&mut left)?)).ok()?;
    let sum = u32::from_le_bytes(fixed(&mut left)?);
    let summed = left.get(..length.checked_add(8)?)?;
    if length == 0 || crc32fast::hash(summed) != sum {
        return None;
    }
    let mut left = summed;
    let number = u64::from_le_bytes(fixed(&mut left)?);
    let mut batch = Vec::new();
    while let Some((&kind, rest)) = left.split_first() {
        left = rest;
        let key = bytes(&mut left)?;
        batch.push(match kind {
            REMOVED => Op::Delete(key),
            WRITTEN => Op::Put(key, bytes(&mut left)?),
            _ => return None,
        });
    }
    Some((Record { number, batch }, HEADER + length))
}

/// The records of a file, each one's number one more than the last one's, and where they end.
fn records(text: &[u8]) -> (Vec<Record>, usize) {
    let (mut found, mut at): (Vec<Record>, usize) = (Vec::new(), 0);
    while let Some((record, length)) = text.get(at..).and_then(decode) {
        if found.last().is_some_and(|last| last.number + 1 != record.number) {
            break;
        }
        found.push(record);
        at += length;
    }
    (found, at)
}

/// Writes the beginning of a file once more and waits until it is on disk: what was read may be in memory alone, after a sync that
/// failed or never came. It asks for no space.
fn make_durable(file: &File, length: usize) -> io::Result<()> {
    let mut text = vec![0; length];
    file.read_exact_at(&mut text, 0)?;
    file.write_all_at(&text, 0)?;
    file.sync_data()
}

impl Journals {
    /// Reads what stands in a folder's journals after that number: the records of the file that is full, and those of the one that is
    /// written to. All of that is durable then. A file that is not there is made when it is needed, with so many bytes.
    ///
    /// # Errors
    /// [`StoreError::Engine`]; [`EngineError::Lost`] where records are missing before those that are there.
    pub(super) fn open(
        folder: &Path,
        capacity: u64,
        last: u64,
    ) -> Result<(Self, [Vec<Record>; 2]), StoreError> {
        let mut files = [None, None];
        let mut found: [(Vec<Record>, usize); 2] = Default::default();
        for (place, name) in NAMES.iter().enumerate() {
            let file = match File::options().read(true).write(true).open(folder.join(name)) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            let length = usize::try_from(file.metadata().map_err(failed)?.len()).unwrap_or(usize::MAX);
            let mut text = vec![0; length];
            file.read_exact_at(&mut text, 0).map_err(failed)?;
            found[place] = records(&text);
            files[place] = Some(file);
        }
        let first = |place: usize| found[place].0.first().map(|record| record.number);
        // The one that begins later is the one that is written to.
        let active = usize::from(first(1) > first(0));
        let [older, newer] = [1 - active, active];
        let mut after = last;
        let mut take = |place: usize| {
            let (records, end) = std::mem::take(&mut found[place]);
            // What the database has is written over.
            let kept: Vec<Record> = records.into_iter().filter(|record| record.number > last).collect();
            let Some(first) = kept.first() else {
                // One that was not finished is made anew.
                let length = files[place].as_ref().map(|file| file.metadata().map(|about| about.len()));
                if length.transpose().map_err(failed)?.is_some_and(|length| length < capacity) {
                    files[place] = None;
                }
                return Ok((kept, 0));
            };
            if first.number != after + 1 {
                return Err(EngineError::Lost { file: NAMES[place], after, first: first.number }.into());
            }
            after += kept.len() as u64;
            let file = files[place].as_ref().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
            make_durable(file, end).map_err(failed)?;
            Ok::<_, StoreError>((kept, end as u64))
        };
        let (older, _) = take(older)?;
        let (newer, at) = take(newer)?;
        let journals = Self { folder: folder.to_owned(), capacity, files, active, at };
        Ok((journals, [older, newer]))
    }

    /// Bytes of each file.
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether a record of so many bytes goes into a journal at all: a large one gains nothing by it.
    pub(super) fn takes(&self, length: usize) -> bool {
        length as u64 <= self.capacity / 4
    }

    /// Whether a record of so many bytes fits behind the last one.
    pub(super) fn fits(&self, length: usize) -> bool {
        self.at + length as u64 <= self.capacity
    }

    /// Whether the file that is written to is there, as long as it must be.
    pub(super) fn is_made(&self) -> bool {
        self.files[self.active].is_some()
    }

    /// Makes the file that is written to.
    ///
    /// # Errors
    /// What the system says; then it is not there.
    pub(super) fn make(&mut self) -> io::Result<()> {
        let path = self.folder.join(NAMES[self.active]);
        let make = || {
            let options = || File::options().read(true).write(true).to_owned();
            let file = options().create(true).truncate(true).mode(0o600).open(&path)?;
            let zeros = vec![0; 64 << 10];
            for at in (0..self.capacity).step_by(zeros.len()) {
                let length = zeros.len().min((self.capacity - at) as usize);
                file.write_all_at(&zeros[..length], at)?;
            }
            file.sync_all()?;
            // Its name, too.
            File::open(&self.folder)?.sync_all()?;
            Ok(file)
        };
        let made: io::Result<File> = make();
        if made.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        self.files[self.active] = Some(made?);
        self.at = 0;
        Ok(())
    }

    /// Writes a record that fits, and waits until it is durable.
    ///
    /// # Errors
    /// [`StoreError::Full`] on a file system that keeps no blocks for what is written over; then the record is not whole.
    /// [`StoreError::Engine`]: nobody knows whether it is there.
    pub(super) fn append(&mut self, record: &[u8]) -> Result<(), StoreError> {
        let Some(file) = &self.files[self.active] else { return Err(failed(io::ErrorKind::NotFound.into())) };
        file.write_all_at(record, self.at).map_err(|error| match is_full(&error) {
            true => StoreError::Full { missing: record.len() as u64 },
            false => failed(error),
        })?;
        file.sync_data().map_err(failed)?;
        self.at += record.len() as u64;
        Ok(())
    }

    /// Begins the other file, whose records the database has.
    pub(super) fn turn(&mut self) {
        self.active = 1 - self.active;
        self.at = 0;
    }

    /// Begins the same file again: the database has all there is.
    pub(super) fn restart(&mut self) {
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(number: u64) -> Vec<Op> {
        let value = vec![number as u8; number as usize % 7 * 50];
        vec![Op::Put(number.to_be_bytes().to_vec(), value), Op::Delete(vec![number as u8])]
    }

    /// Journals with these records, each of which is there.
    fn written(folder: &Path, numbers: impl Iterator<Item = u64>) -> Journals {
        let (mut journals, _) = Journals::open(folder, 4096, 0).unwrap();
        journals.make().unwrap();
        for number in numbers {
            journals.append(&encode(number, &batch(number))).unwrap();
        }
        journals
    }

    fn numbers(records: &[Record]) -> Vec<u64> {
        for Record { number, batch: found } in records {
            assert_eq!(*found, batch(*number));
        }
        records.iter().map(|record| record.number).collect()
    }

    #[test]
    fn what_was_written_is_read_after_the_number_that_the_database_has() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), 5..12);
        for last in 4..13 {
            let (journals, [older, newer]) = Journals::open(folder.path(), 4096, last).unwrap();
            assert!(older.is_empty());
            assert_eq!(numbers(&newer), (last + 1..12).collect::<Vec<_>>());
            assert_eq!(journals.at == 0, last >= 11, "what the database has is written over");
        }
        // Those before it were acknowledged and are missing: nothing may be written over.
        let lost = Journals::open(folder.path(), 4096, 3).unwrap_err();
        assert_eq!(lost, EngineError::Lost { file: NAMES[0], after: 3, first: 5 }.into());
    }

    #[test]
    fn records_that_are_missing_between_the_files_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut journals = written(folder.path(), 1..4);
        journals.turn();
        journals.make().unwrap();
        journals.append(&encode(4, &batch(4))).unwrap();
        let path = folder.path().join(NAMES[0]);
        let mut text = std::fs::read(&path).unwrap();
        let last = (1..3).map(|number| encode(number, &batch(number)).len()).sum::<usize>();
        text[last + HEADER] ^= 1;
        std::fs::write(&path, text).unwrap();
        let lost = Journals::open(folder.path(), 4096, 0).unwrap_err();
        assert_eq!(lost, EngineError::Lost { file: NAMES[1], after: 2, first: 4 }.into());
        // What the database has need not be there.
        assert_eq!(numbers(&Journals::open(folder.path(), 4096, 3).unwrap().1[1]), [4]);
    }

    #[test]
    fn a_file_that_was_not_finished_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAMES[0]), [0; 100]).unwrap();
        let (mut journals, _) = Journals::open(folder.path(), 4096, 0).unwrap();
        assert!(!journals.is_made());
        journals.make().unwrap();
        assert_eq!(std::fs::metadata(folder.path().join(NAMES[0])).unwrap().len(), 4096);
        assert!(Journals::open(folder.path(), 4096, 0).unwrap().0.is_made());
    }

    /// A file that is begun again holds records of before behind the new ones, and what a crash left of the last one.
    #[test]
    fn a_record_counts_where_it_is_whole_and_in_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let mut journals = written(folder.path(), 1..9);
        let path = folder.path().join(NAMES[0]);
        journals.restart();
        for number in 9..12 {
            journals.append(&encode(number, &batch(number))).unwrap();
        }
        let end = journals.at as usize;
        assert_eq!(numbers(&Journals::open(folder.path(), 4096, 8).unwrap().1[1]), [9, 10, 11]);
        let text = std::fs::read(&path).unwrap();
        let last = end - encode(11, &batch(11)).len();
        for byte in last..end {
            let mut torn = text.clone();
            torn[byte] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(numbers(&Journals::open(folder.path(), 4096, 8).unwrap().1[1]), [9, 10], "{byte}");
            // Cut off there.
            std::fs::write(&path, &text[..byte]).unwrap();
            assert_eq!(numbers(&Journals::open(folder.path(), 4096, 8).unwrap().1[1]), [9, 10], "{byte}");
        }
    }

    #[test]
    fn the_two_files_are_read_in_their_order() {
        for turns in 1..4 {
            let folder = tempfile::tempdir().unwrap();
            let mut journals = written(folder.path(), 1..4);
            let mut next = 4;
            for _ in 0..turns {
                journals.turn();
                if !journals.is_made() {
                    journals.make().unwrap();
                }
                for number in next..next + 3 {
                    journals.append(&encode(number, &batch(number))).unwrap();
                }
                next += 3;
            }
            let before = next - 3;
            // The database has what the turn before the last one wrote, or not.
            let (found, [older, newer]) = Journals::open(folder.path(), 4096, before - 4).unwrap();
            assert_eq!(numbers(&older), (before - 3..before).collect::<Vec<_>>());
            assert_eq!(numbers(&newer), (before..next).collect::<Vec<_>>());
            assert_eq!((found.active, found.at), (journals.active, journals.at));
            let (_, [older, newer]) = Journals::open(folder.path(), 4096, before - 1).unwrap();
            assert_eq!((older.len(), numbers(&newer)), (0, (before..next).collect()));
        }
    }

    #[test]
    fn foreign_bytes_are_no_record() {
        let folder = tempfile::tempdir().unwrap();
        let whole = encode(1, &batch(1));
        for text in [vec![], vec![0; 100], vec![0xff; 100], whole[..whole.len() - 1].to_vec()] {
            std::fs::write(folder.path().join(NAMES[1]), &text).unwrap();
            assert_eq!(Journals::open(folder.path(), 4096, 0).unwrap().1, [vec![], vec![]]);
        }
        // Changes that do not end where the record does.
        let mut record = encode(1, &batch(1));
        record[HEADER] = 7;
        let sum = crc32fast::hash(&record[8..]);
        record[4..8].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(decode(&record), None);
    }
}
