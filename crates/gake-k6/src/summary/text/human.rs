//! Formats numbers as k6 does.

use gake_core::metric::{MetricKind, MetricUnit};

/// A number as JavaScript writes it.
pub(super) fn number(value: f64) -> String {
    // Turns -0 into 0.
    let value = value + 0.0;
    if value.abs() < 1e21 {
        return value.to_string();
    }
    let text = format!("{value:e}");
    text.replacen('e', "e+", 1)
}

/// A number rounded to `decimals`, without trailing zeros.
fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    text.parse().map_or(text, number)
}

/// A number truncated to two decimals, without trailing zeros.
fn cut(value: f64) -> String {
    rounded((value * 100.0).trunc() / 100.0, 2)
}

/// A share as a truncated percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2}%", (share * 10_000.0).trunc() / 100.0)
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 9] = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
    if value < 10.0 {
        return format!("{} B", number(value));
    }
    let power = (value.ln() / 1_000_f64.ln()).floor().clamp(0.0, 8.0);
    let scaled = (value / 1_000_f64.powf(power) * 10.0 + 0.5).floor() / 10.0;
    let decimals = usize::from(scaled < 10.0);
    format!("{scaled:.decimals$} {}", UNITS[power as usize])
}

/// A time in a unit; by default it depends on the value.
fn time(ms: f64, unit: Option<&str>) -> String {
    match unit {
        Some("s") => return format!("{:.2}s", ms / 1e3),
        Some("ms") => return format!("{ms:.2}ms"),
        Some("us") => return format!("{:.2}µs", ms * 1e3),
        _ => {}
    }
    if ms == 0.0 {
        return "0s".to_owned();
    }
    if ms < 0.001 {
        return format!("{}ns", number((ms * 1e6).trunc()));
    }
    if ms < 1.0 {
        return format!("{}µs", cut(ms * 1e3));
    }
    if ms < 1e3 {
        return format!("{}ms", cut(ms));
    }
    let seconds = ms % 60_000.0 / 1e3;
    let seconds = if ms > 60_000.0 { number(seconds.trunc()) } else { cut(seconds) };
    let minutes = (ms / 60_000.0).trunc();
    let hours = (minutes / 60.0).trunc();
    if minutes < 1.0 {
        return format!("{seconds}s");
    }
    let minutes = number(minutes % 60.0);
    if hours < 1.0 {
        format!("{minutes}m{seconds}s")
    } else {
        format!("{hours}h{minutes}m{seconds}s")
    }
}

pub(super) fn figure(
    value: f64,
    kind: MetricKind,
    contains: MetricUnit,
    unit: Option<&str>,
) -> String {
    match (kind, contains) {
        (MetricKind::Rate, _) => percent(value),
        (_, MetricUnit::Bytes) => bytes(value),
        (_, MetricUnit::Time) => time(value, unit),
        (_, MetricUnit::Number) => rounded(value, 6),
    }
}
