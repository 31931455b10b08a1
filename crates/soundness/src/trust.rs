//! How far a record is believed as time goes by: decay, staleness, and when the owner is to be asked (ML-04, ML-10, ML-13).
//!
//! Confidence decays when it is read; nothing is written. It is counted in hundredths: seven times five hundredths from 0.6 is 0.25, and
//! not a little less.

use oap_agents::Level;
use oap_identity::Timestamp;
use oap_memory::item::Confidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How confidence decays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decay {
    /// Hundredths that are lost each period: 0 to 100.
    pub step: u32,
    /// How many hours a period has: 0 to 87600. 0 is no decay.
    pub period_hours: u32,
    /// Below so many hundredths, 0 to 100, a record is believed no more.
    pub least: u32,
}

impl Decay {
    /// None at all.
    pub const NONE: Self = Self { step: 0, period_hours: 0, least: 0 };

    /// How long a period is; nothing where there is no decay.
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_secs(self.period_hours as u64 * 3600)
    }
}

impl Default for Decay {
    fn default() -> Self {
        Self { step: 5, period_hours: 24, least: 30 }
    }
}

/// From which age on what is not sure is stale.
pub const STALE_AFTER: Duration = Duration::from_secs(7 * 86_400);
/// Below so many hundredths what is old is stale.
pub const STALE_BELOW: u32 = 80;
/// Below so many hundredths the owner is to be asked, as [`oap_agents::level::VERIFIED_FROM`] has it.
pub const ASK_BELOW: u32 = 70;
/// How long after it was written the owner is reminded of what waits.
pub const REMIND_AFTER: Duration = Duration::from_secs(3600);

/// What is known of a record.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Whose word it is.
    pub level: Level,
    /// How sure its writer was.
    pub confidence: Confidence,
    /// When what it says was written.
    pub written_at: Timestamp,
    /// Whether the owner confirmed what it says.
    pub confirmed: bool,
}

/// How far a record is believed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trust {
    /// Its confidence now, in hundredths.
    pub hundredths: u32,
    /// Periods that it has lost confidence for.
    pub periods: u32,
    /// Whether it is old and not sure.
    pub is_stale: bool,
    /// Whether it is believed no more: no agent is given it.
    pub is_gone: bool,
    /// When it is believed no more, if it ever will be.
    pub gone_at: Option<Timestamp>,
    /// When it is less sure than now, if it ever will be.
    pub less_at: Option<Timestamp>,
    /// Whether the owner is to be asked.
    pub needs_verification: bool,
    /// Whether the owner is to be reminded of that by now.
    pub is_due: bool,
}

impl Trust {
    /// The confidence, 0 to 1.
    #[must_use]
    pub fn confidence(self) -> f64 {
        f64::from(self.hundredths) / 100.0
    }

    /// What made it so, in a sentence.
    #[must_use]
    pub fn says(self) -> String {
        let mut says = match (self.periods, self.is_gone) {
            (0, _) => "It is believed as when it was written".to_owned(),
            (n, false) => format!("An agent's conclusion that nobody confirmed lost confidence {n} times"),
            (n, true) => format!(
                "An agent's conclusion that nobody confirmed lost confidence {n} times, and is believed no more"
            ),
        };
        if self.is_stale {
            says.push_str("; it is older than 7 days and less sure than 0.8");
        }
        if self.needs_verification {
            says.push_str("; it waits for the owner's confirmation");
        }
        says.push('.');
        says
    }
}

/// How long ago something was; nothing where it lies ahead.
fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(now.millis().saturating_sub(then.millis())).unwrap_or_default())
}

/// A confidence in hundredths, rounded.
fn hundredths(confidence: Confidence) -> u32 {
    // 0 to 1, as its type says.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
    {
        (confidence.get() * 100.0).round() as u32
    }
}

/// How far a record is believed at that time. Only what an agent concluded and the owner did not confirm decays, and of what the owner
/// confirmed nobody is asked again.
#[must_use]
pub fn trust(known: &Known, decay: &Decay, now: Timestamp) -> Trust {
    let start = hundredths(known.confidence).min(hundredths_of(known.level));
    let age = since(known.written_at, now);
    let period = decay.period();
    let decays = known.level == Level::AgentInferred && !known.confirmed && !period.is_zero();
    let periods = if decays { age.as_millis() / period.as_millis().max(1) } else { 0 };
    let periods = u32::try_from(periods).unwrap_or(u32::MAX);
    let left = start.saturating_sub(decay.step.saturating_mul(periods));
    let is_gone = decays && periods > 0 && left < decay.least;
    let gone_at =
        if decays { last_period(start, decay).map(|n| known.written_at.plus(period * n)) } else { None };
    let loses = decays && decay.step > 0 && left > 0;
    let less_at = loses.then(|| known.written_at.plus(period * periods.saturating_add(1)));
    let is_stale =
        age > STALE_AFTER && left < STALE_BELOW && !known.confirmed && known.level != Level::UserStated;
    let needs_verification = left < ASK_BELOW && !known.confirmed && known.level != Level::UserStated;
    let is_due = needs_verification && age >= REMIND_AFTER;
    Trust { hundredths: left, periods, is_stale, is_gone, gone_at, less_at, needs_verification, is_due }
}

/// After how many periods less than the least is left; `None` where that never is so.
fn last_period(start: u32, decay: &Decay) -> Option<u32> {
    match (start.checked_sub(decay.least), decay.step) {
        (None, _) => Some(1),
        (Some(_), 0) => None,
        _ if decay.least == 0 => None,
        (Some(above), step) => Some(above / step + 1),
    }
}

fn hundredths_of(level: Level) -> u32 {
    Confidence::try_from(level.most()).map_or(0, hundredths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn known(level: Level, confidence: f64) -> Known {
        let confidence = Confidence::try_from(confidence).unwrap();
        Known { level, confidence, written_at: START, confirmed: false }
    }

    fn after(known: &Known, days: u64) -> Trust {
        trust(known, &Decay::default(), START.plus(DAY * u32::try_from(days).unwrap()))
    }

    #[test]
    fn a_conclusion_loses_five_hundredths_a_day_and_goes() {
        let inferred = known(Level::AgentInferred, 0.6);
        for (days, left, gone) in
            [(0, 60, false), (3, 45, false), (6, 30, false), (7, 25, true), (100, 0, true)]
        {
            let trust = after(&inferred, days);
            assert_eq!((trust.hundredths, trust.is_gone), (left, gone), "{days}");
        }
        assert!((after(&inferred, 3).confidence() - 0.45).abs() < f64::EPSILON);
        // The next loss is a day's, and there is none where nothing is left.
        assert_eq!(after(&inferred, 3).less_at, Some(START.plus(DAY * 4)));
        assert_eq!(after(&inferred, 100).less_at, None);
    }

    #[test]
    fn nothing_else_decays() {
        for level in [Level::UserStated, Level::ToolVerified, Level::Recalled, Level::External] {
            let trust = after(&known(level, level.most()), 400);
            assert_eq!((trust.periods, trust.is_gone), (0, false), "{level}");
        }
        let none = trust(&known(Level::AgentInferred, 0.6), &Decay::NONE, START.plus(DAY * 40));
        assert_eq!((none.hundredths, none.is_gone, none.gone_at, none.less_at), (60, false, None, None));
    }

    #[test]
    fn what_the_owner_confirmed_is_believed_as_it_was() {
        let mut inferred = known(Level::AgentInferred, 0.6);
        inferred.confirmed = true;
        let trust = after(&inferred, 400);
        assert_eq!((trust.hundredths, trust.is_gone, trust.is_stale), (60, false, false));
        assert!(!trust.needs_verification);
    }

    #[test]
    fn when_it_goes_is_known_before() {
        let inferred = known(Level::AgentInferred, 0.6);
        assert_eq!(after(&inferred, 0).gone_at, Some(START.plus(DAY * 7)));
        assert_eq!(after(&known(Level::AgentInferred, 0.1), 0).gone_at, Some(START.plus(DAY)));
        assert_eq!(after(&known(Level::External, 0.5), 0).gone_at, None);
        let kept = Decay { least: 0, ..Decay::default() };
        assert_eq!(trust(&inferred, &kept, START).gone_at, None);
    }

    #[test]
    fn what_is_old_and_unsure_is_stale() {
        let tool = known(Level::ToolVerified, 0.75);
        assert!(!after(&tool, 7).is_stale && after(&tool, 8).is_stale);
        assert!(!after(&known(Level::ToolVerified, 0.8), 8).is_stale);
        assert!(!after(&known(Level::UserStated, 0.5), 400).is_stale);
    }

    #[test]
    fn the_owner_is_reminded_after_an_hour() {
        let external = known(Level::External, 0.5);
        let at =
            |minutes: u32| trust(&external, &Decay::default(), START.plus(Duration::from_secs(60) * minutes));
        assert!(at(59).needs_verification && !at(59).is_due);
        assert!(at(60).is_due);
    }

    proptest! {
        /// Nobody believes more with time, and never more than the level allows; a clock that goes back makes nothing of it.
        #[test]
        fn confidence_never_grows(
            level in prop::sample::select(Level::ALL), confidence in 0.0_f64..=1.0, step in 0_u32..200, least in 0_u32..100,
            hours in prop::collection::vec(-1000_i64..100_000, 2), period_hours in 0_u32..300,
        ) {
            let known = known(level, confidence);
            let decay = Decay { step, period_hours, least };
            let at = |hours: i64| trust(&known, &decay, Timestamp::from_millis(START.millis() + hours * 3_600_000));
            let (early, late) = (at(hours[0].min(hours[1])), at(hours[0].max(hours[1])));
            prop_assert!(late.hundredths <= early.hundredths);
            prop_assert!(early.confidence() <= level.most());
            prop_assert!(!early.is_gone || late.is_gone);
            // When it goes is known at any time, and nobody is wrong about it.
            prop_assert_eq!(early.gone_at, late.gone_at);
            let late_at = Timestamp::from_millis(START.millis() + hours[0].max(hours[1]) * 3_600_000);
            prop_assert_eq!(late.is_gone, late.gone_at.is_some_and(|at| at <= late_at));
            prop_assert!(late.says().ends_with('.'));
        }
    }
}
