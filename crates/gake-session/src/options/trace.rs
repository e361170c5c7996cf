//! The flags of traces.

use clap::Args;

/// Traces of a share of the requests.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct TraceArgs {
    /// Send `traceparent` with this share of the requests (1%, 0.01), at most 1,000 a second, and
    /// a span of each to every --sink otlp or otlp-grpc
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub trace_sample: Option<f64>,
}

/// A share above 0, up to 1 or 100 %.
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().ok().map(|number| number / whole);
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "expected a share above 0 and up to 1, such as 1% or 0.01".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_or_a_percentage() {
        for (text, expected) in [("1%", 0.01), ("0.5 %", 0.005), ("100%", 1.0), ("0.25", 0.25)] {
            assert_eq!(share(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "0", "0%", "101%", "1.5", "-1%", "NaN", "inf", "1%%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
