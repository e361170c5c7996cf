//! Mapping between values and bucket numbers.
//!
//! Buckets are numbered in the order of their values; 0 is zero. Each octave of magnitudes,
//! `2^n..2^(n+1)`, has 1,024 buckets of equal width: an error of 0.1 %. The number is a double's
//! exponent and first ten fraction bits, plus a constant.

/// log2 of [`OCTAVE`].
pub(super) const OCTAVE_BITS: u32 = 10;

/// Buckets an octave.
pub(super) const OCTAVE: usize = 1 << OCTAVE_BITS;

/// Bits of a double that do not affect its bucket.
const REST_BITS: u32 = f64::MANTISSA_DIGITS - 1 - OCTAVE_BITS;

/// log2 of the smallest magnitude; smaller ones count as zero.
const LOWEST_EXPONENT: i32 = -64;

/// Difference between leading bits and bucket number.
const OFFSET: i32 = ((f64::MAX_EXP - 1 + LOWEST_EXPONENT) << OCTAVE_BITS) - OCTAVE as i32;

/// Largest magnitude, the double below `2^64`; larger ones are clamped.
pub(super) const LIMIT: f64 = 18_446_744_073_709_549_568.0;

/// The bucket of a value whose magnitude is at most [`LIMIT`].
#[inline]
pub(super) fn number(value: f64) -> i32 {
    // 21 bits.
    let place = (value.abs().to_bits() >> REST_BITS) as i32 - OFFSET;
    if place < OCTAVE as i32 {
        0
    } else if value < 0.0 {
        -place
    } else {
        place
    }
}

/// Whether the number is that of a bucket.
pub(super) fn exists(bucket: i32) -> bool {
    bucket == 0 || (OCTAVE as i32..=number(LIMIT)).contains(&bucket.saturating_abs())
}

/// The magnitudes in a bucket: inclusive lower and exclusive upper bound.
pub(super) fn magnitudes(number: i32) -> (f64, f64) {
    if number == 0 {
        return (0.0, 0.0);
    }
    let edge = |place: i32| f64::from_bits(((place + OFFSET) as u64) << REST_BITS);
    let place = number.abs();
    (edge(place), edge(place + 1))
}

/// The first and last integer magnitude in a bucket; the same integer if buckets are narrower than
/// 1.
pub(super) fn whole_magnitudes(number: i32) -> (f64, f64) {
    let (low, high) = magnitudes(number);
    (low.ceil(), (high.ceil() - 1.0).max(low.ceil()))
}

/// The largest integer in a bucket.
pub(super) fn whole_top(number: i32) -> f64 {
    let (low, high) = whole_magnitudes(number);
    if number < 0 { -low } else { high }
}

/// The middle of the integers in a bucket, rounded up.
pub(super) fn whole_middle(number: i32) -> f64 {
    let (low, high) = whole_magnitudes(number);
    let middle = low + ((high - low + 1.0) / 2.0).floor();
    if number < 0 { -middle } else { middle }
}

/// The middle of a bucket.
pub(super) fn middle(number: i32) -> f64 {
    let (low, high) = magnitudes(number);
    let middle = f64::midpoint(low, high);
    if number < 0 { -middle } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_in_the_order_of_values() {
        for number in [1024, 1025, 66_000, 100_000, 132_095] {
            let (low, high) = magnitudes(number);
            assert_eq!(super::number(low), number);
            assert_eq!(super::number(high.next_down()), number);
            assert_eq!(super::number(-low), -number);
            assert_eq!(magnitudes(number + 1).0, high);
            assert!(high / low <= 1.0 + 1.0 / 1024.0);
        }
        assert_eq!(number(LIMIT), 132_095);
        assert_eq!(magnitudes(1024).0, (-64.0_f64).exp2());
        assert_eq!((number(0.0), number(-0.0), number(1e-300)), (0, 0, 0));
    }

    #[test]
    fn small_whole_numbers_are_exact() {
        for value in (1..=2_047).map(f64::from) {
            let bucket = number(value);
            assert_eq!(whole_magnitudes(bucket), (value, value));
            assert_eq!((whole_top(bucket), whole_middle(bucket)), (value, value));
            assert_eq!((whole_top(-bucket), whole_middle(-bucket)), (-value, -value));
        }
        assert_eq!(whole_magnitudes(number(2_049.0)), (2_048.0, 2_049.0));
        assert_eq!(whole_middle(number(2_048.0)), 2_049.0);
        assert_eq!(whole_magnitudes(0), (0.0, 0.0));
    }
}
