//! Rates as people write them: `1000`, `1000/s`, `100/500ms`, `6000/m`, `2.5k`; and the unit in
//! which a rate has few digits: `100/h`, not `0.027777777777777776/s`.

use crate::count::split_suffix;
use crate::duration::parse_duration;

/// Maximum rate, far beyond the few 100,000 a second of a core. A worker that cannot keep up still
/// has to count each arrival that it drops: of 10⁹ a second it cannot.
const HIGHEST: f64 = 1e7;

/// Reads a number of arrivals a second, at most 10⁷; `None` when the text is not one.
#[must_use]
pub fn parse_per_second(text: &str) -> Option<f64> {
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
    let (digits, scale) = split_suffix(count.trim());
    // `parse` accepts "inf" and "nan".
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let rate = digits.parse::<f64>().ok()? * scale as f64 / seconds;
    (rate.is_finite() && (0.0..=HIGHEST).contains(&rate)).then_some(rate)
}

/// The unit of displayed rates.
pub struct RateUnit {
    /// The suffix of a number: `/s`.
    pub name: &'static str,
    seconds: f64,
}

impl RateUnit {
    /// The unit in which both rates have few digits; `/s` if there is none.
    #[must_use]
    pub fn of(from: f64, to: f64) -> Self {
        let units = [("/s", 1.0), ("/min", 60.0), ("/h", 3_600.0)];
        let units = units.map(|(name, seconds)| Self { name, seconds });
        let is_short = |unit: &Self, rate: f64| {
            let hundredths = rate * unit.seconds * 100.0;
            (hundredths - hundredths.round()).abs() <= 1e-9 * hundredths
        };
        let short = units.into_iter().find(|unit| is_short(unit, from) && is_short(unit, to));
        short.unwrap_or(Self { name: "/s", seconds: 1.0 })
    }

    /// A rate in this unit, to at most six significant digits.
    #[must_use]
    pub fn number(&self, rate: f64) -> f64 {
        let value = rate * self.seconds;
        let hundredths = (value * 100.0).round() / 100.0;
        if (value - hundredths).abs() <= 1e-9 * value {
            return hundredths;
        }
        format!("{value:.5e}").parse().unwrap_or(value)
    }
}
