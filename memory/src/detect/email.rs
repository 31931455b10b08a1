//! E-mail addresses, internationalized ones too (RFC 6531), without quoted local parts.

use std::ops::Range;

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    text.match_indices('@').filter_map(|(at, _)| around(text, at)).collect()
}

/// The address around an `@`, if there is one.
fn around(text: &str, at: usize) -> Option<Range<usize>> {
    let local = text[..at].trim_end_matches(is_local);
    // Punctuation that may stand in a local part, but before an address rather stands in the sentence.
    let start = at - text[local.len()..at].trim_start_matches(|c: char| !c.is_alphanumeric()).len();
    let domain = &text[at + 1..];
    let end = domain.find(|c: char| !is_domain(c)).unwrap_or(domain.len());
    let domain = domain[..end].trim_end_matches(['.', '-', '_']);
    (start < at && is_domain_name(domain)).then(|| start..at + 1 + domain.len())
}

fn is_local(c: char) -> bool {
    c.is_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c)
}

fn is_domain(c: char) -> bool {
    c.is_alphanumeric() || c == '.' || c == '-'
}

fn is_domain_name(domain: &str) -> bool {
    let label = |l: &str| !l.is_empty() && !l.starts_with('-') && !l.ends_with('-');
    let top = domain.rsplit('.').next().unwrap_or_default();
    let is_top = top.chars().count() >= 2 && top.chars().all(char::is_alphabetic) || top.starts_with("xn--");
    domain.contains('.') && domain.split('.').all(label) && is_top
}
