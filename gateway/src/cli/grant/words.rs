//! A grant in plain words.

use super::draft::File;
use crate::api::grants::{GrantDraft, GrantInfo};
use oap_grants::{GrantState, Operation};
use oap_identity::{ScopeId, Timestamp};
use oap_memory::Filter;
use oap_memory::profile::NAME_PREFIX;
use std::fmt::Display;
use std::time::Duration;

/// What each level of `memory.v1` shows.
const LEVELS: [&str; 5] = [
    "only that an item of a kind was captured, and when",
    "kind, time, labels and subject, no text",
    "the text too, with every personal span hidden",
    "the text, with only third parties and credentials hidden",
    "everything, as you see it yourself",
];

/// How long before its end a list says so of a grant.
const SOON: Duration = Duration::from_secs(7 * 86_400);

/// A grant as its owner sees it, in sentences.
pub(in crate::cli) fn shown(info: &GrantInfo, now: Timestamp) -> String {
    let grant = &info.grant;
    let standing = match info.state {
        GrantState::Revoked => format!("was revoked{}", at(" on ", info.revoked_at)),
        GrantState::Expired => format!("ended on {}", minute(grant.expires_at)),
        GrantState::Draft => format!("will hold from {} on", at("", grant.not_before)),
        GrantState::Active => {
            format!("is active until {} ({})", minute(grant.expires_at), left(grant.expires_at, now))
        }
    };
    let mut text = format!("{}\nIt {standing}.\n\n", grant.grant_id);
    let mut say = |name: &str, value: String| text.push_str(&format!("{name:<9} {value}\n"));
    for (name, value) in terms(&File::of(grant).grant) {
        say(name, value);
    }
    say("So far", format!("{} of at most {} distinct items shown", info.disclosed, grant.max_items));
    say("Issued", minute(grant.issued_at));
    if info.delegated {
        say("Made by", "a grantee of yours, who passed on what they were given".to_owned());
    }
    text.push_str("\nThe signed document: --json, or --out FILE to hand it over again.");
    text
}

/// What a grant allows, line by line.
pub(super) fn terms(draft: &GrantDraft) -> Vec<(&'static str, String)> {
    let mut lines = vec![("To", draft.grantee.to_string()), ("For", draft.purpose.clone())];
    if !draft.purpose_codes.is_empty() {
        lines.push(("Purposes", draft.purpose_codes.join(", ")));
    }
    lines.push(("Items", selected(&draft.filter, draft.scope.as_ref())));
    let level = usize::from(draft.trust_level.get());
    let profile = draft.redaction_profile.trim_start_matches(NAME_PREFIX);
    let shows = match profile {
        "memory.v1" => LEVELS.get(level).copied().unwrap_or_default().to_owned(),
        other => format!("what `profile show {other}` says of it"),
    };
    lines.push(("Level", format!("{level}, {}, of {profile}", draft.trust_level.name())));
    lines.push(("They see", shows));
    let mut may = vec!["ask"];
    may.extend(draft.operations.contains(&Operation::Export).then_some("take a bundle along"));
    may.extend(draft.operations.contains(&Operation::Subscribe).then_some("be told of changes"));
    may.extend(draft.embedding_access.then_some("see embeddings"));
    let passing = draft.delegable.map(|d| format!("pass it on, {} deep", d.max_depth));
    may.extend(passing.as_deref());
    lines.push(("They may", may.join(", ")));
    if let Some(budget) = draft.budget {
        let queries = budget.queries.map(|n| format!("{n} queries"));
        let epsilon = budget.epsilon.map(|n| format!("an inference budget of {n}"));
        lines.push(("Budget", queries.into_iter().chain(epsilon).collect::<Vec<_>>().join(", ")));
    }
    if draft.bearer {
        lines.push(("Token", "a plain one, which whoever has it can use".to_owned()));
    }
    lines.push(("Ground", draft.lawful_basis.as_str().replace('_', " ")));
    lines
}

/// What a filter selects, where nothing says of which scope.
pub(super) fn selected_by(filter: &Filter) -> String {
    selected(filter, None::<&ScopeId>)
}

/// What a filter selects.
fn selected(filter: &Filter, scope: Option<&impl Display>) -> String {
    let mut said = Vec::new();
    let mut say = |what: &str, list: Option<Vec<String>>| {
        if let Some(list) = list {
            said.push(if list.is_empty() {
                "none at all".to_owned()
            } else {
                format!("{what} {}", list.join(" or "))
            });
        }
    };
    fn texts<T: Display>(list: Option<&Vec<T>>) -> Option<Vec<String>> {
        list.map(|list| list.iter().map(ToString::to_string).collect())
    }
    say("of kind", texts(filter.kinds.as_ref()));
    say("labelled", texts(filter.labels_any.as_ref()));
    say("labelled all of", filter.labels_all.as_ref().map(|labels| vec![labels.join(", ")]));
    say("never labelled", texts(filter.exclude_labels.as_ref()));
    say("about", texts(filter.subject_entity_ids.as_ref()));
    say("captured from", filter.captured_after.map(|t| vec![minute(t)]));
    say("captured before", filter.captured_before.map(|t| vec![minute(t)]));
    say("of confidence from", filter.min_confidence.map(|c| vec![c.get().to_string()]));
    say("of sensitivity", texts(filter.sensitivities.as_ref()));
    let scopes = match (&filter.scopes, scope) {
        (Some(scopes), _) => texts(Some(scopes)).unwrap_or_default().join(" or "),
        (None, Some(scope)) => scope.to_string(),
        (None, None) => "the default scope".to_owned(),
    };
    let all = if said.is_empty() { "all".to_owned() } else { said.join("; ") };
    format!("{all}; of scope {scopes}")
}

/// A time to the minute, in UTC.
pub(in crate::cli) fn minute(at: Timestamp) -> String {
    let text: String = at.to_string().chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect();
    text + " UTC"
}

fn at(before: &str, time: Option<Timestamp>) -> String {
    time.map(|time| format!("{before}{}", minute(time))).unwrap_or_default()
}

/// The state of a grant in a list; of one in force that ends soon, how long it still holds.
pub(super) fn standing(state: GrantState, ends: Timestamp, now: Timestamp) -> String {
    match state {
        GrantState::Active if ends <= now.plus(SOON) => left(ends, now),
        state => state.as_str().to_owned(),
    }
}

/// How long until an end.
pub(in crate::cli) fn left(end: Timestamp, now: Timestamp) -> String {
    let seconds = end.seconds().saturating_sub(now.seconds()).max(0);
    match (seconds / 86_400, seconds / 3600, seconds / 60) {
        (0, 0, 1) => "1 minute left".to_owned(),
        (0, 0, minutes) => format!("{minutes} minutes left"),
        (0, 1, _) => "1 hour left".to_owned(),
        (0, hours, _) => format!("{hours} hours left"),
        (1, ..) => "1 day left".to_owned(),
        (days, ..) => format!("{days} days left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_within_a_week_is_marked() {
        let now = Timestamp::from_seconds(1_777_636_800);
        let of = |state, seconds: u64| standing(state, now.plus(Duration::from_secs(seconds)), now);
        let active = GrantState::Active;
        assert_eq!(of(active, 7 * 86_400 + 1), "active");
        assert_eq!(of(active, 7 * 86_400), "7 days left");
        assert_eq!(of(active, 90), "1 minute left");
        for over in [GrantState::Revoked, GrantState::Expired, GrantState::Draft] {
            assert_eq!(of(over, 60), over.as_str());
        }
    }
}
