//! Numbers as people read them: `1.23 ms`, `12,345`, `0.1 %`, `2,000/s`, `3.2 MB`. Used by findings
//! and reports, so that both show the same number the same way.

/// A duration in a suitable unit, with three significant digits.
#[must_use]
pub fn duration(ns: f64) -> String {
    const STEPS: [(f64, &str); 3] = [(1e3, "ns"), (1e6, "µs"), (1e9, "ms")];
    if ns <= 0.0 {
        return "0".to_owned();
    }
    for (limit, unit) in STEPS {
        let value = ns / (limit / 1e3);
        // 999.7 µs is written as 1.00 ms, not as 1000 µs.
        if value < 999.5 {
            return if unit == "ns" {
                format!("{value:.0} ns")
            } else {
                format!("{} {unit}", digits(value))
            };
        }
    }
    let seconds = ns / 1e9;
    if seconds < 599.5 {
        format!("{} s", digits(seconds))
    } else if seconds < 35_970.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{} h", digits(seconds / 3600.0))
    }
}

/// Three significant digits, at most two after the point.
fn digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A whole number with thousands separators: `12,345`.
#[must_use]
pub fn count(n: u64) -> String {
    let plain = n.to_string();
    let mut text = String::with_capacity(plain.len() + plain.len() / 3);
    for (i, digit) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share (0 to 1) in percent. Only exactly 0 and 1 are shown as 0 % and 100 %.
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value == 0.0 {
        "0 %".to_owned()
    } else if value < 0.01 {
        "< 0.01 %".to_owned()
    } else if value < 1.0 {
        format!("{value:.2} %")
    } else if value < 10.0 {
        format!("{value:.1} %")
    } else if value > 99.5 && value < 100.0 {
        format!("{:.2} %", value.min(99.99))
    } else {
        format!("{value:.0} %")
    }
}

/// A number per second: `2,000/s`, `0.5/s`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    format!("{}/s", number(per_second))
}

/// A number with few digits after the point: none from 100 on.
#[must_use]
pub fn number(value: f64) -> String {
    if value >= 99.95 {
        return count(value.round() as u64);
    }
    let text = if value >= 9.995 { format!("{value:.1}") } else { format!("{value:.2}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number of bytes, in powers of 1,000.
#[must_use]
pub fn bytes(n: f64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 999.5 {
        return format!("{n:.0} B");
    }
    let mut value = n / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{} {}", digits(value), UNITS[unit])
}

/// `n` and a noun in singular or plural: `1 worker`, `2 workers`.
#[must_use]
pub fn plural(n: u64, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {noun}{s}", count(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_suitable_unit() {
        for (ns, text) in [
            (0.0, "0"),
            (7.0, "7 ns"),
            (999.0, "999 ns"),
            (1_234.0, "1.23 µs"),
            (45_600.0, "45.6 µs"),
            (999_700.0, "1.00 ms"),
            (123_400_000.0, "123 ms"),
            (2_100_000_000.0, "2.10 s"),
            (75e9, "75.0 s"),
            (600e9, "10 min"),
            (36_000e9, "10.0 h"),
        ] {
            assert_eq!(duration(ns), text, "{ns}");
        }
    }

    #[test]
    fn counts_shares_rates_and_bytes() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [percent(0.0), percent(1e-6), percent(0.001), percent(0.023)],
            ["0 %", "< 0.01 %", "0.10 %", "2.3 %"]
        );
        assert_eq!([percent(0.5), percent(0.99999), percent(1.0)], ["50 %", "99.99 %", "100 %"]);
        assert_eq!([rate(2000.0), rate(0.5), rate(12.34)], ["2,000/s", "0.5/s", "12.3/s"]);
        assert_eq!(
            [bytes(12.0), bytes(1234.0), bytes(999.9e6), bytes(5e18)],
            ["12 B", "1.23 kB", "1.00 GB", "5000 PB"]
        );
        assert_eq!([plural(1, "worker"), plural(2, "worker")], ["1 worker", "2 workers"]);
    }
}
