//! Latency buckets: `[0,1ms,10ms]`.

use std::str::FromStr;

use gake_report::vegeta::go;

/// The most buckets: each is a line.
const BUCKETS_MAX: usize = 10_000;

/// The starts of buckets in nanoseconds; each ends at the start of the next, the last one never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets(Vec<i64>);

/// An error of a list of buckets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BucketsError {
    /// There are no brackets, or nothing between them.
    #[error("{0:?} is not a list of buckets; write [0,1ms,10ms]")]
    Form(String),
    /// The start of one is not a duration.
    #[error("bad bucket: {0}")]
    Duration(#[from] go::VegetaDurationError),
    /// The starts do not increase.
    #[error("{0:?}: each bucket has to start after the one before")]
    Order(String),
}

impl FromStr for Buckets {
    type Err = BucketsError;

    /// A first bucket from 0 is added when the first one starts later.
    fn from_str(text: &str) -> Result<Self, BucketsError> {
        let form = || BucketsError::Form(text.to_owned());
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inside = inside.filter(|inside| !inside.trim().is_empty()).ok_or_else(form)?;
        let mut starts = Vec::new();
        for start in inside.split(',') {
            starts.push(go::parse_duration(start.trim())?);
        }
        if starts[0] > 0 {
            starts.insert(0, 0);
        }
        if starts.len() > BUCKETS_MAX {
            return Err(form());
        }
        if !starts.is_sorted_by(|a, b| a < b) {
            return Err(BucketsError::Order(text.to_owned()));
        }
        Ok(Self(starts))
    }
}

impl Buckets {
    /// The start and the end of the bucket, as text.
    pub(super) fn bounds(&self, at: usize) -> (String, String) {
        let start = self.0.get(at).map(|start| go::duration(*start)).unwrap_or_default();
        let end = self.0.get(at + 1).map_or_else(|| "+Inf".to_owned(), |end| go::duration(*end));
        (start, end)
    }

    pub(super) fn starts(&self) -> &[i64] {
        &self.0
    }
}

/// The number of latencies in each bucket.
#[derive(Debug, Clone)]
pub struct BucketCounts {
    pub buckets: Buckets,
    counts: Vec<u64>,
}

impl BucketCounts {
    /// Counts of 0.
    pub fn new(buckets: Buckets) -> Self {
        let counts = vec![0; buckets.0.len()];
        Self { buckets, counts }
    }

    /// Counts a latency. One below the first bucket is counted in the last, as Vegeta does.
    pub fn add(&mut self, latency: i64) {
        let after = self.buckets.0.partition_point(|start| *start <= latency);
        let at = after.checked_sub(1).unwrap_or(self.counts.len() - 1);
        self.counts[at] += 1;
    }

    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}
