//! Histograms in the format of the run file: HDR histograms of three digits.

use std::io;

use gake_core::clock::Nanos;
use gake_core::record::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::{CreationError, Histogram as Hdr, RecordError};

/// Significant digits: with three, an octave has as many buckets as in a [`Histogram`].
const DIGITS: u8 = 3;

/// The cookie of a compressed histogram without its word size.
const COMPRESSED: u32 = 0x1c84_9304;

#[derive(Debug, thiserror::Error)]
pub(super) enum HdrError {
    #[error("no HDR histogram of {DIGITS} digits: {0}")]
    Create(#[from] CreationError),
    #[error("a value has no place in an HDR histogram: {0}")]
    Record(#[from] RecordError),
}

/// Most bytes of a decoded histogram: all buckets of three digits with the longest counts.
const DECODED_MAX: u64 = 1 << 20;

/// Bytes before the counts.
const HEAD: usize = 40;

/// Decodes a histogram in the V2 encoding, compressed or not, with at most three digits: with more,
/// a few bytes could demand a hundred megabytes. `None` if it is invalid.
pub(super) fn decode(bytes: &[u8]) -> Option<Hdr<u64>> {
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes)
    };
    let plain = match word(bytes, 0)? & !0xf0 {
        COMPRESSED => {
            let deflated = flate2::read::ZlibDecoder::new(bytes.get(8..)?);
            gake_files::bounded(deflated, DECODED_MAX).ok()??
        }
        _ => bytes.to_vec(),
    };
    // The decoder allocates what the head demands before it checks the data.
    let payload = usize::try_from(word(&plain, 4)?).ok()?;
    let digits = word(&plain, 12)?;
    if payload > plain.len().checked_sub(HEAD)? || digits > u32::from(DIGITS) {
        return None;
    }
    Deserializer::new().deserialize(&mut io::Cursor::new(plain)).ok()
}

/// The counts of a histogram in HDR buckets, each of which is one of ours.
pub(super) fn from_histogram(histogram: &Histogram) -> Result<Hdr<u64>, HdrError> {
    let mut buckets = Hdr::new(DIGITS)?;
    // The largest first, so that it grows only once.
    buckets.record_n(histogram.max(), 0)?;
    for bucket in histogram.buckets() {
        buckets.record_n(bucket.low, bucket.count)?;
    }
    Ok(buckets)
}

/// The histogram of HDR buckets with exact minimum, maximum and sum. Another tool's file may have a
/// different precision: counting by the lowest value of each bucket converts it.
pub(super) fn to_histogram(buckets: &Hdr<u64>, exact: (Nanos, Nanos, u128)) -> Histogram {
    let values = buckets.iter_recorded().map(|bucket| {
        (buckets.lowest_equivalent(bucket.value_iterated_to()), bucket.count_at_value())
    });
    let (min, max, sum) = exact;
    Histogram::from_buckets(values, min, max, sum)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};

    use super::*;

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(plain).unwrap();
        let deflated = out.finish().unwrap();
        let length = u32::try_from(deflated.len()).unwrap().to_be_bytes();
        [&(COMPRESSED | 0x10).to_be_bytes()[..], &length, &deflated].concat()
    }

    fn plain() -> Vec<u8> {
        let mut histogram = Hdr::<u64>::new(DIGITS).unwrap();
        (1..5_000_u64).for_each(|value| histogram.record(value * value).unwrap());
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
        let mut deflated = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut deflated).unwrap();
        assert_eq!(decode(&deflated), Some(histogram));
        bytes
    }

    #[test]
    fn what_a_histogram_says_of_itself_is_not_believed() {
        let plain = plain();
        assert!(decode(&plain).is_some() && decode(&compressed(&plain)).is_some());
        // An excessive payload length, normalizing offset, digits and ratio.
        for (at, word) in [
            (4, 0x8000_0000_u32),
            (4, u32::MAX),
            (8, 0x8000_0000),
            (8, u32::MAX),
            (12, 5),
            (12, u32::MAX),
            (32, u32::MAX),
        ] {
            let mut wrong = plain.clone();
            wrong[at..at + 4].copy_from_slice(&word.to_be_bytes());
            assert_eq!(decode(&wrong), None, "{at} {word:x}");
            assert_eq!(decode(&compressed(&wrong)), None, "{at} {word:x}");
        }
        // A compression bomb.
        let bomb = [plain.clone(), vec![0; 64 << 20]].concat();
        assert!(compressed(&bomb).len() < 1 << 20);
        assert_eq!(decode(&compressed(&bomb)), None);
        for cut in 0..plain.len().min(200) {
            decode(&plain[..cut]);
        }
        for at in 0..HEAD {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut wrong = plain.clone();
                wrong[at] = byte;
                decode(&wrong);
            }
        }
    }
}
