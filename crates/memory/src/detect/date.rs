//! Dates of birth: a date that follows a word of birth.

use std::ops::Range;
use std::sync::LazyLock;

static PATTERN: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?ix)
        (?: \b(?:born|birthday|birth\ ?date|birthdate|date\ of\ birth|d\.?o\.?b\.?|geboren|geb\.|geburtsdatum|geburtstag|née|né)\b
          | (?:^|[\s(])[*]\ ?
          | \bgeb\.
        )
        # up to five short words between
        (?:[\s:,–-]+(?:on|in|the|is|was|am|ist|den|dem|war|it|his|her|your|my|falls|of|born|date)\b){0,4}
        [\s:,.–(-]*
        (?<date>
            [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
          | [0-9]{1,2}[./-]\ ?[0-9]{1,2}[./-]\ ?(?:19|20)?[0-9]{2}\b
          | [0-9]{1,2}(?:\.|st|nd|rd|th)?\ (?:of\ )?(?:jan(?:uary|uar)?|jänner|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|okt(?:ober)?|nov(?:ember)?|dec(?:ember)?|dez(?:ember)?)\.?(?:,?\ (?:19|20)[0-9]{2})?
          | (?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?\ [0-9]{1,2}(?:st|nd|rd|th)?(?:,?\ (?:19|20)[0-9]{2})?
        )\b",
    )
});

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    PATTERN.captures_iter(text).filter_map(|c| c.name("date")).map(|m| m.range()).collect()
}
