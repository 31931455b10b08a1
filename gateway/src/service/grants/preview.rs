//! What a grant would show, before it is signed.

use crate::api::grants::{GrantDraft, Preview, PreviewItem};
use crate::error::Error;
use crate::service::{Grants, Items};
use crate::state::commits::until_it_holds;
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_exchange::gate::Report;
use oap_grants::Grant;
use oap_memory::item::Kind;
use oap_memory::receipt::Outcome;
use oap_memory::{Filter, TrustLevel};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Items shown whole in a preview.
const PREVIEWED: usize = 100;

impl Grants<'_> {
    /// What a grant would show, were it issued now.
    ///
    /// # Errors
    /// [`Error::Limit`], naming the member.
    pub async fn preview(self, _: &Owner<impl Permits<Admin>>, draft: GrantDraft) -> Result<Preview, Error> {
        let (_, grant) = self.grant_of(draft)?;
        until_it_holds(|| async {
            let (gateway, grant) = (self.0.clone(), grant.clone());
            let preview = blocking(move || Grants(&gateway).preview_of(&grant)).await;
            if matches!(preview, Err(Error::Overtaken)) {
                self.0.caught_up().await?;
            }
            preview
        })
        .await
    }

    fn preview_of(self, grant: &Grant) -> Result<Preview, Error> {
        let own_agent = grant.grantee == self.0.principal;
        let shown = self.0.would_show(grant)?;
        let report = shown.report(self.0.clock.now());
        let mut preview = Preview {
            selected: shown.items().len(),
            max_items: grant.max_items,
            kinds: BTreeMap::new(),
            items: Vec::new(),
            hidden: BTreeMap::new(),
            withheld: report.withheld,
            rules: report.rules.iter().map(|(rule, n)| (rule.as_str().to_owned(), *n)).collect(),
            warnings: Vec::new(),
        };
        for item in shown.items().iter().rev() {
            let Some(head) = self.0.heads.get(item.id()) else { continue };
            *preview.kinds.entry(head.kind.as_str().to_owned()).or_default() += 1;
            let visible = item.visible()?;
            let hidden = hidden_places(&Items(self.0).owner_item(&head)?, &visible);
            for place in &hidden {
                *preview.hidden.entry(place.clone()).or_default() += 1;
            }
            if preview.items.len() < PREVIEWED {
                preview.items.push(PreviewItem { visible, hidden });
            }
        }
        let turns = preview.kinds.contains_key(Kind::ConversationTurn.as_str());
        preview.warnings = warnings(grant, &report, preview.selected, own_agent, turns);
        Ok(preview)
    }
}

/// `turns`: whether a turn of a conversation is selected.
fn warnings(grant: &Grant, report: &Report, selected: usize, own_agent: bool, turns: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(text.to_owned());
    if selected == 0 && report.withheld == 0 {
        warn("No item is selected: check scope, kinds and labels.");
    }
    let asks_for = |outcome: Outcome| report.rules.keys().any(|rule| rule.outcome() == outcome);
    if report.withheld > 0 {
        warn("Some items are withheld by a gate: see the rules.");
    }
    if asks_for(Outcome::RequireConsent) || asks_for(Outcome::RequireAnonymization) {
        warn("A confidentiality context asks for your consent: `grant consent` once the grant is issued.");
    }
    let everything = grant.filter == Filter::default();
    if everything && !own_agent {
        warn("The filter selects everything in the scope.");
    }
    if grant.trust_level == TrustLevel::INNER_CIRCLE && !own_agent {
        warn("Trust level 4 shows whole items, as you see them yourself.");
    }
    if grant.bearer {
        warn("A bearer token can be used by whoever has it.");
    }
    if turns && grant.trust_level.get() >= 2 {
        warn("Conversation turns are included: what others said to you is shown too.");
    }
    warnings
}

/// The places of an item that a view of it does not have. Elements of arrays count as one place.
fn hidden_places(whole: &Value, visible: &Value) -> Vec<String> {
    let mut hidden = BTreeSet::new();
    walk(whole, Some(visible), &mut String::new(), &mut hidden);
    hidden.into_iter().collect()
}

fn walk(whole: &Value, visible: Option<&Value>, path: &mut String, hidden: &mut BTreeSet<String>) {
    match (whole, visible) {
        (Value::Object(members), visible) => {
            for (name, value) in members {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                walk(value, visible.and_then(|v| v.get(name)), path, hidden);
                path.truncate(length);
            }
        }
        (Value::Array(elements), Some(Value::Array(shown))) if elements.len() == shown.len() => {
            let length = path.len();
            path.push_str("[]");
            for (element, shown) in elements.iter().zip(shown) {
                walk(element, Some(shown), path, hidden);
            }
            path.truncate(length);
        }
        (whole, Some(visible)) if whole == visible => {}
        _ => {
            hidden.insert(path.clone());
        }
    }
}
