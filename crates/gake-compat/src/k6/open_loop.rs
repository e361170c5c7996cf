//! A script's default function as an open loop: `gake run script.js --rate 500`.

use gake_k6::options::K6Options;
use serde_json::json;

/// The duration without `--duration`.
const DURATION: &str = "10s";

/// Decimals of a rate.
const DECIMALS: usize = 3;

/// Users without `--vus`.
const USERS: i64 = 100;

/// Replaces the load of the flags by iterations at `rate`: `500`, `500/s`, `30/m`. The
/// flags `--duration` and `--vus` keep their meaning.
///
/// # Errors
/// When the rate cannot be read.
pub fn set_rate(options: &mut K6Options, rate: &str) -> Result<(), String> {
    let wrong = || format!("--rate {rate}: write iterations a second, as 500, or 30/m");
    let (count, unit) = rate.split_once('/').unwrap_or((rate, "s"));
    let (count, units) = whole(count).ok_or_else(wrong)?;
    let unit = match unit {
        "s" | "m" | "h" | "ms" => format!("{units}{unit}"),
        _ => return Err(wrong()),
    };
    let duration = options.duration.take().map_or_else(|| json!(DURATION), |given| json!(given));
    let users = options.vus.take().unwrap_or(USERS);
    let scenario = json!({
        "executor": "constant-arrival-rate", "rate": count, "timeUnit": unit,
        "duration": duration, "preAllocatedVUs": users,
    });
    let read = K6Options::read(&json!({ "scenarios": { "default": scenario } }));
    options.scenarios = read.map_err(|error| error.to_string())?.options.scenarios;
    Ok(())
}

/// A rate as a whole number of iterations in a whole number of time units: 1.5 is 15 in 10.
fn whole(count: &str) -> Option<(i64, u32)> {
    let (whole, part) = count.split_once('.').unwrap_or((count, ""));
    if count.ends_with('.') || part.len() > DECIMALS {
        return None;
    }
    let digits = format!("{whole}{part}");
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    let count = digits.parse().ok().filter(|_| is_number)?;
    Some((count, 10_u32.pow(part.len() as u32)))
}

#[cfg(test)]
mod tests {
    use gake_k6::duration::GoDuration;
    use gake_k6::options::Executor;

    use super::*;

    #[test]
    fn a_rate_is_a_scenario() {
        let mut options = K6Options { vus: Some(7), ..K6Options::default() };
        set_rate(&mut options, "30/m").unwrap();
        let scenarios = options.scenarios.unwrap();
        let scenario = &scenarios["default"];
        assert_eq!(scenario.executor, Executor::ConstantArrivalRate);
        assert_eq!((scenario.rate, scenario.pre_allocated_vus), (Some(30), Some(7)));
        assert_eq!(scenario.time_unit, Some(GoDuration::from_secs(60)));
        assert_eq!(scenario.duration, Some(GoDuration::from_secs(10)));
        assert_eq!(options.vus, None);
        let mut options = K6Options::default();
        set_rate(&mut options, "1.25").unwrap();
        let scenario = &options.scenarios.unwrap()["default"];
        assert_eq!(
            (scenario.rate, scenario.time_unit),
            (Some(125), Some(GoDuration::from_secs(100)))
        );
        for wrong in ["", "x", "5/", "5/d", "1.", ".", "-1", "1e3", "1.2345"] {
            assert!(set_rate(&mut K6Options::default(), wrong).is_err(), "{wrong}");
        }
    }
}
