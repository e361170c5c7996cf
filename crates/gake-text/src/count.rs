//! Whole numbers with a suffix, as in wrk: `10k`, `2M`.

/// Why a text is not a count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a whole number; write for example 1000 or 10k")]
pub struct WholeNumberError {
    text: String,
}

/// Reads a whole number with an optional suffix for thousands or millions.
///
/// # Errors
/// When the text is not a whole number, or does not fit 64 bits.
pub fn parse_count(text: &str) -> Result<u64, WholeNumberError> {
    let (digits, scale) = split_suffix(text);
    let count = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(scale));
    count.ok_or_else(|| WholeNumberError { text: text.to_owned() })
}

/// Splits off the suffix and returns its factor.
pub(crate) fn split_suffix(text: &str) -> (&str, u64) {
    match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1_000),
        Some('m' | 'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_suffixes() {
        for (text, count) in [("0", 0), ("1000", 1_000), ("10k", 10_000), ("2M", 2_000_000)] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        for text in
            ["", "k", "1.5k", "-1", " 1", "10g", "99999999999999999999", "9999999999999999M"]
        {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }
}
