//! Tables of one line a row, as wide as the screen.
//!
//! Where lines have a bound, ids are cut to a prefix that is unique in the table, times to minutes, and the widest of the
//! other columns until every line fits. Where they have none, everything is told whole.

use super::screen::{columns, cut, line};
use oap_identity::Timestamp;

/// Columns between two cells.
const GAP: &str = "  ";
/// Fewest characters of a ULID that an id is cut to: its time, and two more. The first eight are the same for all of a second.
const SHORTEST_ID: usize = 12;
/// Characters of a ULID.
const ULID: usize = 26;
/// Narrowest that columns of text and of DIDs are made: first, once times are cut to days, and where that is not enough
/// either, any column.
const NARROWEST: [[usize; 2]; 2] = [[16, 24], [8, 16]];
const NARROWEST_OF_ALL: usize = 3;
/// Characters of a time to the minute, and to the day.
const MINUTE: usize = 16;
const DAY: usize = 10;
/// The prefixes of ids, as they stand in tables.
const IDS: [&str; 7] = ["mem_", "mgr_", "brg_", "pol_", "rec_", "inc_", "job_"];
/// How receipts are written out, and in short.
const RECEIPT: [&str; 2] = ["urn:oap:receipt:", "rec_"];

/// What the cells of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    /// Ids, numbers, names: whole as long as it goes.
    Whole,
    /// Times: to the minute, or to the day.
    Time,
    Did,
    /// Text, which can be cut.
    Text,
}

/// What stands for a table without rows.
pub(super) const NONE: &str = "none";

/// A table with a header; no line is wider than `width`.
pub(super) fn table(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    width: Option<usize>,
) -> String {
    let mut rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.iter().map(|cell| line(cell)).collect()).collect();
    if rows.is_empty() {
        return NONE.to_owned();
    }
    let kinds: Vec<Column> = match width {
        None => header.iter().map(|_| Column::Whole).collect(),
        Some(_) => shortened(&mut rows, header.len()),
    };
    rows.insert(0, header.iter().map(|name| (*name).to_owned()).collect());
    let widest = |number: usize| {
        rows.iter().filter_map(|row| row.get(number)).map(|cell| columns(cell.as_str())).max()
    };
    let mut widths: Vec<usize> = (0..header.len()).map(|number| widest(number).unwrap_or_default()).collect();
    if let Some(most) = width {
        fit(&mut widths, &kinds, most);
    }
    let lines = rows.iter().map(|row| {
        let mut text = String::new();
        for ((cell, width), kind) in row.iter().zip(&widths).zip(&kinds) {
            let cell = shown(cell, *width, *kind);
            text.push_str(&cell);
            text.push_str(&" ".repeat(width.saturating_sub(columns(&cell))));
            text.push_str(GAP);
        }
        text.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A cell of so many columns. A DID is told apart by both its ends; a time that has no room has its day.
fn shown(cell: &str, width: usize, kind: Column) -> String {
    let all = columns(cell);
    if kind == Column::Time && width < all && width >= DAY {
        return cell.chars().take(DAY).collect();
    }
    if !(cell.starts_with("did:") && cell.is_ascii()) || all <= width || width < 16 {
        return cut(cell, width);
    }
    let end: String = cell.chars().skip(all.saturating_sub(4)).collect();
    cut(cell, width - 4) + &end
}

/// Makes the columns narrower, the widest first: text, and ids only where that is not enough.
fn fit(widths: &mut [usize], kinds: &[Column], most: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut narrow = |least: &dyn Fn(Column) -> usize| {
        while widths.iter().sum::<usize>() + gaps > most {
            let columns = widths.iter_mut().zip(kinds);
            let wider = columns.filter(|(width, kind)| **width > least(**kind));
            let Some((width, _)) = wider.max_by_key(|(width, _)| **width) else { return };
            *width -= 1;
        }
    };
    let [first, then] = NARROWEST;
    let least = |[text, did]: [usize; 2], time: usize| {
        move |kind| match kind {
            Column::Text => text,
            Column::Did => did,
            Column::Time => time,
            Column::Whole => usize::MAX,
        }
    };
    narrow(&least(first, usize::MAX));
    narrow(&least(first, DAY));
    narrow(&least(then, DAY));
    narrow(&|_| NARROWEST_OF_ALL);
}

/// Shortens the ids and times of so many columns.
pub(super) fn shorten_all(rows: &mut [Vec<String>], columns: usize) {
    shortened(rows, columns);
}

fn shortened(rows: &mut [Vec<String>], columns: usize) -> Vec<Column> {
    (0..columns).map(|number| shorten(rows, number)).collect()
}

/// Shortens the cells of a column of ids or of times, and says what the column is.
fn shorten(rows: &mut [Vec<String>], number: usize) -> Column {
    let mut cells: Vec<&mut String> =
        rows.iter_mut().filter_map(|row| row.get_mut(number)).filter(|cell| !cell.is_empty()).collect();
    if cells.iter().all(|cell| cell.parse::<Timestamp>().is_ok()) {
        for cell in cells {
            // 2026-06-30T12:00
            *cell = cell.chars().take(MINUTE).map(|c| if c == 'T' { ' ' } else { c }).collect();
        }
        return Column::Time;
    }
    let ids: Option<Vec<(&str, String)>> = cells.iter().map(|cell| id(cell)).collect();
    if let Some(ids) = ids {
        let length = unique(&ids);
        for (cell, (prefix, ulid)) in cells.iter_mut().zip(ids) {
            **cell = format!("{prefix}{}", ulid.chars().take(length).collect::<String>());
        }
        return Column::Whole;
    }
    if cells.iter().all(|cell| cell.starts_with("did:") && cell.is_ascii()) {
        return Column::Did;
    }
    // A column of short words or numbers stays as it is while there is something else to cut.
    let short = cells.iter().all(|cell| columns(cell) <= 18 && !cell.contains(' '));
    if short { Column::Whole } else { Column::Text }
}

/// An id in its two parts.
fn id(cell: &str) -> Option<(&'static str, String)> {
    let [written, short] = RECEIPT;
    let ulid = |rest: &str| {
        (rest.len() == ULID && rest.bytes().all(|c| c.is_ascii_alphanumeric())).then(|| rest.to_owned())
    };
    if let Some(rest) = cell.strip_prefix(written) {
        return Some((short, ulid(rest)?));
    }
    let (prefix, rest) = IDS.into_iter().find_map(|prefix| Some((prefix, cell.strip_prefix(prefix)?)))?;
    Some((prefix, ulid(rest)?))
}

/// How many characters of the ids tell all of them apart.
fn unique(ids: &[(&str, String)]) -> usize {
    let mut sorted: Vec<&str> = ids.iter().map(|(_, ulid)| ulid.as_str()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    pairs.map(|(a, b)| common(a, b) + 1).max().unwrap_or_default().clamp(SHORTEST_ID, ULID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |id: &str, did: &str, text: &str| {
            vec![id.into(), did.into(), "2026-06-30T12:00:00.000Z".into(), text.into()]
        };
        vec![
            row(
                "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX",
                "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
                "東京の天気 and much more that nobody can read in one line of eighty columns",
            ),
            row(
                "mem_01J9V8B7H1ZK4D2A0M9R8F0KQY",
                "did:web:a.example",
                "short\nof two lines\u{1b}[2J\u{202e}",
            ),
        ]
    }

    const HEADER: [&str; 4] = ["item", "agent", "at", "content"];

    #[test]
    fn every_line_fits() {
        for width in 20..200 {
            let table = table(&HEADER, rows(), Some(width));
            for line in table.lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
            assert_eq!(table.lines().count(), 3);
        }
    }

    #[test]
    fn ids_stay_unique_and_nothing_is_cut_without_a_bound() {
        let ids = |length: usize| {
            let ids =
                ["AAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAABAAAAAAAAAAAA", "B1111111111111111111111111"];
            let rows = ids.map(|ulid| vec![format!("mgr_{ulid}")]);
            let text = table(&["grant"], rows, Some(80));
            text.lines().skip(1).all(|line| line.len() == length + 4)
        };
        assert!(ids(14));
        let whole = table(&HEADER, rows(), None);
        assert!(whole.contains("mem_01J9V8B7H1ZK4D2A0M9R8F0KQX") && whole.contains("eighty columns"));
        assert!(whole.contains("2026-06-30T12:00:00.000Z") && !whole.contains(['\u{1b}', '\u{202e}']));
        assert!(table(&HEADER, rows(), Some(80)).contains("did:key:z6Mkh"));
        for width in [None, Some(80)] {
            assert_eq!(table(&HEADER, [], width), "none");
        }
    }
}
