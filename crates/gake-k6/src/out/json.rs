//! `--out json`: a line a sample, and one before the first sample of each metric.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use gake_core::metric::{Definition, Tags};
use gake_go::number::shortest;
use jiff::Timestamp;
use serde::Serialize;

use crate::options::ThresholdOptions;
use crate::test::RawSample;
use crate::threshold::MetricSelector;
use crate::values::{contains, scaled};

/// Writes samples as k6's `--out json` does.
#[derive(Debug, Default)]
pub struct JsonLines {
    thresholds: BTreeMap<String, Vec<ThresholdOptions>>,
    has_expected_response: bool,
    /// Metrics whose line is written.
    described: HashSet<String>,
}

#[derive(Serialize)]
struct MetricLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    data: MetricData<'a>,
    metric: &'a str,
}

#[derive(Serialize)]
struct MetricData<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    contains: &'static str,
    thresholds: &'a [ThresholdOptions],
    submetrics: Option<Vec<Submetric<'a>>>,
}

#[derive(Serialize)]
struct Submetric<'a> {
    name: String,
    suffix: String,
    tags: BTreeMap<&'a str, &'a str>,
}

impl JsonLines {
    /// Lines of a run; the lines of metrics list their thresholds.
    #[must_use]
    pub fn new(
        thresholds: BTreeMap<String, Vec<ThresholdOptions>>,
        system_tags: &[String],
    ) -> Self {
        let has_expected_response = system_tags.iter().any(|tag| tag == "expected_response");
        Self { thresholds, has_expected_response, described: HashSet::new() }
    }

    /// Writes a sample.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write(&mut self, out: &mut impl Write, sample: &RawSample) -> io::Result<()> {
        let name = sample.metric.name.as_str();
        if !self.described.contains(name) {
            self.describe(out, &sample.metric)?;
            self.described.insert(name.to_owned());
        }
        let of = |tags: &Tags| {
            let pairs = tags.pairs().iter().map(|(key, value)| (key.as_str(), value.as_str()));
            serde_json::to_string(&pairs.collect::<BTreeMap<_, _>>())
                .map(|text| html_escaped(&text))
        };
        write!(
            out,
            r#"{{"metric":{},"type":"Point","data":{{"time":"{}","value":{},"tags":{}"#,
            serde_json::to_string(name)?,
            time(sample.unix_ns),
            shortest(scaled(sample.metric.unit, sample.value)),
            of(&sample.tags)?,
        )?;
        if !sample.metadata.is_empty() {
            write!(out, r#","metadata":{}"#, of(&sample.metadata)?)?;
        }
        out.write_all(b"}}\n")
    }

    fn describe(&self, out: &mut impl Write, metric: &Definition) -> io::Result<()> {
        let submetrics: Vec<_> = self.submetrics(&metric.name).collect();
        let thresholds = self.thresholds.get(&metric.name).map_or(&[][..], Vec::as_slice);
        let line = MetricLine {
            kind: "Metric",
            data: MetricData {
                name: &metric.name,
                kind: metric.kind.name(),
                contains: contains(metric.unit),
                thresholds,
                submetrics: (!submetrics.is_empty()).then_some(submetrics),
            },
            metric: &metric.name,
        };
        write_line(out, &line)
    }

    /// The sub-metrics of thresholds, and the one that k6 always defines.
    fn submetrics(&self, metric: &str) -> impl Iterator<Item = Submetric<'_>> {
        let asked = self.thresholds.keys().filter_map(move |key| {
            let (parent, suffix) = key.strip_suffix('}')?.split_once('{')?;
            MetricSelector::parse(key).ok().filter(|_| parent == metric)?;
            let tags = suffix.split(',').filter_map(|tag| {
                let (key, value) = tag.split_once(':')?;
                Some((unquoted(key), unquoted(value)))
            });
            Some(Submetric { name: key.clone(), suffix: suffix.to_owned(), tags: tags.collect() })
        });
        let expected = "expected_response:true";
        let name = format!("{metric}{{{expected}}}");
        let is_asked = self.thresholds.contains_key(&name);
        let is_usual = self.has_expected_response && metric == "http_req_duration";
        let usual = (is_usual && !is_asked).then(|| Submetric {
            name,
            suffix: expected.to_owned(),
            tags: BTreeMap::from([("expected_response", "true")]),
        });
        asked.chain(usual)
    }
}

/// JSON as Go writes it by default: with HTML's characters escaped.
fn html_escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => safe.push(c),
        }
    }
    safe
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

/// An instant by RFC 3339, with as many decimals as needed.
pub(crate) fn time(unix_ns: i128) -> String {
    Timestamp::from_nanosecond(unix_ns).unwrap_or_default().to_string()
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
