//! Sizes as people write them: `1000`, `64KiB`, `1.5MB`.

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid size; write for example 65536, 64KiB or 1MiB")]
pub struct SizeError {
    text: String,
}

/// Reads a number of bytes for a buffer or a limit: `1000`, `64KiB`, `1MiB`, `2MB`. A single letter
/// is binary: `64k` is 65,536 bytes.
///
/// # Errors
/// When the text is not a whole number with a known unit, or does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let read = || {
        let (digits, scale) = split_unit(text, 1_024)?;
        digits.parse::<u64>().ok()?.checked_mul(scale)
    };
    read().ok_or_else(|| SizeError { text: text.to_owned() })
}

/// Reads a number of bytes for comparison with figures: `1GB`, `512MiB`, `1.5G`. A single letter is
/// decimal, as in displayed figures: `1k` is 1,000 bytes. `None` if the text is not one.
#[must_use]
pub fn parse_byte_amount(text: &str) -> Option<f64> {
    let (digits, scale) = split_unit(text, 1_000)?;
    let value = digits.parse::<f64>().ok()? * scale as f64;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Splits off the unit and returns its bytes; `kilo` is 1,000 or 1,024 for single letters.
fn split_unit(text: &str, kilo: u64) -> Option<(&str, u64)> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let mut letters = unit.chars();
    let power = match letters.next() {
        None => 0,
        Some('b') if unit == "b" => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return None,
    };
    let base: u64 = match letters.as_str() {
        "" => kilo,
        "b" => 1_000,
        "ib" => 1_024,
        _ => return None,
    };
    Some((digits.trim(), base.pow(power)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        for (text, bytes) in [
            ("1000", 1_000),
            ("12B", 12),
            ("64KiB", 65_536),
            ("64k", 65_536),
            ("2 MB", 2_000_000),
            ("1m", 1 << 20),
            ("1g", 1 << 30),
            ("1GB", 1_000_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "B", "1.5MB", "1KBs", "1ki", "1x", "-1", "99999999999GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_single_letter_is_decimal_in_amounts() {
        for (text, bytes) in [("1.5G", 1.5e9), ("1k", 1e3), ("512MiB", 536_870_912.0), ("7", 7.0)] {
            assert_eq!(parse_byte_amount(text), Some(bytes), "{text}");
        }
        for text in ["", "GB", "inf", "nan", "-1MB", "1e999", "5 apples"] {
            assert_eq!(parse_byte_amount(text), None, "{text}");
        }
    }
}
