//! Tags of histograms: `service`, or of one label `response:checkout`.

use std::fmt::Write as _;

use gake_core::record::{Histogram, LabelTally, Latency, LatencyMetric};

/// What a histogram of the file is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Metric(LatencyMetric),
    LabelResponse(u16),
    LabelService(u16),
}

/// The tags of a tally's histograms.
pub(super) fn all(labels: &[String]) -> impl Iterator<Item = Tag> + use<> {
    let count = u16::try_from(labels.len()).unwrap_or(u16::MAX);
    let of_labels = (0..count).flat_map(|n| [Tag::LabelResponse(n), Tag::LabelService(n)]);
    LatencyMetric::ALL.into_iter().map(Tag::Metric).chain(of_labels)
}

impl Tag {
    /// The text of the tag, in which the format allows no comma, blank or line break.
    pub(super) fn text(self, labels: &[String]) -> String {
        match self {
            Self::Metric(metric) => metric.name().to_owned(),
            Self::LabelResponse(n) => format!("response:{}", name(labels, n)),
            Self::LabelService(n) => format!("service:{}", name(labels, n)),
        }
    }

    /// The histogram it names.
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

/// A label's name with what a tag may not hold percent-encoded. Tags are keys, so a label whose
/// name another has before it gets its number too.
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
