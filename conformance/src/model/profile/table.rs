//! The tables of protocol section 7, written down once more.

use crate::model::rule::{SpanClass, closed};
use std::fmt;

closed! {
    /// A table: that of an entity, or that of every other item under a profile.
    Table {
        Memory = "memory.v1",
        Full = "full.v1",
        Contact = "contact.v1, a contact",
        ContactOther = "contact.v1, any other item",
        CalendarEvent = "calendar_event.v1, a calendar event",
        CalendarOther = "calendar_event.v1, any other item",
        Task = "task.v1, a task",
        TaskOther = "task.v1, any other item",
    }
}

/// How a level shows the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Text {
    /// Not at all.
    Hidden,
    /// With only these classes of spans.
    Spans(&'static [SpanClass]),
    Full,
}

/// A field of a table, and the level from which on it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Field {
    pub from: u8,
    /// Its path: members by dots, `a[]` every element, `a[x=1]` those elements.
    pub path: &'static str,
}

const fn field(from: u8, path: &'static str) -> Field {
    Field { from, path }
}

/// Shown whole from level 4 on under every table but `full.v1`, which needs level 4; `content.text` has a rule of its own.
const REST: [Field; 14] = [
    field(4, "scope_id"),
    field(4, "subject_entity_id"),
    field(4, "labels"),
    field(4, "content.structured"),
    field(4, "provenance.confidence"),
    field(4, "provenance.*"),
    field(4, "embedding"),
    field(4, "ttl_days"),
    field(4, "expires_at"),
    field(4, "exportable"),
    field(4, "sensitivity"),
    field(4, "derived_from"),
    field(4, "extensions"),
    field(4, "content.structured.entity_type"),
];

/// Shown from level 0 on under every table.
const KIND: [Field; 2] = [field(0, "kind"), field(0, "provenance.captured_at")];

const GENERAL: [Field; 2] = [field(1, "labels"), field(1, "subject_entity_id")];

const CONTACT: [Field; 10] = [
    field(0, "content.structured.names.given"),
    field(0, "content.structured.names.family"),
    field(1, "content.structured.affiliations[].organization_id"),
    field(1, "content.structured.affiliations[].role"),
    field(2, "content.structured.channels[type=email,primary=true]"),
    field(2, "content.structured.languages"),
    field(3, "content.structured.channels"),
    field(3, "content.structured.addresses"),
    field(3, "content.structured.social"),
    field(3, "content.structured.skills"),
];

const CALENDAR_EVENT: [Field; 7] = [
    field(0, "content.structured.start"),
    field(0, "content.structured.end"),
    field(0, "content.structured.transparency"),
    field(1, "content.structured.title"),
    field(2, "content.structured.participants_count"),
    field(3, "content.structured.participant_dids"),
    field(3, "content.structured.location_general"),
];

const TASK: [Field; 6] = [
    field(0, "content.structured.status"),
    field(1, "content.structured.title"),
    field(1, "content.structured.due_at"),
    field(2, "content.structured.priority"),
    field(2, "content.structured.assignee_dids"),
    field(3, "content.structured.description"),
];

/// What level 3 shows: all but third parties, credentials, and spans that were joined.
const NOT_OF_OTHERS: &[SpanClass] = &[
    SpanClass::Iban,
    SpanClass::Card,
    SpanClass::NationalId,
    SpanClass::Email,
    SpanClass::Ip,
    SpanClass::Phone,
    SpanClass::DateOfBirth,
    SpanClass::StreetAddress,
];

impl Table {
    /// The table for an item of that entity type under a built-in profile; `None` for any other profile.
    #[must_use]
    pub fn of(profile: &str, entity_type: Option<&str>) -> Option<Self> {
        let name = profile.strip_prefix("oap.profile.projection.")?;
        let entity = entity_type.and_then(|entity| entity.strip_prefix("oap.entity."));
        Some(match (name, entity) {
            ("memory.v1", _) => Self::Memory,
            ("full.v1", _) => Self::Full,
            ("contact.v1", Some("contact")) => Self::Contact,
            ("contact.v1", _) => Self::ContactOther,
            ("calendar_event.v1", Some("calendar_event")) => Self::CalendarEvent,
            ("calendar_event.v1", _) => Self::CalendarOther,
            ("task.v1", Some("task")) => Self::Task,
            ("task.v1", _) => Self::TaskOther,
            _ => return None,
        })
    }

    /// The hash of a built-in profile's document (bytes 5.1).
    #[must_use]
    pub fn hash(profile: &str) -> Option<&'static str> {
        Some(match profile.strip_prefix("oap.profile.projection.")? {
            "memory.v1" => "sha256:fa9ad0c6d5a140b95fb48904495fd103811913ad5412fe1971eeb0a9dba337d6",
            "full.v1" => "sha256:f2e3870b35e6d074b92fc1803315a5312fe46b10536600ed7e26f0c9e5ffd77e",
            "contact.v1" => "sha256:c38b8b314c01c753c738eafd2a52d98a9f9f5007b762d9a47a76ffe6ebc7cf03",
            "calendar_event.v1" => "sha256:d0b9e506175ae81452fb9c5b0040c90a68a62b14a3415ad170627b873ebab6f4",
            "task.v1" => "sha256:f963a26740848c3eb002766c4d65c4b52244614c9248672ea4fe3cd22529dd79",
            _ => return None,
        })
    }

    /// `redacted_field_count` of a built-in profile at a level (protocol section 6): of each of its tables the entries that higher levels add, the
    /// last one `*`, and one more where the level hides text.
    #[must_use]
    pub fn redacted(profile: &str, level: u8) -> Option<u64> {
        let tables: &[Self] = match profile.strip_prefix("oap.profile.projection.")? {
            "memory.v1" | "full.v1" => &[Self::Memory],
            "contact.v1" => &[Self::Contact, Self::ContactOther],
            "calendar_event.v1" => &[Self::CalendarEvent, Self::CalendarOther],
            "task.v1" => &[Self::Task, Self::TaskOther],
            _ => return None,
        };
        let withheld = |table: &Self| {
            let added = KIND.iter().chain(table.own()).filter(|field| field.from > level).count();
            added + usize::from(level < 4) + usize::from(table.text(level) == Text::Hidden)
        };
        u64::try_from(tables.iter().map(withheld).sum::<usize>()).ok()
    }

    /// The fields that its levels 0 to 3 add to those of every table.
    const fn own(self) -> &'static [Field] {
        match self {
            Self::Contact => &CONTACT,
            Self::CalendarEvent => &CALENDAR_EVENT,
            Self::Task => &TASK,
            _ => &GENERAL,
        }
    }

    const fn is_general(self) -> bool {
        matches!(self, Self::Memory | Self::ContactOther | Self::CalendarOther | Self::TaskOther)
    }

    /// The levels at which a grant may name the profile.
    #[must_use]
    pub const fn levels(self) -> &'static [u8] {
        if matches!(self, Self::Full) { &[4] } else { &[0, 1, 2, 3, 4] }
    }

    /// Its fields, with the level from which on each is shown. A field that stands twice is shown from the lower one on.
    #[must_use]
    pub fn fields(self) -> Vec<Field> {
        let mut fields: Vec<Field> = KIND.iter().chain(self.own()).copied().collect();
        let more: Vec<Field> =
            REST.iter().copied().filter(|rest| fields.iter().all(|field| field.path != rest.path)).collect();
        fields.extend(more);
        fields
    }

    /// How a level shows the text.
    #[must_use]
    pub const fn text(self, level: u8) -> Text {
        match (self, level) {
            (_, 4..) => Text::Full,
            (table, 2) if table.is_general() => Text::Spans(&[]),
            (table, 3) if table.is_general() => Text::Spans(NOT_OF_OTHERS),
            _ => Text::Hidden,
        }
    }
}

/// What a cell of a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// A field, by its path.
    Field(&'static str),
    /// The text as a whole.
    Text,
    /// Spans of a class.
    Span(SpanClass),
}

/// One cell: what one level of one table shows of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Cell {
    pub table: Table,
    pub level: u8,
    pub column: Column,
}

impl Cell {
    /// Every cell.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for table in Table::ALL.iter().copied() {
            let mut columns: Vec<Column> =
                table.fields().iter().map(|field| Column::Field(field.path)).collect();
            columns.push(Column::Text);
            columns.extend(SpanClass::ALL.iter().map(|class| Column::Span(*class)));
            for level in table.levels() {
                all.extend(columns.iter().map(|column| Self { table, level: *level, column: *column }));
            }
        }
        all
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, level, column } = self;
        match column {
            Column::Field(path) => write!(f, "{table}, level {level}: {path}"),
            Column::Text => write!(f, "{table}, level {level}: content.text"),
            Column::Span(class) => write!(f, "{table}, level {level}: spans of class {class}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the page says of `memory.v1`; the others counted by hand in the documents of bytes 5.1.
    #[test]
    fn withheld_fields_are_counted() {
        for (name, counts) in [
            ("memory", [4, 2, 1, 1, 0]),
            ("contact", [14, 10, 7, 3, 0]),
            ("calendar_event", [10, 7, 5, 3, 0]),
            ("task", [11, 7, 4, 3, 0]),
        ] {
            let profile = format!("oap.profile.projection.{name}.v1");
            let all: Vec<Option<u64>> = (0..=4).map(|level| Table::redacted(&profile, level)).collect();
            assert_eq!(all, counts.map(Some), "{name}");
        }
    }
}
