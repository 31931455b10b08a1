//! Citations within the text: `\u{e200}cite\u{e202}turn0search3\u{e201}` and `【4†source】`.

use oap_identity::json::parse_foreign;
use serde_json::Value;

/// Most references of a message that are looked at.
const MAX_REFERENCES: usize = 1000;
/// Longest mark, in bytes.
const MAX_MARK: usize = 4096;
const OPEN: char = '\u{e200}';
const CLOSE: char = '\u{e201}';
const NEXT: char = '\u{e202}';

/// The text with each mark replaced by the link that the message says it stands for, or removed.
pub(super) fn clean(text: &str, metadata: &Value) -> String {
    if !text.contains(|c: char| c == '【' || is_private(c)) {
        return text.to_owned();
    }
    let links = links(text, metadata);
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c == '【' || is_private(c)) {
        cleaned.push_str(&rest[..start]);
        let (mark, after) = mark(&rest[start..]);
        rest = after;
        let link = links.iter().find(|(known, _)| *known == mark).map(|(_, link)| link.clone());
        let link = link.or_else(|| inner_link(mark)).unwrap_or_default();
        if mark.starts_with('【') && !mark.contains('†') {
            cleaned.push_str(mark);
        } else if !link.is_empty() {
            cleaned.push_str(&link);
        } else if rest.is_empty() || rest.starts_with(['.', ',', ';', ':', '!', '?', ' ', '\n', ')']) {
            // The space that stood before the mark.
            cleaned.truncate(cleaned.trim_end_matches(' ').len());
        }
    }
    cleaned.push_str(rest);
    cleaned
}

/// Characters that the vendor's markup uses.
fn is_private(c: char) -> bool {
    ('\u{e200}'..='\u{e20f}').contains(&c)
}

/// The mark that the text begins with, and the rest.
fn mark(text: &str) -> (&str, &str) {
    let close = match text.chars().next() {
        Some('【') => '】',
        Some(OPEN) => CLOSE,
        other => return text.split_at(other.map_or(0, char::len_utf8)),
    };
    let end = text.find(close).filter(|end| *end <= MAX_MARK).map(|end| end + close.len_utf8());
    // One that does not end is a character like any other.
    text.split_at(end.unwrap_or_else(|| text.chars().next().map_or(0, char::len_utf8)))
}

/// What the message says that its marks stand for.
fn links<'a>(text: &'a str, metadata: &'a Value) -> Vec<(&'a str, String)> {
    let mut links: Vec<(&str, String)> = Vec::new();
    let references = metadata["content_references"].as_array().map(Vec::as_slice).unwrap_or_default();
    for reference in references.iter().take(MAX_REFERENCES) {
        if let Some(mark) = reference["matched_text"].as_str().filter(|mark| !mark.is_empty()) {
            let item = reference["items"].as_array().and_then(|items| items.first()).unwrap_or(reference);
            let link = reference["alt"].as_str().filter(|alt| !alt.is_empty()).map(str::to_owned);
            links.push((mark, link.or_else(|| link_to(item)).unwrap_or_default()));
        }
    }
    let citations = metadata["citations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if citations.is_empty() {
        return links;
    }
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let place = |value: &Value| starts.get(usize::try_from(value.as_u64()?).ok()?).copied();
    for citation in citations.iter().take(MAX_REFERENCES) {
        let start = place(&citation["start_ix"]);
        let end = place(&citation["end_ix"]);
        if let Some(mark) = start.zip(end).and_then(|(start, end)| text.get(start..end))
            && let Some(link) = link_to(&citation["metadata"])
        {
            links.push((mark, link));
        }
    }
    links
}

fn link_to(page: &Value) -> Option<String> {
    let url = page["url"].as_str().filter(|url| url.starts_with("http"))?;
    let title = page["title"].as_str().filter(|title| !title.is_empty()).unwrap_or(url);
    Some(format!("([{title}]({url}))"))
}

/// What a mark says by itself: the link of `url`, the name of `entity`.
fn inner_link(mark: &str) -> Option<String> {
    let inner = mark.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    let parts: Vec<&str> = inner.split(NEXT).collect();
    match parts.as_slice() {
        ["url", title, url] if url.starts_with("http") => Some(format!("[{title}]({url})")),
        ["url", title, _] => Some((*title).to_owned()),
        ["entity", said] => parse_foreign(said).ok()?[1].as_str().map(str::to_owned),
        _ => None,
    }
}
