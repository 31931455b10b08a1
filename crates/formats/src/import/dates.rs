//! Dates as people read them, in the languages of Google's pages: `Apr 12, 2026, 3:34:31 PM EDT`.

use oap_identity::Timestamp;

/// Longest text that can be a date, in bytes.
const MAX_DATE: usize = 96;

/// Names of months, by their first letters.
const MONTHS: [&[&str]; 12] = [
    &["jan", "ene", "gen", "янв"],
    &["feb", "fev", "fév", "фев"],
    &["mar", "mär", "mrt", "мар"],
    &["apr", "abr", "avr", "апр"],
    &["may", "mai", "mag", "mei", "maj", "мая", "май"],
    &["jun", "juin", "giu", "июн"],
    &["jul", "juil", "lug", "июл"],
    &["aug", "ago", "aoû", "aou", "авг"],
    &["sep", "set", "сен"],
    &["oct", "okt", "out", "ott", "окт"],
    &["nov", "ноя"],
    &["dec", "dez", "dic", "déc", "дек"],
];

/// Minutes east of UTC.
const ZONES: [(&str, i64); 26] = [
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("BST", 60),
    ("WEST", 60),
    ("CET", 60),
    ("MEZ", 60),
    ("CEST", 120),
    ("MESZ", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("IST", 330),
    ("JST", 540),
    ("KST", 540),
    ("AEST", 600),
    ("AEDT", 660),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("BRT", -180),
];

/// Reads a date with a time of day. An unknown zone counts as UTC.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    if text.len() > MAX_DATE {
        return None;
    }
    if let Ok(at) = text.trim().parse() {
        return Some(at);
    }
    let plain: String =
        text.chars().map(|c| if c.is_whitespace() || ",年月日".contains(c) { ' ' } else { c }).collect();
    let (mut clock, mut half, mut zone) = (None, None, 0);
    let (mut numbers, mut month) = (Vec::new(), None);
    for word in plain.split(' ').filter(|word| !word.is_empty()) {
        if let Some(found) = parse_clock(word) {
            clock = Some(found);
        } else if let Some(found) = parse_half(word) {
            half = Some(found);
        } else if let Some(found) = parse_zone(word, text.contains('年')) {
            zone = found;
        } else if word.starts_with(|c: char| c.is_ascii_digit()) {
            let parts = word.split(['.', '/', '-']).filter(|part| !part.is_empty());
            numbers.extend(parts.map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>()?);
        } else {
            month = month.or_else(|| parse_month(word));
        }
    }
    let (hour, minute, second) = clock?;
    let hour = match half {
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
        None => hour,
    };
    let (year, month, day) = match (numbers.as_slice(), month) {
        ([year @ 1000..=9999, day], Some(month)) | ([day, year @ 1000..=9999], Some(month)) => {
            (*year, month, *day)
        }
        ([year @ 1000..=9999, month, day], None) | ([day, month, year @ 1000..=9999], None) => {
            (*year, *month, *day)
        }
        _ => return None,
    };
    let date = chrono::NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let at = date.and_hms_opt(hour, minute, second)?.and_utc().timestamp_millis();
    Some(Timestamp::from_millis(at - zone * 60_000))
}

/// `3:34:31`, or with points.
fn parse_clock(word: &str) -> Option<(u32, u32, u32)> {
    let parts: Vec<&str> = word.split([':', '.']).collect();
    let [hour, minute, second] = parts.as_slice() else { return None };
    let number = |part: &str| (1..=2).contains(&part.len()).then(|| part.parse().ok()).flatten();
    Some((number(hour)?, number(minute)?, number(second)?))
}

/// Whether it is the afternoon.
fn parse_half(word: &str) -> Option<bool> {
    match word.replace('.', "").to_lowercase().as_str() {
        "am" | "午前" | "上午" | "오전" => Some(false),
        "pm" | "午後" | "下午" | "오후" => Some(true),
        _ => None,
    }
}

/// Minutes east of UTC; `CST` is China's in dates that are written as there.
fn parse_zone(word: &str, chinese: bool) -> Option<i64> {
    if word == "CST" && chinese {
        return Some(480);
    }
    if let Some((_, minutes)) = ZONES.iter().find(|(name, _)| *name == word) {
        return Some(*minutes);
    }
    let offset = word.strip_prefix("GMT").or_else(|| word.strip_prefix("UTC"))?.replace('\u{2212}', "-");
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':').unwrap_or((offset.get(1..)?, "0"));
    Some(sign * (hours.parse::<i64>().ok()?.min(14) * 60 + minutes.parse::<i64>().ok()?.min(59)))
}

fn parse_month(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let at = MONTHS.iter().position(|names| names.iter().any(|name| word.starts_with(name)))?;
    u32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_several_languages() {
        for (text, at) in [
            ("Apr 12, 2026, 3:34:31\u{202f}PM EDT", "2026-04-12T19:34:31.000Z"),
            ("12 Apr 2026, 15:34:31 BST", "2026-04-12T14:34:31.000Z"),
            ("20.06.2026, 00:28:51 MESZ", "2026-06-19T22:28:51.000Z"),
            ("10 de mai. de 2026, 03:46:09 BRT", "2026-05-10T06:46:09.000Z"),
            ("2026年6月20日 00:28:51 CST", "2026-06-19T16:28:51.000Z"),
            ("3 févr. 2026, 12:00:00 UTC+01:00", "2026-02-03T11:00:00.000Z"),
            ("2026-09-02T12:00:00Z", "2026-09-02T12:00:00.000Z"),
        ] {
            assert_eq!(parse(text).map(|t| t.to_string()).as_deref(), Some(at), "{text}");
        }
        for nothing in
            ["", "Apr 12, 2026", "3:34:31", "45.45.2026, 10:00:00", "Read 3 files at 10:00:00 please 7 1 2"]
        {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }
}
