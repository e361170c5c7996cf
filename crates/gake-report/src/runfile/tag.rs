//! Tags of histograms: `service`, or for a label `response:checkout`.

use std::fmt::Write as _;

use gake_core::record::{Histogram, LabelTally, Latency, LatencyMetric};

/// The metric, and the label if any, of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HistogramTag {
    Metric(LatencyMetric),
    LabelResponse(u16),
    LabelService(u16),
}

/// The tags of all histograms of a tally.
pub(super) fn all(labels: &[String]) -> impl Iterator<Item = HistogramTag> + use<> {
    let count = u16::try_from(labels.len()).unwrap_or(u16::MAX);
    let of_labels =
        (0..count).flat_map(|n| [HistogramTag::LabelResponse(n), HistogramTag::LabelService(n)]);
    LatencyMetric::ALL.into_iter().map(HistogramTag::Metric).chain(of_labels)
}

impl HistogramTag {
    /// The text of the tag, in which the format allows no comma, space or line break.
    pub(super) fn text(self, labels: &[String]) -> String {
        match self {
            Self::Metric(metric) => metric.name().to_owned(),
            Self::LabelResponse(n) => format!("response:{}", name(labels, n)),
            Self::LabelService(n) => format!("service:{}", name(labels, n)),
        }
    }

    /// The histogram that it names.
    pub(super) fn histogram<'a>(
        self,
        latency: &'a Latency,
        labels: &'a [LabelTally],
    ) -> Option<&'a Histogram> {
        match self {
            Self::Metric(metric) => Some(latency.of(metric)),
            Self::LabelResponse(n) => labels.get(usize::from(n)).map(|label| &label.response),
            Self::LabelService(n) => labels.get(usize::from(n)).map(|label| &label.service),
        }
    }
}

/// A label's name with reserved characters percent-encoded. Tags are keys: a label with the name of
/// an earlier one is suffixed with its number.
fn name(labels: &[String], number: u16) -> String {
    let at = usize::from(number);
    let name = labels.get(at).map_or("", String::as_str);
    let mut text = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if matches!(c, ',' | '%' | '#') || c.is_whitespace() || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                // Writing to a String cannot fail.
                let _ = write!(text, "%{byte:02X}");
            }
        } else {
            text.push(c);
        }
    }
    if labels.iter().take(at).any(|before| before == name) {
        let _ = write!(text, "#{number}");
    }
    text
}
