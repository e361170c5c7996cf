//! The unit in which a rate has few digits: `100/h`, and not `0.027777777777777776/s`.

/// The unit of displayed rates.
pub(super) struct RateUnit {
    pub(super) name: &'static str,
    seconds: f64,
}

impl RateUnit {
    /// The unit in which both rates have few digits, a second when none does.
    pub(super) fn of(from: f64, to: f64) -> Self {
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
    pub(super) fn number(&self, rate: f64) -> f64 {
        let value = rate * self.seconds;
        let hundredths = (value * 100.0).round() / 100.0;
        if (value - hundredths).abs() <= 1e-9 * value {
            return hundredths;
        }
        format!("{value:.5e}").parse().unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::schedule::Stage;

    #[test]
    fn rates_are_said_in_the_unit_in_which_they_are_short() {
        let said =
            |from: f64, to: f64| Stage { from, to, duration: Duration::from_secs(5) }.to_string();
        for (from, to, text) in [
            (1_000.0, 1_000.0, "1000/s for 5s"),
            (0.5, 12.25, "0.5..12.25/s for 5s"),
            (100.0 / 3_600.0, 100.0 / 3_600.0, "100/h for 5s"),
            (0.0, 10.0 / 60.0, "0..10/min for 5s"),
            (1.0 / 7.0, 1.0 / 7.0, "0.142857/s for 5s"),
        ] {
            assert_eq!(said(from, to), text);
        }
    }
}
