//! Rates as people write them: `1000`, `1000/s`, `100/500ms`, `6000/m`, `2.5k`, `max`.

use gake_text::duration::parse_duration;

/// A requested rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Arrivals a second, over the whole run's workers. Positive and finite.
    PerSecond(f64),
    /// As many as the connections can carry: the closed loop.
    Max,
}

/// Why a text is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a rate; write for example 1000, 100/1s, 6000/m, 2.5k, or max")]
pub struct RateError {
    text: String,
}

/// Highest rate we accept. A core makes a few 100,000 a second, so it is out of reach by far;
/// it keeps the arithmetic of schedules exact.
const HIGHEST: f64 = 1e9;

/// Reads a rate.
///
/// # Errors
/// When the text is not a rate, or the rate is not positive or is over 10⁹ a second.
pub fn parse_rate(text: &str) -> Result<Rate, RateError> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("max") {
        return Ok(Rate::Max);
    }
    match parse_per_second(trimmed) {
        Some(rate) if rate > 0.0 && rate <= HIGHEST => Ok(Rate::PerSecond(rate)),
        _ => Err(RateError { text: text.to_owned() }),
    }
}

/// Reads a number of arrivals a second, zero allowed (for stages).
pub(super) fn parse_per_second(text: &str) -> Option<f64> {
    let (count, period) = text.split_once('/').unwrap_or((text, "1s"));
    let period = period.trim();
    if period.is_empty() {
        return None;
    }
    // `100/s` means `100/1s`.
    let seconds = if period.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        parse_duration(period).ok()?
    } else {
        parse_duration(&format!("1{period}")).ok()?
    }
    .as_secs_f64();
    let count = parse_count(count.trim())?;
    let rate = count / seconds;
    (rate.is_finite() && (0.0..=HIGHEST).contains(&rate)).then_some(rate)
}

/// Reads a number with an optional SI suffix: `1000`, `2.5k`, `1M`.
fn parse_count(text: &str) -> Option<f64> {
    let (digits, scale) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'm' | 'M' => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    // `parse` also takes "inf" and "nan", which are no counts.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    Some(digits.parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, rate) in [
            ("1000", 1000.0),
            ("100/1s", 100.0),
            ("100/s", 100.0),
            ("100/500ms", 200.0),
            ("6000/m", 100.0),
            ("2.5k", 2500.0),
            ("0.5", 0.5),
            ("1M/s", 1e6),
            ("3600/h", 1.0),
        ] {
            assert_eq!(parse_rate(text), Ok(Rate::PerSecond(rate)), "{text}");
        }
        assert_eq!(parse_rate("max"), Ok(Rate::Max));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "0", "-5", "abc", "10/", "10/0s", "inf", "nan", "1e12", "/s", "10/x"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
