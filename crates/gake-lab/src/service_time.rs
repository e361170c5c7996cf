//! How long a request holds its worker: distributions with a known mean.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use gake_text::duration::format_duration;

use crate::draws::Draw;
use crate::duration::{BadDuration, LONGEST, parse_duration};

/// A distribution of service times, written `exp:20ms`, `const:5s`,
/// `lognormal:20ms,1.0` or `uniform:100ms,500ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ServiceTime {
    /// `const:D`: always the same.
    Constant(Duration),
    /// `exp:MEAN`: exponential, as in M/M/c.
    Exponential {
        /// The mean, which is also the standard deviation.
        mean: Duration,
    },
    /// `lognormal:MEAN,SIGMA`: long-tailed, as real services are.
    LogNormal {
        /// The **mean** of the service time (not the median, which is
        /// `mean * exp(-sigma² / 2)`).
        mean: Duration,
        /// The standard deviation of the logarithm; the squared coefficient of
        /// variation is `exp(sigma²) - 1`.
        sigma: f64,
    },
    /// `uniform:MIN,MAX`: uniform between the two.
    Uniform {
        /// The lower bound.
        min: Duration,
        /// The upper bound.
        max: Duration,
    },
}

/// The text is not a service time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceTimeError {
    /// None of the four distributions.
    #[error(
        "{0:?} is not a service time: write const:20ms, exp:20ms, lognormal:20ms,1.0 \
         or uniform:100ms,500ms"
    )]
    Malformed(String),
    /// An invalid duration in it.
    #[error(transparent)]
    Duration(#[from] BadDuration),
    /// The sigma is not a number from 0 to 5.
    #[error("{0:?} is not a sigma: write a number from 0 to 5")]
    Sigma(String),
    /// The minimum exceeds the maximum.
    #[error("{0:?} is not a range: the first duration must not exceed the second")]
    Range(String),
}

impl ServiceTime {
    /// The mean of the distribution.
    pub fn mean(&self) -> Duration {
        match *self {
            ServiceTime::Constant(mean)
            | ServiceTime::Exponential { mean }
            | ServiceTime::LogNormal { mean, .. } => mean,
            ServiceTime::Uniform { min, max } => min.saturating_add(max) / 2,
        }
    }

    /// The squared coefficient of variation, variance / mean²: 0 for a constant, 1 for an
    /// exponential. M/G/1 needs it beside the mean.
    pub fn scv(&self) -> f64 {
        match *self {
            ServiceTime::Constant(_) => 0.0,
            ServiceTime::Exponential { .. } => 1.0,
            ServiceTime::LogNormal { sigma, .. } => (sigma * sigma).exp() - 1.0,
            ServiceTime::Uniform { min, max } => {
                let mean = self.mean().as_secs_f64();
                let width = max.saturating_sub(min).as_secs_f64();
                if mean == 0.0 { 0.0 } else { width * width / 12.0 / (mean * mean) }
            }
        }
    }

    /// One draw, capped at 24 hours so that it is representable.
    pub(crate) fn sample(&self, draw: &mut Draw) -> Duration {
        let seconds = match *self {
            ServiceTime::Constant(d) => return d.min(LONGEST),
            ServiceTime::Exponential { mean } => mean.as_secs_f64() * draw.exponential(),
            ServiceTime::LogNormal { mean, sigma } => {
                mean.as_secs_f64() * (sigma * draw.normal() - sigma * sigma / 2.0).exp()
            }
            ServiceTime::Uniform { min, max } => {
                min.as_secs_f64() + draw.unit() * max.saturating_sub(min).as_secs_f64()
            }
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)
    }
}

impl FromStr for ServiceTime {
    type Err = ServiceTimeError;

    fn from_str(text: &str) -> Result<ServiceTime, ServiceTimeError> {
        let malformed = || ServiceTimeError::Malformed(text.to_owned());
        let (name, arguments) = text.split_once(':').ok_or_else(malformed)?;
        let pair = || arguments.split_once(',').ok_or_else(malformed);
        match name {
            "const" => Ok(ServiceTime::Constant(parse_duration(arguments)?)),
            "exp" => Ok(ServiceTime::Exponential { mean: parse_duration(arguments)? }),
            "lognormal" => {
                let (mean, sigma_text) = pair()?;
                let sigma = sigma_text
                    .parse()
                    .ok()
                    .filter(|sigma| (0.0..=5.0).contains(sigma))
                    .ok_or_else(|| ServiceTimeError::Sigma(sigma_text.to_owned()))?;
                Ok(ServiceTime::LogNormal { mean: parse_duration(mean)?, sigma })
            }
            "uniform" => {
                let (min, max) = pair()?;
                let (min, max) = (parse_duration(min)?, parse_duration(max)?);
                if min > max {
                    return Err(ServiceTimeError::Range(arguments.to_owned()));
                }
                Ok(ServiceTime::Uniform { min, max })
            }
            _ => Err(malformed()),
        }
    }
}

impl fmt::Display for ServiceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = format_duration;
        match *self {
            ServiceTime::Constant(value) => write!(f, "const:{}", d(value)),
            ServiceTime::Exponential { mean } => write!(f, "exp:{}", d(mean)),
            ServiceTime::LogNormal { mean, sigma } => write!(f, "lognormal:{},{sigma}", d(mean)),
            ServiceTime::Uniform { min, max } => write!(f, "uniform:{},{}", d(min), d(max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::draws::Draws;

    #[test]
    fn text_round_trips() {
        for text in ["exp:20ms", "const:5s", "lognormal:20ms,1.5", "uniform:100ms,500ms"] {
            assert_eq!(text.parse::<ServiceTime>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_text_is_rejected_with_a_sentence() {
        let errors = [
            "",
            "exp",
            "exp:",
            "exp:20",
            "gauss:1s",
            "lognormal:20ms",
            "lognormal:20ms,-1",
            "lognormal:20ms,nan",
            "lognormal:20ms,9",
            "uniform:2s,1s",
            "uniform:1s",
            "const:-1s",
        ]
        .map(|text| text.parse::<ServiceTime>().unwrap_err().to_string());
        expect![[r#"
            "" is not a service time: write const:20ms, exp:20ms, lognormal:20ms,1.0 or uniform:100ms,500ms
            "exp" is not a service time: write const:20ms, exp:20ms, lognormal:20ms,1.0 or uniform:100ms,500ms
            "" is not a duration: write a number and a unit, as in 20ms, 1.5s or 2m
            "20" is not a duration: write a number and a unit, as in 20ms, 1.5s or 2m
            "gauss:1s" is not a service time: write const:20ms, exp:20ms, lognormal:20ms,1.0 or uniform:100ms,500ms
            "lognormal:20ms" is not a service time: write const:20ms, exp:20ms, lognormal:20ms,1.0 or uniform:100ms,500ms
            "-1" is not a sigma: write a number from 0 to 5
            "nan" is not a sigma: write a number from 0 to 5
            "9" is not a sigma: write a number from 0 to 5
            "2s,1s" is not a range: the first duration must not exceed the second
            "uniform:1s" is not a service time: write const:20ms, exp:20ms, lognormal:20ms,1.0 or uniform:100ms,500ms
            "-1s" is not a duration: write a number and a unit, as in 20ms, 1.5s or 2m"#]].assert_eq(&errors.join("\n"));
    }

    #[test]
    fn samples_have_the_mean_and_the_variation_they_claim() {
        for text in
            ["exp:20ms", "const:20ms", "lognormal:20ms,0.5", "lognormal:20ms,1", "uniform:5ms,35ms"]
        {
            let service: ServiceTime = text.parse().unwrap();
            let draws = Draws::new(3, 1);
            let n = 300_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let x = service.sample(&mut draws.next()).as_secs_f64();
                sum += x;
                squares += x * x;
            }
            let mean = sum / f64::from(n);
            let scv = (squares / f64::from(n) - mean * mean) / (mean * mean);
            assert!((mean / 0.020 - 1.0).abs() < 0.01, "{text}: mean {mean}");
            assert!((scv - service.scv()).abs() < 0.1, "{text}: scv {scv}, {}", service.scv());
        }
    }
}
