//! The members of the canonical entities: what a path of a profile may name.

/// The members that every canonical entity has (RFC 0005 section 3.3).
const COMMON: [&str; 9] = [
    "entity_type",
    "entity_version",
    "id",
    "owner_did",
    "created_at",
    "updated_at",
    "external_ids",
    "labels",
    "extensions",
];

/// The members of the entities that RFC 0007 has profiles for. A path to another member is a mistake.
const ENTITIES: [(&str, &[&str]); 3] = [
    (
        "oap.entity.contact",
        &[
            "names",
            "affiliations",
            "channels",
            "languages",
            "addresses",
            "social",
            "skills",
            "birthday",
            "notes",
            "photo",
        ],
    ),
    (
        "oap.entity.calendar_event",
        &[
            "start",
            "end",
            "transparency",
            "title",
            "visibility",
            "private",
            "participants",
            "participants_count",
            "participant_dids",
            "location_general",
            "location_precise",
            "description",
            "attachments",
            "recurrence",
            "status",
            "all_day",
            "timezone",
        ],
    ),
    (
        "oap.entity.task",
        &[
            "status",
            "title",
            "due_at",
            "priority",
            "assignee_dids",
            "description",
            "linked_entities",
            "parent",
            "completed_at",
            "project",
        ],
    ),
];

/// Whether an entity of that type can have the member. A type that is not known here can have any.
pub(super) fn has_member(entity: &str, member: &str) -> bool {
    let Some((_, members)) = ENTITIES.iter().find(|(name, _)| *name == entity) else { return true };
    COMMON.contains(&member) || members.contains(&member)
}
