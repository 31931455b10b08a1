//! Asking for access (protocol section 13.3): a task with states, never access by itself. And that what is given stays within what was asked.

use crate::plain::Plain;
use oap_grants::attenuate::{self, Wider};
use oap_grants::grant::{Budget, Delegable, Grant, LawfulBasis, Operation};
use oap_grants::limits::{LimitError, check_sound};
use oap_identity::{AskId, Did, GrantId, ScopeId, ScopedDid, Timestamp};
use oap_memory::{Filter, TrustLevel, closed_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest name of a profile in an ask, in bytes.
pub const MAX_PROFILE: usize = 128;
/// For how long an ask waits for its answer at most.
pub const WAITS: Duration = Duration::from_secs(30 * 86_400);

/// What one principal would like to be shown of another's memory. Where it names no scope, profile or trust level, the owner chooses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What for, in words of a stranger.
    pub purpose: Plain,
    /// What for, in codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purpose_codes: Vec<String>,
    /// Of what.
    #[serde(default)]
    pub filter: Filter,
    /// How many distinct items at most.
    pub max_items: u32,
    /// Until when.
    pub expires_at: Timestamp,
    /// By which projection profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redaction_profile: Option<String>,
    /// At which trust level at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<TrustLevel>,
    /// To do what.
    pub operations: BTreeSet<Operation>,
    /// How often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// To pass it on, so many times over; not at all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegable: Option<Delegable>,
}

/// Why an ask was refused. The text names the member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AskError {
    /// What no grant may be.
    #[error("body.ask.{0}")]
    Limit(#[from] LimitError),
    #[error("body.ask.redaction_profile: has at most {MAX_PROFILE} bytes, none of them a control character")]
    Profile,
    /// Not even its text can be read as a DID or a scope.
    #[error("body.ask: the ask cannot be read")]
    Sample,
}

impl Ask {
    /// Checks all that needs no time: that a grant may be what is asked.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn check(&self) -> Result<(), AskError> {
        let named = |name: &String| {
            (1..=MAX_PROFILE).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic())
        };
        if !self.redaction_profile.as_ref().is_none_or(named) {
            return Err(AskError::Profile);
        }
        let did = || "did:web:owner.invalid".parse::<Did>().map_err(|_| AskError::Sample);
        let scope = || "personal".parse::<ScopeId>().map_err(|_| AskError::Sample);
        let begins = self.expires_at.minus(Duration::from_secs(1));
        let granter = ScopedDid { principal: did()?, scope: scope()? };
        let asked = Grant { delegable: self.delegable, ..self.as_grant(granter, did()?, begins) };
        Ok(check_sound(&asked)?)
    }

    /// The widest grant that it asks for, of a granter's scope. It is a measure, and is never signed.
    fn as_grant(&self, granter: ScopedDid, grantee: Did, now: Timestamp) -> Grant {
        Grant {
            version: 1,
            grant_id: GrantId::from_bytes([0; 16]),
            granter,
            grantee,
            purpose: self.purpose.as_str().to_owned(),
            purpose_codes: self.purpose_codes.clone(),
            filter: self.filter.clone(),
            max_items: self.max_items,
            issued_at: now,
            not_before: None,
            expires_at: self.expires_at,
            revocable: true,
            redaction_profile: self.redaction_profile.clone().unwrap_or_default(),
            trust_level: self.trust_level.unwrap_or(TrustLevel::STRANGER),
            lawful_basis: LawfulBasis::Consent,
            operations: self.operations.clone(),
            embedding_access: false,
            // One step more than what is asked, for what is given is measured as if it were made from this.
            delegable: Some(Delegable {
                max_depth: self.delegable.map_or(0, |asked| asked.max_depth).saturating_add(1),
            }),
            parent: None,
            budget: self.budget,
            bearer: false,
            status: None,
        }
    }

    /// That a grant is for whom asked, and gives nothing that was not asked for. What the ask left to the owner is theirs to choose:
    /// scopes, profile, trust level, and the lawful basis.
    ///
    /// # Errors
    /// [`Wider`], naming the member.
    pub fn covers(&self, grantee: &Did, grant: &Grant) -> Result<(), Wider> {
        if grant.grantee != *grantee {
            return Err(Wider("grantee"));
        }
        if grant.purpose != self.purpose.as_str() {
            return Err(Wider("purpose"));
        }
        let mut asked = self.as_grant(grant.granter.clone(), grantee.clone(), grant.begins());
        asked.lawful_basis = grant.lawful_basis;
        if self.filter.scopes.is_none() {
            asked.filter.scopes = Some(grant.scopes());
        }
        if self.redaction_profile.is_none() {
            asked.redaction_profile.clone_from(&grant.redaction_profile);
        }
        if self.trust_level.is_none() {
            asked.trust_level = grant.trust_level;
        }
        attenuate::check(&asked, grant)
    }
}

closed_enum! {
    /// What became of a request for access.
    AskState {
        /// It waits for its granter.
        Pending = "pending",
        /// A grant was signed for it.
        Approved = "approved",
        /// The granter said no.
        Declined = "declined",
        /// Whoever asked took it back.
        Withdrawn = "withdrawn",
        /// Nobody answered in time.
        Expired = "expired",
    }
}

impl AskState {
    /// Whether it is over.
    #[must_use]
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Pending)
    }
}

/// The body of `access_request`. Sent again, it asks what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRequest {
    /// The name that whoever asks gave it: the handle of the task.
    pub request: AskId,
    /// What is asked.
    pub ask: Ask,
}

/// The body of `access_status`: the granter tells that a request is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessStatus {
    /// The name that whoever asked gave it.
    pub request: AskId,
    /// What became of it.
    pub state: AskState,
    /// A word of the granter's, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Plain>,
}

/// The body of `access_withdrawal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessWithdrawal {
    /// The name that whoever asked gave it.
    pub request: AskId,
}

/// The body of `grant_delivery`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantDelivery {
    /// The request that it answers, by the name that whoever asked gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<AskId>,
    /// The signed grant. It is read and verified on its own, and counts for nothing else that stands here.
    pub grant: Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_memory::Kind;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(1_777_636_800 + seconds)
    }

    fn did(name: &str) -> Did {
        format!("did:web:{name}.example").parse().unwrap()
    }

    fn ask() -> Ask {
        Ask {
            purpose: "Website redesign".parse().unwrap(),
            purpose_codes: vec!["service_provision".to_owned()],
            filter: Filter {
                kinds: Some(vec![Kind::Fact, Kind::Preference]),
                labels_any: Some(vec!["website".to_owned()]),
                ..Filter::default()
            },
            max_items: 5,
            expires_at: at(1000),
            redaction_profile: Some("oap.profile.projection.memory.v1".to_owned()),
            trust_level: TrustLevel::try_from(2).ok(),
            operations: BTreeSet::from([Operation::Query]),
            budget: Some(Budget { queries: Some(3), epsilon: None }),
            delegable: None,
        }
    }

    /// The grant that is just what is asked.
    fn grant(ask: &Ask) -> Grant {
        let granter = ScopedDid { principal: did("alice"), scope: "personal".parse().unwrap() };
        Grant { delegable: None, ..ask.as_grant(granter, did("bob"), at(0)) }
    }

    #[test]
    fn what_is_asked_and_less_of_it_is_covered() {
        let ask = ask();
        ask.check().unwrap();
        assert_eq!(ask.covers(&did("bob"), &grant(&ask)), Ok(()));
        let mut less = grant(&ask);
        less.filter.kinds = Some(vec![Kind::Fact]);
        less.filter.exclude_labels = Some(vec!["health".to_owned()]);
        (less.max_items, less.expires_at, less.trust_level) = (1, at(10), TrustLevel::STRANGER);
        less.budget = Some(Budget { queries: Some(1), epsilon: None });
        assert_eq!(ask.covers(&did("bob"), &less), Ok(()));
    }

    /// Each member that a grant has: wider than what was asked, and refused by its name.
    #[test]
    fn each_member_alone() {
        type Change = fn(&mut Grant);
        let changes: [(&str, Change); 17] = [
            ("grantee", |g| g.grantee = did("mallory")),
            ("purpose", |g| g.purpose = "Anything".to_owned()),
            ("purpose_codes", |g| g.purpose_codes = Vec::new()),
            ("filter.kinds", |g| g.filter.kinds = None),
            ("filter.kinds", |g| g.filter.kinds = Some(vec![Kind::Summary])),
            ("filter.labels_any", |g| g.filter.labels_any = None),
            ("max_items", |g| g.max_items = 6),
            ("expires_at", |g| g.expires_at = at(1001)),
            ("redaction_profile", |g| g.redaction_profile = "oap.profile.projection.full.v1".to_owned()),
            ("trust_level", |g| g.trust_level = TrustLevel::INNER_CIRCLE),
            ("operations", |g| {
                g.operations.insert(Operation::Export);
            }),
            ("embedding_access", |g| g.embedding_access = true),
            ("delegable", |g| g.delegable = Some(Delegable { max_depth: 1 })),
            ("budget", |g| g.budget = None),
            ("budget", |g| g.budget = Some(Budget { queries: Some(4), epsilon: None })),
            ("bearer", |g| g.bearer = true),
            ("filter.sensitivities", |g| {
                g.filter.sensitivities = Some(vec![oap_memory::Sensitivity::Restricted]);
            }),
        ];
        for (member, change) in changes {
            let mut wider = grant(&ask());
            change(&mut wider);
            assert_eq!(ask().covers(&did("bob"), &wider), Err(Wider(member)));
        }
        // Scopes that were named are what they are; where none was, the owner chooses.
        let mut named = ask();
        named.filter.scopes = Some(vec!["work".parse().unwrap()]);
        let mut elsewhere = grant(&named);
        elsewhere.filter.scopes = Some(vec!["private".parse().unwrap()]);
        assert_eq!(named.covers(&did("bob"), &elsewhere), Err(Wider("filter.scopes")));
        assert_eq!(
            ask().covers(
                &did("bob"),
                &Grant {
                    filter: Filter { scopes: elsewhere.filter.scopes, ..ask().filter },
                    ..grant(&ask())
                }
            ),
            Ok(())
        );
    }

    /// As often as was asked, or less often; and not at all where nothing was asked.
    #[test]
    fn it_is_passed_on_as_often_as_was_asked() {
        let depth = |max_depth: u8| Some(Delegable { max_depth });
        let ask = Ask { delegable: depth(2), ..ask() };
        ask.check().unwrap();
        for (given, expected) in
            [(None, Ok(())), (depth(1), Ok(())), (depth(2), Ok(())), (depth(3), Err(Wider("delegable")))]
        {
            let grant = Grant { delegable: given, ..grant(&ask) };
            assert_eq!(ask.covers(&did("bob"), &grant), expected, "{given:?}");
        }
        assert_eq!(Ask { delegable: depth(5), ..ask.clone() }.check(), Ok(()));
    }

    #[test]
    fn what_no_grant_may_be_is_not_asked() {
        for max_depth in [0, 6, u8::MAX] {
            assert!(Ask { delegable: Some(Delegable { max_depth }), ..ask() }.check().is_err());
        }
        assert!(Ask { max_items: 0, ..ask() }.check().is_err());
        assert!(Ask { operations: BTreeSet::new(), ..ask() }.check().is_err());
        assert!(Ask { purpose_codes: vec!["Not a code".to_owned()], ..ask() }.check().is_err());
        assert!(Ask { redaction_profile: Some("a\u{1b}".to_owned()), ..ask() }.check().is_err());
        assert!(Ask { budget: Some(Budget { queries: Some(0), epsilon: None }), ..ask() }.check().is_err());
        assert!(Ask { budget: Some(Budget::default()), ..ask() }.check().is_err());
        let labels = Some(vec!["x".to_owned(); 10_000]);
        assert!(Ask { filter: Filter { labels_any: labels, ..Filter::default() }, ..ask() }.check().is_err());
    }
}
