//! Street addresses, as they are written in German and in English.

use super::overlap::at_each_group;
use std::ops::Range;
use std::sync::LazyLock;

static PATTERN: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?x)
        # Hauptstraße 12a, 10115 Berlin; Am Alten Markt 5; Unter den Linden 77
        \b(?:\p{Lu}[\p{L}.'-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|ring|damm|ufer|chaussee|steig|markt|hof|graben|promenade)
            |(?:\p{Lu}[\p{L}'-]*[\ -]){1,3}(?:Straße|Strasse|Str\.|Weg|Platz|Allee|Gasse|Ring|Damm|Ufer|Chaussee|Markt|Promenade)
            |(?:Am|An\ der|An\ den|Im|In\ der|In\ den|Auf\ dem|Auf\ der|Unter\ den|Zum|Zur|Beim)\ (?:\p{Lu}[\p{L}'-]*\ ){0,2}\p{Lu}[\p{L}'-]*)
        \ [0-9]{1,4}(?:\ ?[a-hA-H]\b)?
        (?:,?\ (?:[DAL]-)?[0-9]{4,5}\ \p{Lu}[\p{L}'-]*(?:\ (?:am|an\ der|im)\ \p{Lu}\p{L}+)?)?
        # 221B Baker Street, Flat 2, London NW1 6XE; 1600 Pennsylvania Avenue NW, Washington, DC 20500
      | \b[0-9]{1,5}[A-Za-z]?(?:\ [NSEW]\.?)?(?:\ (?:\p{Lu}[\p{L}.'-]*|[0-9]{1,3}(?:st|nd|rd|th))){1,4}
        \ (?:Street|St\b\.?|Avenue|Ave\b\.?|Road|Rd\b\.?|Boulevard|Blvd\b\.?|Lane|Ln\b\.?|Drive|Dr\b\.?|Court|Ct\b\.?|Square|Sq\b\.?|Place|Terrace|Crescent|Way|Highway|Hwy\b\.?|Close|Gardens|Grove|Mews|Parkway|Pkwy\b\.?)
        (?:\ (?:N|S|E|W|NE|NW|SE|SW)\b)?
        (?:,?\ (?:Apt\.?|Apartment|Suite|Ste\.?|Unit|Flat|Floor|\#)\ ?[A-Za-z0-9-]{1,5})?
        (?:,\ \p{Lu}[\p{L}'-]*(?:\ \p{Lu}\p{Ll}[\p{L}'-]*)?(?:,?\ [A-Z]{2}\ [0-9]{5}(?:-[0-9]{4})?|,?\ [A-Z]{1,2}[0-9][A-Z0-9]?\ ?[0-9][A-Z]{2})?)?
        ",
    )
});

/// What has the form of an address and is a time, a distance, or a place in a book.
static OTHER: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?x)
        ^(?:Am|Im|In\ den|In\ der|Auf\ der|Zum|Zur)\ (?:Jahre?|Jahren|Januar|Februar|März|April|Mai|Juni|Juli|August|September
            |Oktober|November|Dezember|Frühjahr|Frühling|Sommer|Herbst|Winter|Montag|Dienstag|Mittwoch|Donnerstag|Freitag
            |Samstag|Sonntag|Alter|Kapitel|Abschnitt|Artikel|Teil|Band|Raum|Zimmer|Gleis|Saal|Block|Schnitt|Seite|Stufe)\ [0-9]
      | ^[0-9]+\ (?:Miles?|Minutes?|Hours?|Days?|Steps?|Years?|Kilometers?)\ ",
    )
});

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let is_other = |range: &Range<usize>| text.get(range.clone()).is_some_and(|said| OTHER.is_match(said));
    at_each_group(&PATTERN, text, char::is_whitespace).filter(|range| !is_other(range)).collect()
}
