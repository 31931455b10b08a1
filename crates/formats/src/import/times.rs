//! Times as vendors write them.

use oap_identity::Timestamp;
use serde_json::Value;

/// A time as vendors write it: RFC 3339 with any offset, or seconds since 1970.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(seconds) => {
            let seconds = seconds.as_f64().filter(|s| s.is_finite() && *s > 0.0)?;
            // Some write milliseconds.
            let millis = if seconds > 1e11 { seconds } else { seconds * 1000.0 };
            #[expect(clippy::cast_possible_truncation, reason = "clamped by Timestamp")]
            Some(Timestamp::from_millis(millis as i64))
        }
        Value::String(text) => parse(text.trim()),
        _ => None,
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return time(&serde_json::json!(seconds));
    }
    let normal = text.replacen(' ', "T", 1);
    let zoned = chrono::DateTime::parse_from_rfc3339(&normal).map(|at| at.timestamp_millis());
    let naive = || {
        let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
        let time = forms.iter().find_map(|form| chrono::NaiveDateTime::parse_from_str(&normal, form).ok());
        let day = || chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
        Some(time.or_else(day)?.and_utc().timestamp_millis())
    };
    zoned.ok().or_else(naive).map(Timestamp::from_millis)
}
