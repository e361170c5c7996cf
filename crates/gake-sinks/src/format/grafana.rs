//! Annotations of a Grafana: what happens in a run, on every chart beside it. Each is a request of
//! its own.

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};
use gake_wire::HttpRequest;
use serde_json::json;

use super::Format;
use super::rows::ending;
use crate::carrier::{Batch, Post};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};

/// Nanoseconds in a millisecond, which Grafana counts in.
const MILLI: u64 = 1_000_000;

/// Writes an annotation for each event, and one for the whole run.
pub(crate) struct Annotations {
    tags: Vec<(String, String)>,
    started: u64,
    target: String,
}

impl Annotations {
    pub(crate) fn new(tags: Vec<(String, String)>) -> Self {
        Self { tags, started: 0, target: String::new() }
    }

    /// The annotation of a span, or of an instant when both ends are one.
    fn annotation(&self, [from, to]: [u64; 2], title: &str, text: &str) -> Batch {
        let own = ["gake".to_owned(), title.to_owned()].into_iter();
        let tags = self.tags.iter().map(|(name, value)| format!("{name}:{value}"));
        let mut body = json!({
            "time": from / MILLI,
            "tags": own.chain(tags).collect::<Vec<_>>(),
            "text": text,
        });
        if to > from {
            body["timeEnd"] = json!(to / MILLI);
        }
        Batch { bytes: body.to_string().into_bytes(), rows: 1 }
    }
}

impl Format for Annotations {
    fn begin(&mut self, start: &ExportStart<'_>) -> Batch {
        self.started = start.started_unix_ns;
        start.target.clone_into(&mut self.target);
        let text = format!("load test of {} begins", start.target);
        self.annotation([self.started; 2], "begin", &text)
    }

    fn second(&mut self, _: &ExportSecond<'_>) -> Batch {
        Batch::default()
    }

    fn readings(&mut self, _: Nanos, _: &[GaugeReading]) -> Batch {
        Batch::default()
    }

    fn event(&mut self, at: Nanos, title: &'static str, text: &str) -> Batch {
        self.annotation([self.started + at; 2], title, text)
    }

    fn end(&mut self, run: &Run, verdict: &ExportVerdict) -> Batch {
        let ExportVerdict { validity, met, missed, .. } = verdict;
        let objectives =
            if met + missed > 0 { format!(", {missed} objectives missed") } else { String::new() };
        let text = format!("load test of {}: {validity}{objectives}; {}", self.target, ending(run));
        self.annotation([self.started, self.started + run.elapsed], "run", &text)
    }
}

/// Where annotations are posted; a Grafana that is there answers the question for its health.
pub(super) fn post(address: &str, headers: Vec<(String, String)>) -> Post {
    let base = address.trim_end_matches('/');
    let first = HttpRequest::new("GET", format!("{base}/api/health"));
    Post::new(format!("{base}/api/annotations"), headers, Some(first))
}
