//! Prometheus remote write 1.0: protobuf, compressed by snappy.

use super::native::native;
use super::page::label_name;
use super::protobuf::ProtoMessage;
use super::series::{SeriesWriter, Totals, cumulative};
use crate::carrier::FigureBatch;

/// The resolution of native histograms: buckets grow by 2.2 %.
const SCHEMA: i32 = 5;

/// Writes every series each second.
pub(crate) struct RemoteWrite {
    tags: Vec<(String, String)>,
    /// Whether to write native histograms instead of series for each bucket.
    is_native: bool,
}

impl RemoteWrite {
    pub(crate) fn new(tags: Vec<(String, String)>, is_native: bool) -> Self {
        Self { tags, is_native }
    }

    /// One series with one sample.
    fn series(&self, name: &str, own: &[(&str, &str)], value: f64, unix_ms: u64) -> ProtoMessage {
        let mut sample = ProtoMessage::default();
        sample.double(1, value);
        sample.int64(2, unix_ms);
        let mut series = self.labels(name, own);
        series.message(2, &sample);
        series
    }

    /// The labels of a series, in the order of their names.
    fn labels(&self, name: &str, own: &[(&str, &str)]) -> ProtoMessage {
        let mut labels: Vec<(String, &str)> = vec![("__name__".to_owned(), name)];
        labels.push(("job".to_owned(), "gake"));
        labels.extend(self.tags.iter().map(|(name, value)| (label_name(name), value.as_str())));
        labels.extend(own.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        // The later of two labels of one name wins.
        labels.reverse();
        labels.sort_by(|a, b| a.0.cmp(&b.0));
        labels.dedup_by(|a, b| a.0 == b.0);
        let mut series = ProtoMessage::default();
        for (name, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
            series.message(1, &label(name, value));
        }
        series
    }
}

impl SeriesWriter for RemoteWrite {
    fn write(&self, totals: &Totals, _started: u64, unix_ns: u64) -> FigureBatch {
        let mut request = ProtoMessage::default();
        let mut rows = 0;
        let mut add = |name: String, labels: &[(&str, &str)], value: f64| {
            request.message(1, &self.series(&name, labels, value, unix_ns / 1_000_000));
            rows += 1;
        };
        for family in totals.families() {
            let suffix = if family.is_counter { "_total" } else { "" };
            for point in &family.points {
                let labels: Vec<_> =
                    point.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                add(format!("{}{suffix}", family.name), &labels, point.value);
            }
        }
        if self.is_native {
            for (name, histogram) in totals.histograms() {
                let mut series = self.labels(&format!("gake_{name}_seconds"), &[]);
                series.message(4, &native(&histogram, 1e9, SCHEMA, unix_ns / 1_000_000));
                request.message(1, &series);
                rows += 1;
            }
            return FigureBatch { bytes: compressed(&request.bytes), rows };
        }
        for (name, histogram) in totals.histograms() {
            for (bound, count) in cumulative(&histogram) {
                let labels = [("le", bound.as_str())];
                add(format!("gake_{name}_seconds_bucket"), &labels, count as f64);
            }
            add(format!("gake_{name}_seconds_count"), &[], histogram.count() as f64);
            add(format!("gake_{name}_seconds_sum"), &[], histogram.sum() as f64 / 1e9);
        }
        FigureBatch { bytes: compressed(&request.bytes), rows }
    }
}

pub(super) fn nothing() -> Vec<u8> {
    compressed(&[])
}

pub(super) fn compressed(bytes: &[u8]) -> Vec<u8> {
    // Compressing a vector in memory does not fail.
    snap::raw::Encoder::new().compress_vec(bytes).unwrap_or_default()
}

pub(super) fn label(name: &str, value: &str) -> ProtoMessage {
    let mut label = ProtoMessage::default();
    label.bytes(1, name.as_bytes());
    label.bytes(2, value.as_bytes());
    label
}
