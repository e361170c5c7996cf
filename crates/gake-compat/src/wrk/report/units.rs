//! wrk's units.

/// The share of a unit from which it is used.
const FROM: f64 = 0.85;

/// A scale of units: the factor between units, the first unit, and the larger ones.
struct Scale {
    step: f64,
    base: &'static str,
    /// Units for showing numbers.
    shown: &'static [&'static str],
    /// Units that are also accepted when reading.
    read: &'static [&'static str],
}

const MICROSECONDS: Scale = Scale { step: 1e3, base: "us", shown: &["ms"], read: &[] };
const SECONDS: Scale = Scale { step: 60.0, base: "s", shown: &["m"], read: &["h"] };
const BINARY: Scale = Scale { step: 1024.0, base: "", shown: &["K", "M", "G", "T"], read: &[] };
const METRIC: Scale = Scale { step: 1e3, base: "", shown: &["k", "M", "G", "T"], read: &["P"] };

fn shown(amount: f64, scale: &Scale, digits: usize) -> String {
    let (mut amount, mut unit) = (amount, scale.base);
    for next in scale.shown {
        if amount < scale.step * FROM {
            break;
        }
        amount /= scale.step;
        unit = next;
    }
    format!("{amount:.digits$}{unit}")
}

/// A time in microseconds: `1.23ms`, and from a second on `1.23s`, `1.23m`.
pub(super) fn time(us: f64) -> String {
    if us >= 1e6 { shown(us / 1e6, &SECONDS, 2) } else { shown(us, &MICROSECONDS, 2) }
}

/// Whole seconds or minutes: `10s`, `2m`.
pub(super) fn seconds(seconds: f64) -> String {
    shown(seconds, &SECONDS, 0)
}

/// A count of bytes, without its `B`: `1.23M`.
pub(super) fn binary(bytes: f64) -> String {
    shown(bytes, &BINARY, 2)
}

/// A plain number: `1.23k`.
pub fn metric(number: f64) -> String {
    shown(number, &METRIC, 2)
}

/// `text` in a column whose last two characters are for the unit.
pub(super) fn padded(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).take_while(char::is_ascii_alphabetic).count();
    let (blanks, width) = (2 - letters, width - (2 - letters));
    format!("{text:>width$.width$}{:blanks$}", "")
}

/// Reads a count: `100`, `10k`, `1M`.
pub fn scan_count(text: &str) -> Result<u64, String> {
    scan(text, &METRIC).ok_or_else(|| "write a count, for example 100, 10k or 1M".to_owned())
}

/// Reads a time in seconds: `10`, `30s`, `2m`, `1h`.
pub fn scan_time(text: &str) -> Result<u64, String> {
    scan(text, &SECONDS).ok_or_else(|| "write a time, for example 30s, 2m or 1h".to_owned())
}

fn scan(text: &str, scale: &Scale) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    if unit.is_empty() || unit.eq_ignore_ascii_case(scale.base) {
        return Some(number);
    }
    let units = scale.shown.iter().chain(scale.read);
    let power = units.zip(1..).find(|(known, _)| unit.eq_ignore_ascii_case(known))?.1;
    number.checked_mul((scale.step as u64).checked_pow(power)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_wrk_shows_them() {
        assert_eq!(time(849.0), "849.00us");
        assert_eq!(time(850.0), "0.85ms");
        assert_eq!(time(999_999.0), "1000.00ms");
        assert_eq!(time(1e6), "1.00s");
        assert_eq!(time(50.9e6), "50.90s");
        assert_eq!(time(51e6), "0.85m");
        assert_eq!(time(7_200e6), "120.00m");
        assert_eq!((seconds(10.0), seconds(60.0)), ("10s".to_owned(), "1m".to_owned()));
        assert_eq!((binary(0.0), binary(5_560.3)), ("0.00".to_owned(), "5.43K".to_owned()));
        assert_eq!((metric(46.0), metric(22_222.0)), ("46.00".to_owned(), "22.22k".to_owned()));
    }

    #[test]
    fn columns_leave_two_places_for_the_unit() {
        assert_eq!(padded("42.37ms", 8), " 42.37ms");
        assert_eq!(padded("1.05k", 8), "  1.05k ");
        assert_eq!(padded("46.00", 8), " 46.00  ");
    }

    #[test]
    fn numbers_are_read_as_wrk_reads_them() {
        assert_eq!(scan_count("100"), Ok(100));
        assert_eq!(scan_count("10k"), Ok(10_000));
        assert_eq!(scan_count("1M"), Ok(1_000_000));
        assert_eq!(scan_time("30s"), Ok(30));
        assert_eq!(scan_time("2m"), Ok(120));
        assert_eq!(scan_time("1H"), Ok(3_600));
        for text in ["", "k", "-1", "1.5", "10kk", "99999999999999999999", "20000000000000P"] {
            assert!(scan_count(text).is_err(), "{text}");
        }
        assert!(scan_time("10ms").is_err());
    }
}
