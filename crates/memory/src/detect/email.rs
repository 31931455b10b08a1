//! E-mail addresses, internationalized ones too (RFC 6531), without quoted local parts.

use std::ops::Range;

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    text.match_indices('@').filter_map(|(at, _)| around(text, at)).collect()
}

/// The address around an `@`, if there is one.
fn around(text: &str, at: usize) -> Option<Range<usize>> {
    let (before, after) = super::around(text, &(at..at + 1));
    let local = before.get(before.trim_end_matches(is_local).len()..)?;
    // Punctuation that may stand in a local part, but before an address rather stands in the sentence.
    let local = super::secret::after_name(local.trim_start_matches(|c: char| !c.is_alphanumeric()));
    let start = at - local.len();
    let end = after.find(|c: char| !is_domain(c)).unwrap_or(after.len());
    let domain = after.get(..end)?.trim_end_matches(['.', '-', '_']);
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
