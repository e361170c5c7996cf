//! OpenMetrics text for scraping.

use std::fmt::Write as _;

use super::series::{SeriesWriter, Totals, cumulative};
use crate::carrier::FigureBatch;

/// Writes the whole page each second.
pub(crate) struct OpenMetrics {
    tags: Vec<(String, String)>,
}

impl OpenMetrics {
    pub(crate) fn new(tags: Vec<(String, String)>) -> Self {
        Self { tags }
    }

    fn labels<'a>(&'a self, own: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        let common = self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs: Vec<String> = common
            .chain(own)
            .map(|(name, value)| format!("{}=\"{}\"", label_name(name), escaped(value)))
            .collect();
        if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
    }
}

impl SeriesWriter for OpenMetrics {
    fn write(&self, totals: &Totals, _started: u64, _unix_ns: u64) -> FigureBatch {
        let mut page = String::new();
        for family in totals.families() {
            let (kind, suffix) =
                if family.is_counter { ("counter", "_total") } else { ("gauge", "") };
            let _ = writeln!(page, "# TYPE {} {kind}", family.name);
            let _ = writeln!(page, "# HELP {} {}", family.name, family.help);
            for point in &family.points {
                let labels = point.labels.iter().map(|(name, value)| (*name, value.as_str()));
                let labels = self.labels(labels);
                let _ = writeln!(page, "{}{suffix}{labels} {}", family.name, point.value);
            }
        }
        for (name, histogram) in totals.histograms() {
            let _ = writeln!(page, "# TYPE gake_{name}_seconds histogram");
            let _ = writeln!(page, "# UNIT gake_{name}_seconds seconds");
            for (bound, count) in cumulative(&histogram) {
                let labels = self.labels([("le", bound.as_str())].into_iter());
                let _ = writeln!(page, "gake_{name}_seconds_bucket{labels} {count}");
            }
            let labels = self.labels(std::iter::empty());
            let _ = writeln!(page, "gake_{name}_seconds_count{labels} {}", histogram.count());
            let sum = histogram.sum() as f64 / 1e9;
            let _ = writeln!(page, "gake_{name}_seconds_sum{labels} {sum}");
        }
        page.push_str("# EOF\n");
        FigureBatch { bytes: page.into_bytes(), rows: 1 }
    }
}

/// A valid label name: letters, digits and underscores, not starting with a digit.
pub(super) fn label_name(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = name.chars().map(keep).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        format!("_{name}")
    } else {
        name
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
