//! Execution segments: the slice of a run that one process does, as an interval of fractions.
//!
//! Users, and iterations of arrival rates, are numbered. The segments of a sequence stripe these
//! numbers: of each period (their common denominator) a segment has offsets in proportion to its
//! share, spread evenly; the largest segment chooses first.

use std::fmt;
use std::str::FromStr;

use gake_core::schedule::NumberPattern;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::K6Options;
use super::value::{OptionValue, mismatch};

/// The largest supported common denominator: memory is proportional to it.
const PERIOD_MAX: u64 = 1_000_000;

/// A fraction from 0 to 1, in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fraction {
    numerator: u64,
    denominator: u64,
}

/// The slice of a run from one fraction to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionSegment {
    from: Fraction,
    to: Fraction,
}

/// Adjacent segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSequence(Vec<ExecutionSegment>);

/// An error in a segment or sequence, in k6's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SegmentError(String);

/// The numbers of a segment: at `offsets` of each period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentNumbers {
    period: u64,
    /// Sorted, below `period`.
    offsets: Vec<u64>,
    /// The number of offsets of each segment of the sequence.
    sizes: Vec<u64>,
    /// The index of this segment in the sequence.
    index: usize,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Fraction {
    const ZERO: Self = Self { numerator: 0, denominator: 1 };
    const ONE: Self = Self { numerator: 1, denominator: 1 };

    fn new(numerator: u64, denominator: u64) -> Self {
        let common = gcd(numerator, denominator).max(1);
        Self { numerator: numerator / common, denominator: denominator / common }
    }

    fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// `1/4`, `25%` or `0.25`.
    fn parse(text: &str) -> Option<Self> {
        if let Some((numerator, denominator)) = text.split_once('/') {
            let denominator = denominator.parse().ok().filter(|number| *number > 0)?;
            return Some(Self::new(numerator.parse().ok()?, denominator));
        }
        let (number, scale) = match text.strip_suffix('%') {
            Some(number) => (number, 100),
            None => (text, 1),
        };
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let power = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
        let numerator: u64 = format!("{whole}{decimals}").parse().ok()?;
        Some(Self::new(numerator, power.checked_mul(scale)?))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl ExecutionSegment {
    /// The whole run.
    pub const WHOLE: Self = Self { from: Fraction::ZERO, to: Fraction::ONE };

    fn new(from: Fraction, to: Fraction) -> Result<Self, SegmentError> {
        if to.value() > 1.0 {
            let end = to.value();
            let text = format!("segment end value can't be more than 1 but was {end:.2}");
            return Err(SegmentError(text));
        }
        if from.value() >= to.value() {
            let (start, end) = (from.value(), to.value());
            let text = format!("segment start({start:.2}) must be less than its end({end:.2})");
            return Err(SegmentError(text));
        }
        Ok(Self { from, to })
    }
}

fn fraction(text: &str) -> Result<Fraction, SegmentError> {
    let wrong =
        || format!("'{text}' is not a valid percentage, decimal, fraction or interval value");
    Fraction::parse(text).ok_or_else(|| SegmentError(wrong()))
}

impl FromStr for ExecutionSegment {
    type Err = SegmentError;

    /// `1/4:1/2`; the default start is 0.
    fn from_str(text: &str) -> Result<Self, SegmentError> {
        match text.split_once(':') {
            _ if text.is_empty() => Ok(Self::WHOLE),
            Some((from, to)) => Self::new(fraction(from)?, fraction(to)?),
            None => Self::new(Fraction::ZERO, fraction(text)?),
        }
    }
}

impl fmt::Display for ExecutionSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.from, self.to)
    }
}

impl FromStr for SegmentSequence {
    type Err = SegmentError;

    /// `0,1/4,1`: the bounds of its segments.
    fn from_str(text: &str) -> Result<Self, SegmentError> {
        let points: Vec<_> = text.split(',').collect();
        if points.len() < 2 {
            return Err(SegmentError(format!(
                "at least 2 points are needed for an execution segment sequence, {} given",
                points.len()
            )));
        }
        let pairs = points.windows(2);
        let segments =
            pairs.map(|pair| ExecutionSegment::new(fraction(pair[0])?, fraction(pair[1])?));
        segments.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for SegmentSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.0.first() {
            write!(f, "{}", first.from)?;
        }
        self.0.iter().try_for_each(|segment| write!(f, ",{}", segment.to))
    }
}

impl SegmentSequence {
    /// The shortest sequence that contains a segment.
    fn around(segment: ExecutionSegment) -> Self {
        let mut points = vec![Fraction::ZERO, segment.from, segment.to, Fraction::ONE];
        points.dedup();
        Self(
            points.windows(2).map(|pair| ExecutionSegment { from: pair[0], to: pair[1] }).collect(),
        )
    }
}

impl SegmentNumbers {
    /// `sizes[index]` of each `sum(sizes)` numbers.
    fn new(sizes: Vec<u64>, index: usize) -> Self {
        let common = sizes.iter().copied().fold(0, gcd).max(1);
        let sizes: Vec<u64> = sizes.into_iter().map(|size| size / common).collect();
        let period = sizes.iter().sum::<u64>();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(sizes[*at]));
        let mut taken = vec![false; usize::try_from(period).unwrap_or(0)];
        let mut offsets = Vec::new();
        for at in order {
            offsets.clear();
            for number in 0..sizes[at] {
                let even = (number * period).div_ceil(sizes[at]) as usize;
                let free = (even..taken.len()).chain(0..even).find(|offset| !taken[*offset]);
                if let Some(free) = free {
                    taken[free] = true;
                    offsets.push(free as u64);
                }
            }
            if at == index {
                break;
            }
        }
        offsets.sort_unstable();
        Self { period, offsets, sizes, index }
    }

    /// The numbers of the options' segment, or why it is invalid.
    pub(super) fn of(options: &K6Options) -> Result<Self, String> {
        let segment = options.execution_segment.unwrap_or(ExecutionSegment::WHOLE);
        let sequence = options.execution_segment_sequence.clone();
        let sequence = sequence.unwrap_or_else(|| SegmentSequence::around(segment));
        let Some(index) = sequence.0.iter().position(|one| *one == segment) else {
            return Err(format!(
                "provided segment {segment} can't be found in sequence {sequence}"
            ));
        };
        let multiple = |so_far: u64, next: u64| {
            let least = so_far / gcd(so_far, next) * next;
            Some(least).filter(|least| *least <= PERIOD_MAX)
        };
        let denominators = sequence
            .0
            .iter()
            .flat_map(|segment| [segment.from.denominator, segment.to.denominator]);
        let is_fine = denominators.clone().any(|denominator| denominator > PERIOD_MAX);
        let period = if is_fine { None } else { denominators.into_iter().try_fold(1, multiple) };
        let Some(period) = period else {
            return Err(format!("the sequence {sequence} is finer than 1/{PERIOD_MAX}"));
        };
        let at = |fraction: Fraction| fraction.numerator * (period / fraction.denominator);
        let mut sizes: Vec<u64> =
            sequence.0.iter().map(|segment| at(segment.to) - at(segment.from)).collect();
        // The rest of the run, before and after the sequence.
        let first = sequence.0.first().map_or(0, |segment| at(segment.from));
        let last = sequence.0.last().map_or(period, |segment| at(segment.to));
        sizes.extend([first, period - last].into_iter().filter(|size| *size > 0));
        Ok(Self::new(sizes, index))
    }

    /// How many of the numbers `0..total` it has.
    pub(super) fn share(&self, total: u64) -> u64 {
        let rest = total % self.period;
        let within = self.offsets.iter().filter(|offset| **offset < rest).count() as u64;
        total / self.period * self.offsets.len() as u64 + within
    }

    /// Its share of the whole.
    pub(super) fn fraction(&self) -> f64 {
        self.offsets.len() as f64 / self.period as f64
    }

    /// Its numbers; `None` if it has all or none.
    pub(super) fn numbers(&self) -> Option<NumberPattern> {
        if self.offsets.len() as u64 == self.period {
            return None;
        }
        NumberPattern::new(self.period, self.offsets.clone())
    }

    /// The numbers of iterations that this many users share, in proportion to the users of each
    /// segment; `None` if this segment has no user.
    pub(super) fn among(&self, users: u64) -> Option<Self> {
        let shares = |index| Self::new(self.sizes.clone(), index).share(users);
        let sizes: Vec<u64> = (0..self.sizes.len()).map(shares).collect();
        (sizes[self.index] > 0).then(|| Self::new(sizes, self.index))
    }
}

/// The numbers of the execution segment's users in the whole test; `None` if it has all.
///
/// # Errors
/// When the segment is not in its sequence.
pub fn segment_users(options: &K6Options) -> Result<Option<NumberPattern>, String> {
    SegmentNumbers::of(options).map(|stripes| stripes.numbers())
}

/// Checks that the segment is in its sequence.
pub(super) fn within(options: &K6Options) -> Result<(), String> {
    SegmentNumbers::of(options).map(drop)
}

impl OptionValue for ExecutionSegment {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        from_text(value, "*lib.ExecutionSegment")
    }
}

impl OptionValue for SegmentSequence {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        from_text(value, "*lib.ExecutionSegmentSequence")
    }
}

fn from_text<T: FromStr<Err = SegmentError>>(
    value: &Value,
    wanted: &str,
) -> Result<Option<T>, String> {
    let text = value.as_str().ok_or_else(|| mismatch(value, wanted))?;
    text.parse().map(Some).map_err(|error: SegmentError| error.to_string())
}

impl Serialize for ExecutionSegment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for SegmentSequence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(segment: &str, sequence: Option<&str>) -> K6Options {
        K6Options {
            execution_segment: Some(segment.parse().unwrap()),
            execution_segment_sequence: sequence.map(|text| text.parse().unwrap()),
            ..K6Options::default()
        }
    }

    fn numbers(segment: &str, sequence: Option<&str>, total: u64) -> Vec<u64> {
        let stripes = SegmentNumbers::of(&options(segment, sequence)).unwrap();
        (0..total).filter(|n| stripes.offsets.contains(&(n % stripes.period))).collect()
    }

    /// Iterations of an arrival rate that k6 ran.
    #[test]
    fn numbers_are_those_of_k6() {
        for (segment, sequence, expected) in [
            ("1/3:1", None, vec![0, 2, 3, 5, 6, 8, 9, 11]),
            ("0:1/3", None, vec![1, 4, 7, 10]),
            ("0:1/3", Some("0,1/3,2/3,1"), vec![0, 3, 6, 9]),
            ("1/3:2/3", Some("0,1/3,2/3,1"), vec![1, 4, 7, 10]),
            ("1/4:1", Some("0,1/4,1"), vec![0, 2, 3, 4, 6, 7, 8, 10, 11]),
            ("0:2/5", Some("0,2/5,1"), vec![1, 3, 6, 8, 11]),
            ("2/5:1", Some("0,2/5,1"), vec![0, 2, 4, 5, 7, 9, 10]),
            ("0:1/2", Some("0,1/2,3/4,1"), vec![0, 2, 4, 6, 8, 10]),
            ("1/2:3/4", Some("0,1/2,3/4,1"), vec![1, 5, 9]),
            ("3/4:1", Some("0,1/2,3/4,1"), vec![3, 7, 11]),
        ] {
            assert_eq!(numbers(segment, sequence, 12), expected, "{segment} of {sequence:?}");
        }
    }

    #[test]
    fn the_segments_of_a_sequence_sum_to_the_whole() {
        let sequence = "0,1/7,2/5,0.5,80%,1";
        for total in 0..200 {
            let segments = ["0:1/7", "1/7:2/5", "2/5:1/2", "1/2:4/5", "4/5:1"];
            let shares = segments.map(|segment| {
                let stripes = SegmentNumbers::of(&options(segment, Some(sequence))).unwrap();
                assert_eq!(
                    stripes.share(total),
                    numbers(segment, Some(sequence), total).len() as u64
                );
                stripes.share(total)
            });
            assert_eq!(shares.iter().sum::<u64>(), total);
        }
    }

    /// Users and iterations of segments that k6 ran.
    #[test]
    fn shared_iterations_are_proportional_to_users() {
        for (segment, users, iterations, expected) in [
            ("0:1/2", 3, 10, (2, 7)),
            ("1/2:1", 3, 10, (1, 3)),
            ("0:1/2", 6, 20, (3, 10)),
            ("0:1/3", 6, 20, (2, 7)),
            ("1/3:1", 6, 20, (4, 13)),
        ] {
            let stripes = SegmentNumbers::of(&options(segment, None)).unwrap();
            let among = stripes.among(users).unwrap();
            assert_eq!((stripes.share(users), among.share(iterations)), expected, "{segment}");
        }
        assert_eq!(SegmentNumbers::of(&options("0:1/3", None)).unwrap().among(1), None);
    }

    #[test]
    fn texts_are_read_and_shown() {
        for (text, shown) in [
            ("0:1/3", "0:1/3"),
            ("1/2", "0:1/2"),
            ("25%", "0:1/4"),
            ("25%:75%", "1/4:3/4"),
            ("0.25:0.5", "1/4:1/2"),
            ("", "0:1"),
        ] {
            assert_eq!(text.parse::<ExecutionSegment>().unwrap().to_string(), shown);
        }
        let sequence: SegmentSequence = "0,0.25,2/4,1".parse().unwrap();
        assert_eq!(sequence.to_string(), "0,1/4,1/2,1");
        for text in ["x", "2/3:1/3", "0:2", "1/3:1/3", "1/0", "-1:1", "1e9:1"] {
            assert!(text.parse::<ExecutionSegment>().is_err(), "{text}");
        }
    }
}
