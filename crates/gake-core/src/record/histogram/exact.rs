//! The exact encoding of a histogram: a few bytes a bucket, in base64 within text formats.
//!
//! | field | bytes |
//! | --- | --- |
//! | 1: all values are integers; 3: some are not | 1 |
//! | minimum, maximum | 8 each, a double, low byte first |
//! | sum: integer part, fraction in 2^-64 | a signed number each |
//! | buckets | their number, then for each the distance to the previous one, and its count |
//!
//! Numbers are LEB128, signed ones in zigzag encoding (0, -1, 1, -2 ...). An empty histogram has no
//! bytes. Decoding takes at most 16 bytes of memory for each byte: buckets become a list.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bucket::{self, LIMIT};
use super::bucket_counts::BucketCounts;
use super::{Histogram, Sum};

/// Bit 0 of the first byte: this version of the encoding.
const VERSION: u8 = 1;

/// Bit 1 of the first byte: some values are not integers.
const FRACTIONAL: u8 = 2;

/// Why bytes are not a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// The bytes end too early.
    #[error("a histogram is truncated")]
    CutOff,
    /// Bytes follow the end of the histogram.
    #[error("a histogram has trailing bytes")]
    TooLong,
    /// Written by a newer gake.
    #[error("a histogram is of an unknown version")]
    Version,
    /// The content is inconsistent.
    #[error("a histogram is invalid: {0}")]
    Invalid(&'static str),
}

impl Histogram {
    /// Encodes the histogram.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        out.push(VERSION | if self.is_fractional { FRACTIONAL } else { 0 });
        out.extend_from_slice(&self.min.to_le_bytes());
        out.extend_from_slice(&self.max.to_le_bytes());
        push_signed(&mut out, self.sum.whole);
        push_signed(&mut out, self.sum.fraction);
        push(&mut out, self.counts.buckets().count() as u128);
        let mut before = 0;
        for (number, count) in self.counts.buckets() {
            push_signed(&mut out, i128::from(number - before));
            push(&mut out, u128::from(count));
            before = number;
        }
        out
    }

    /// Decodes a histogram.
    ///
    /// # Errors
    /// When the bytes are not a valid encoding.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HistogramError> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(Self::new()) };
        if first & !(VERSION | FRACTIONAL) != 0 || first & VERSION == 0 {
            return Err(HistogramError::Version);
        }
        let mut input = ByteReader(rest);
        let (min, max) = (input.double()?, input.double()?);
        if !(-LIMIT..=LIMIT).contains(&min) || !(min..=LIMIT).contains(&max) {
            return Err(HistogramError::Invalid("its minimum and maximum"));
        }
        let sum = Sum { whole: input.signed()?, fraction: input.signed()? };
        let (list, count) = input.buckets()?;
        if !input.0.is_empty() {
            return Err(HistogramError::TooLong);
        }
        let is_fractional = first & FRACTIONAL != 0;
        Ok(Self { counts: BucketCounts::listed(list), count, min, max, sum, is_fractional })
    }
}

fn push(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_signed(out: &mut Vec<u8>, number: i128) {
    push(out, ((number << 1) ^ (number >> 127)) as u128);
}

/// The remaining bytes.
struct ByteReader<'a>(&'a [u8]);

impl ByteReader<'_> {
    fn byte(&mut self) -> Result<u8, HistogramError> {
        let (&byte, rest) = self.0.split_first().ok_or(HistogramError::CutOff)?;
        self.0 = rest;
        Ok(byte)
    }

    fn double(&mut self) -> Result<f64, HistogramError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(HistogramError::CutOff)?;
        self.0 = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    fn number(&mut self) -> Result<u128, HistogramError> {
        let mut number = 0_u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(HistogramError::Invalid("a number is too large"))
    }

    fn signed(&mut self) -> Result<i128, HistogramError> {
        let number = self.number()?;
        Ok((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    /// The buckets, and the sum of their counts.
    fn buckets(&mut self) -> Result<(Vec<(i32, u64)>, u64), HistogramError> {
        const INVALID: HistogramError = HistogramError::Invalid("its buckets");
        let buckets = usize::try_from(self.number()?).map_err(|_| INVALID)?;
        // Each takes at least two bytes: a false number must not allocate.
        if buckets == 0 || buckets > self.0.len() / 2 {
            return Err(INVALID);
        }
        let mut list: Vec<(i32, u64)> = Vec::with_capacity(buckets);
        let (mut before, mut total) = (0_i128, 0_u64);
        for at in 0..buckets {
            let step = self.signed()?;
            let number = before.checked_add(step).filter(|_| at == 0 || step > 0);
            let bucket = number.and_then(|number| i32::try_from(number).ok());
            let bucket = bucket.filter(|bucket| bucket::exists(*bucket)).ok_or(INVALID)?;
            let count = u64::try_from(self.number()?).map_err(|_| INVALID)?;
            total = total.checked_add(count).filter(|_| count > 0).ok_or(INVALID)?;
            list.push((bucket, count));
            before = i128::from(bucket);
        }
        Ok((list, total))
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(self.to_bytes()))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        Self::from_bytes(&bytes).map_err(D::Error::custom)
    }
}

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        push_signed(&mut bytes, self.whole);
        push_signed(&mut bytes, self.fraction);
        serializer.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text.as_bytes()).map_err(D::Error::custom)?;
        let mut input = ByteReader(&bytes);
        let mut number = || input.signed().map_err(D::Error::custom);
        Ok(Self { whole: number()?, fraction: number()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn histogram() -> impl Strategy<Value = Histogram> {
        let one = prop_oneof![-1e9..1e9, Just(0.0), (0..5_000u32).prop_map(f64::from)];
        vec((one, 1..3_u64), 0..200).prop_map(|values| {
            let mut histogram = Histogram::new();
            for (value, times) in values {
                (0..times).for_each(|_| histogram.record_number(value));
            }
            histogram
        })
    }

    proptest! {
        #[test]
        fn it_survives_the_encoding(histogram in histogram()) {
            let bytes = histogram.to_bytes();
            let again = Histogram::from_bytes(&bytes).unwrap();
            prop_assert_eq!(&again, &histogram);
            prop_assert_eq!(again.to_bytes(), bytes.clone());
            for cut in 1..bytes.len() {
                prop_assert!(Histogram::from_bytes(&bytes[..cut]).is_err());
            }
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }

        #[test]
        fn decoding_commutes_with_merging(a in histogram(), b in histogram()) {
            let again = |histogram: &Histogram| Histogram::from_bytes(&histogram.to_bytes()).unwrap();
            let (mut plain, mut encoded) = (a.clone(), again(&a));
            plain.merge(&b);
            encoded.merge(&again(&b));
            prop_assert_eq!(again(&plain), encoded);
        }

        #[test]
        fn any_bytes_are_read_or_refused_in_bounded_memory(mut bytes in vec(any::<u8>(), 0..300)) {
            if let Some(first) = bytes.first_mut() {
                *first = (*first % 4) | 1;
            }
            if let Ok(histogram) = Histogram::from_bytes(&bytes) {
                prop_assert!(histogram.heap_bytes() <= 16 * bytes.len());
                let _ = (histogram.quantile_number(0.5), histogram.stddev(), histogram.mean());
            }
        }

        #[test]
        fn a_changed_byte_is_read_or_refused(
            histogram in histogram(), at in any::<prop::sample::Index>(), byte: u8,
        ) {
            let mut bytes = histogram.to_bytes();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(mut histogram) = Histogram::from_bytes(&bytes) {
                let other = histogram.clone();
                histogram.merge(&other);
                let _ = (histogram.quantile(0.99), histogram.buckets().count());
            }
        }
    }

    #[test]
    fn a_sum_survives_the_encoding() {
        let mut sum = Sum::default();
        [0.1, -7.0, 1e18].into_iter().for_each(|part| sum.add(part));
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Sum>(&text).unwrap(), sum);
    }
}
