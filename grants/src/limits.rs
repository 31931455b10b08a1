//! What a gateway grants at most (RFC 0010 section 3.7), checked when a grant is issued.

use crate::checked::MAX_CHECKED;
use crate::grant::{Grant, MAX_PURPOSE};
use crate::{exchange, freshness, token};
use oap_identity::limits::Limit;
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, Timestamp};
use oap_memory::filter::MAX_LIST;
use oap_memory::item::MAX_SHORT;
use oap_memory::{Profile, TrustLevel};
use std::time::Duration;

/// Deepest delegation: grants below the first one (RFC 0004 section 3.5).
pub const MAX_DEPTH: u8 = 5;
/// Most grants that are made from one by delegation, at whatever depth.
pub const MAX_BELOW: u32 = 100;

/// Most purpose codes of a grant.
pub const MAX_PURPOSE_CODES: usize = 16;
/// Longest purpose code, in bytes: of a grant, and of a query that names one.
pub const MAX_PURPOSE_CODE: usize = 64;

/// The bounds of this room, as rows that `docs/limits.md` is generated from.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "limits::MAX_DEPTH",
        value: MAX_DEPTH as u64,
        unit: "grants",
        applies_to: "grants below the first one; beyond it 400",
    },
    Limit {
        name: "limits::MAX_BELOW",
        value: MAX_BELOW as u64,
        unit: "grants",
        applies_to: "grants that are made from one by delegation, at whatever depth",
    },
    Limit {
        name: "exchange::MAX_CHAIN",
        value: exchange::MAX_CHAIN as u64,
        unit: "grants",
        applies_to: "a grant and those that it was made from, in an exchange; beyond it 400",
    },
    Limit {
        name: "exchange::MAX_LIFE",
        value: exchange::MAX_LIFE as u64,
        unit: "seconds",
        applies_to: "a grantee's proof for the exchange, from iat to exp; beyond it 401",
    },
    Limit {
        name: "exchange::MAX_JTI",
        value: exchange::MAX_JTI as u64,
        unit: "bytes",
        applies_to: "the jti of any proof; beyond it 401",
    },
    Limit {
        name: "freshness::REMEMBERED",
        value: freshness::REMEMBERED.as_secs(),
        unit: "seconds",
        applies_to: "for which a used proof is remembered; none is fresh for longer",
    },
    Limit {
        name: "token::MAX_LIFE",
        value: token::MAX_LIFE as u64,
        unit: "seconds",
        applies_to: "a token of a grantee",
    },
    Limit {
        name: "checked::MAX_CHECKED",
        value: MAX_CHECKED as u64,
        unit: "tokens",
        applies_to: "tokens whose signature is remembered to be good; the others are checked again",
    },
    Limit {
        name: "grant::MAX_PURPOSE",
        value: MAX_PURPOSE as u64,
        unit: "characters",
        applies_to: "the purpose of a grant; beyond it 400",
    },
    Limit {
        name: "limits::MAX_PURPOSE_CODES",
        value: MAX_PURPOSE_CODES as u64,
        unit: "codes",
        applies_to: "the purpose codes of a grant; beyond it 400",
    },
    Limit {
        name: "limits::MAX_PURPOSE_CODE",
        value: MAX_PURPOSE_CODE as u64,
        unit: "bytes",
        applies_to: "a purpose code of a grant; beyond it 400",
    },
];

/// The limits that the manifest declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most items of a grant.
    pub max_items: u32,
    /// Longest duration of a grant, in days.
    pub max_duration_days: u32,
}

/// Why a grant is not issued. The text names the member and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Another principal's memory.
    #[error("granter: must be {0}#<scope>")]
    Granter(Did),
    /// Too few or too many items.
    #[error("max_items: must be from 1 to {0}")]
    MaxItems(u32),
    /// It would end before it begins, or has ended.
    #[error("expires_at: must be later than now and than not_before")]
    Ended,
    /// It would hold too long.
    #[error("expires_at: a grant holds at most {0} days; the latest is {1}")]
    TooLong(u32, Timestamp),
    /// Issued in the future.
    #[error("issued_at: must not be later than now")]
    IssuedLater,
    /// It could not be taken back.
    #[error("revocable: must be true; a person may always take back what they gave")]
    Irrevocable,
    /// No such profile.
    #[error("redaction_profile: no profile of that name is known here; the memory manifest lists them")]
    UnknownProfile(String),
    /// The profile asks for more trust.
    #[error("trust_level: {profile} needs level {needed} at least")]
    #[allow(missing_docs, reason = "the names say it")]
    ProfileLevel {
        profile: String,
        /// Its lowest level.
        needed: u8,
    },
    /// No purpose, or a novel.
    #[error("purpose: must be text of 1 to {MAX_PURPOSE} characters")]
    Purpose,
    /// Codes that are none.
    #[error(
        "purpose_codes: at most {MAX_PURPOSE_CODES} codes of 1 to {MAX_PURPOSE_CODE} characters a-z 0-9 _ . -"
    )]
    PurposeCodes,
    /// Nothing allowed.
    #[error("operations: must name at least one")]
    NoOperations,
    /// A list too long.
    #[error("filter.{0}: at most {MAX_LIST} elements")]
    FilterList(&'static str),
    /// An entry of a list too long.
    #[error("filter.{0}: an element has at most {MAX_SHORT} characters")]
    FilterEntry(&'static str),
    /// Times that exclude each other.
    #[error("filter.captured_before: must be later than captured_after")]
    FilterTimes,
    /// Delegation out of range.
    #[error("delegable.max_depth: must be from 1 to {MAX_DEPTH}")]
    Depth,
    /// A budget that is none.
    #[error("budget: needs queries or epsilon, each positive; leave it out where nothing is limited")]
    Budget,
    /// A root grant with a parent.
    #[error("parent: belongs to a delegated grant alone")]
    Parent,
}

impl Limits {
    /// Checks a grant that is about to be issued by the gateway's own principal.
    ///
    /// # Errors
    /// [`LimitError`].
    pub fn check(
        &self,
        grant: &Grant,
        principal: &Did,
        profile: Option<&Profile>,
        now: Timestamp,
    ) -> Result<(), LimitError> {
        if grant.granter.principal != *principal {
            return Err(LimitError::Granter(principal.clone()));
        }
        if grant.parent.is_some() {
            return Err(LimitError::Parent);
        }
        if grant.issued_at > now {
            return Err(LimitError::IssuedLater);
        }
        self.check_extent(grant, now)?;
        check_profile(grant, profile)?;
        check_words(grant)
    }

    /// Checks a grant that a grantee made from its own: all that does not need the profile, which is the parent's.
    ///
    /// # Errors
    /// [`LimitError`].
    pub fn check_delegated(&self, grant: &Grant, now: Timestamp) -> Result<(), LimitError> {
        if grant.issued_at > now.plus(MAX_SKEW) {
            return Err(LimitError::IssuedLater);
        }
        self.check_extent(grant, now)?;
        check_words(grant)
    }

    /// Checks what every grant must keep to, delegated ones too: items, times, and well-formed lists.
    ///
    /// # Errors
    /// [`LimitError`].
    pub fn check_extent(&self, grant: &Grant, now: Timestamp) -> Result<(), LimitError> {
        if grant.max_items == 0 || grant.max_items > self.max_items {
            return Err(LimitError::MaxItems(self.max_items));
        }
        let begins = grant.begins();
        if grant.expires_at <= now || grant.expires_at <= begins {
            return Err(LimitError::Ended);
        }
        let longest = Duration::from_secs(u64::from(self.max_duration_days) * 86_400);
        if grant.expires_at > begins.plus(longest) {
            return Err(LimitError::TooLong(self.max_duration_days, begins.plus(longest)));
        }
        if !grant.revocable {
            return Err(LimitError::Irrevocable);
        }
        if grant.operations.is_empty() {
            return Err(LimitError::NoOperations);
        }
        if let Some(list) = grant.filter.too_long() {
            return Err(LimitError::FilterList(list));
        }
        if let Some(list) = grant.filter.entry_too_long() {
            return Err(LimitError::FilterEntry(list));
        }
        if let (Some(after), Some(before)) = (grant.filter.captured_after, grant.filter.captured_before)
            && before <= after
        {
            return Err(LimitError::FilterTimes);
        }
        if grant.delegable.is_some_and(|d| !(1..=MAX_DEPTH).contains(&d.max_depth)) {
            return Err(LimitError::Depth);
        }
        let none = |b: &crate::grant::Budget| {
            *b == crate::grant::Budget::default()
                || b.queries == Some(0)
                || b.epsilon.is_some_and(|e| e.is_nan() || e <= 0.0)
        };
        if grant.budget.as_ref().is_some_and(none) {
            return Err(LimitError::Budget);
        }
        Ok(())
    }
}

/// The profile of a grant: it must be the one that the grant names, and allowed at its trust level; at issue and at every use.
///
/// # Errors
/// [`LimitError::UnknownProfile`], [`LimitError::ProfileLevel`].
pub fn check_profile<'p>(grant: &Grant, profile: Option<&'p Profile>) -> Result<&'p Profile, LimitError> {
    let profile = profile
        .filter(|p| p.name() == grant.redaction_profile)
        .ok_or_else(|| LimitError::UnknownProfile(grant.redaction_profile.clone()))?;
    let needed: TrustLevel = profile.minimum_level();
    if grant.trust_level < needed {
        return Err(LimitError::ProfileLevel { profile: profile.name().to_owned(), needed: needed.get() });
    }
    Ok(profile)
}

/// Checks what a receiver can tell of any grant, whatever its gateway's limits: that it says something, and can end.
///
/// # Errors
/// [`LimitError`].
pub fn check_sound(grant: &Grant) -> Result<(), LimitError> {
    let any = Limits { max_items: u32::MAX, max_duration_days: 36_500 };
    any.check_extent(grant, grant.issued_at)?;
    check_words(grant)
}

fn check_words(grant: &Grant) -> Result<(), LimitError> {
    if !(1..=MAX_PURPOSE).contains(&grant.purpose.trim().chars().count()) {
        return Err(LimitError::Purpose);
    }
    let code = |code: &String| {
        (1..=MAX_PURPOSE_CODE).contains(&code.len())
            && code
                .bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'.' | b'-'))
    };
    if grant.purpose_codes.len() > MAX_PURPOSE_CODES || !grant.purpose_codes.iter().all(code) {
        return Err(LimitError::PurposeCodes);
    }
    Ok(())
}
