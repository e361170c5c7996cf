//! Rates as people write them: `1000`, `1000/s`, `100/500ms`, `6000/m`, `2.5k`, `max`.

use gake_text::rate::parse_per_second;

/// A requested rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Arrivals a second, over the whole run's workers. Positive and finite.
    PerSecond(f64),
    /// As fast as possible: a closed loop.
    Max,
}

/// Why a text is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a rate up to 10,000,000/s; write for example 1000, 100/1s, 6000/m, 2.5k, or max"
)]
pub struct RateError {
    text: String,
}

/// Reads a rate.
///
/// # Errors
/// When the text is not a rate, or the rate is not positive or is over 10⁷ a second.
pub fn parse_rate(text: &str) -> Result<Rate, RateError> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("max") {
        return Ok(Rate::Max);
    }
    match parse_per_second(trimmed) {
        Some(rate) if rate > 0.0 => Ok(Rate::PerSecond(rate)),
        _ => Err(RateError { text: text.to_owned() }),
    }
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
