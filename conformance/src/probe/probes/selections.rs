//! What a deletion selects: values of one selector are alternatives, different selectors intersect (protocol section 8).

use super::super::context::{Context, expect};
use super::super::wire::Refused;
use super::super::{Failed, Probe, Severity};
use super::{ids, owned, probe};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    vec![owned("deletions-by-selection", &["ME-06", "CO-17"], Severity::Critical, probe!(by_selection))]
}

/// The words by which four items differ.
struct Words {
    labels: [String; 3],
    subjects: [String; 3],
    tags: [String; 3],
    scope: String,
}

impl Words {
    fn new(context: &Context<'_>) -> Self {
        let words = || [context.word(), context.word(), context.word()];
        let (labels, subjects, tags) = (words(), words(), words());
        Self { labels, subjects, tags, scope: format!("probe-{}", context.word()) }
    }

    fn items(&self) -> [Value; 4] {
        let ([l1, l2, l3], [s1, s2, s3], [t1, t2, t3]) = (&self.labels, &self.subjects, &self.tags);
        let item = |labels: &[&String], subject: &String, tag: &String, day: u8| {
            json!({
                "kind": "fact", "content": {"text": format!("of day {day}")}, "labels": labels, "subject_entity_id": subject,
                "provenance": {"captured_at": format!("2021-03-0{day}T12:00:00Z"), "source": tag},
            })
        };
        let mut last = item(&[l3], s3, t3, 4);
        last["scope_id"] = json!(self.scope);
        [item(&[l1], s1, t1, 1), item(&[l2], s1, t2, 2), item(&[l1, l2], s2, t1, 3), last]
    }

    /// Selections, and the items that each selects, by number.
    fn selections(&self, made: &[String]) -> [(Value, &'static [usize]); 12] {
        let ([l1, l2, l3], [s1, s2, _], [t1, t2, _]) = (&self.labels, &self.subjects, &self.tags);
        let tag = |value: &String| format!("source={value}");
        let (early, late) = ("2021-03-01T18:00:00Z", "2021-03-02T18:00:00Z");
        let (second, third) = ("2021-03-02T12:00:00Z", "2021-03-03T12:00:00Z");
        [
            (json!({"labels": [l1]}), &[0, 2]),
            (json!({"labels": [l1, l3]}), &[0, 2, 3]),
            (json!({"subjects": [s1]}), &[0, 1]),
            (json!({"labels": [l1], "subjects": [s1]}), &[0]),
            (json!({"labels": [l3], "subjects": [s2]}), &[]),
            (json!({"scopes": [self.scope]}), &[3]),
            (json!({"provenance_tags": [tag(t1)]}), &[0, 2]),
            (json!({"provenance_tags": [tag(t1), tag(t2)], "subjects": [s1]}), &[0, 1]),
            (json!({"labels": [l1, l2], "captured_after": early, "captured_before": late}), &[1]),
            // The beginning is in it, the end is not.
            (json!({"labels": [l1, l2], "captured_after": second, "captured_before": third}), &[1]),
            (json!({"items": made.get(..2), "labels": [l2]}), &[1]),
            (json!({"labels": [l1.to_uppercase()]}), &[]),
        ]
    }
}

async fn by_selection(context: &Context<'_>) -> Result<(), Failed> {
    for number in 0.. {
        let words = Words::new(context);
        let made = context.capture(&words.items()).await?;
        let Some((selection, must)) = words.selections(&made).into_iter().nth(number) else { break };
        let must: BTreeSet<&String> = must.iter().filter_map(|number| made.get(*number)).collect();
        let command = json!({"do": "delete_selected", "selection": selection});
        let named: BTreeSet<String> = if must.is_empty() {
            // Nothing is selected: nothing is done, and nothing recorded.
            match context.try_owner(command).await? {
                Err(Refused(_)) => BTreeSet::new(),
                Ok(done) => {
                    return Err(Failed::Wrong(format!("{selection} selects nothing, and is done: {done}")));
                }
            }
        } else {
            let done = match context.try_owner(command).await? {
                Ok(done) => done,
                Err(Refused(why)) => {
                    return Err(Failed::Wrong(format!(
                        "a deletion by {selection} selects {must:?}, and is refused: {why}"
                    )));
                }
            };
            let named =
                done["deletion_receipt"].pointer("/scope/cascade/named").and_then(Value::as_array).cloned();
            named.into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned)).collect()
        };
        expect(named.iter().collect::<BTreeSet<_>>() == must, || {
            let place = |id: &String| made.iter().position(|made| made == id);
            let got: Vec<Option<usize>> = named.iter().map(place).collect();
            format!("a deletion by {selection} names {got:?}, must name {must:?} of {made:?}")
        })?;
        if context.declared().max_items < 3 {
            continue;
        }
        let grantee = context.stranger();
        let mut draft = context.draft(&grantee, "", 1);
        draft["filter"] = json!({"labels_any": words.labels});
        let session = context.session(grantee, draft).await?;
        let answer = context.answer(&session, &json!({})).await?;
        let left: BTreeSet<&str> = ids(&answer).into_iter().collect();
        let stays: BTreeSet<&str> =
            made.iter().take(3).filter(|id| !must.contains(id)).map(String::as_str).collect();
        expect(left == stays, || {
            format!("behind a deletion by {selection} {left:?} are left, must be {stays:?}")
        })?;
    }
    Ok(())
}
