//! A summary as OpenMetrics text 1.0, for Prometheus and compatible tools: a textfile collector, a
//! push gateway, or a dashboard of past runs.

use std::fmt::Write as _;

use gake_core::clock::Nanos;
use gake_core::record::{Counts, Histogram, LatencyMetric, Run};
use gake_judge::stats::RunRates;
use gake_judge::{Summary, Validity};

/// Upper bounds of the histogram buckets, in nanoseconds: 1, 2, 5 per decade from 100 µs to 100 s.
const BOUNDS: [Nanos; 19] = {
    let mut bounds = [0; 19];
    let mut decade = 100_000;
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = decade * [1, 2, 5][at % 3];
        at += 1;
        if at.is_multiple_of(3) {
            decade *= 10;
        }
    }
    bounds
};

/// Quantiles reported in addition to the coarse buckets.
const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// The summary as OpenMetrics text; ends with `# EOF` and a newline.
#[must_use]
pub fn render(summary: &Summary) -> String {
    let mut text = Exposition::default();
    about(&mut text, summary);
    counts(&mut text, &summary.run);
    latencies(&mut text, &summary.run);
    labels(&mut text, &summary.run);
    text.0.push_str("# EOF\n");
    text.0
}

/// The text under construction. Writing to a String cannot fail.
#[derive(Debug, Default)]
struct Exposition(String);

impl Exposition {
    /// Starts a metric family. Its unit is the suffix of its name, as the format demands.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        for unit in ["seconds", "bytes"] {
            if name.ends_with(&format!("_{unit}")) {
                let _ = writeln!(self.0, "# UNIT {name} {unit}");
            }
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (i, (key, label)) in labels.iter().enumerate() {
            let open = if i == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{key}=\"{}\"", escape(label));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn outcomes(&mut self, name: &str, labels: &[(&str, &str)], counts: &Counts) {
        for (outcome, count) in [
            ("ok", counts.ok),
            ("failed", counts.failed),
            ("unfinished", counts.unfinished),
            ("dropped", counts.dropped),
            ("unsent", counts.unsent),
        ] {
            let labels = [labels, &[("outcome", outcome)]].concat();
            self.sample(name, &labels, count);
        }
    }

    fn histogram(&mut self, name: &str, label: (&str, &str), histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        for bound in BOUNDS {
            let le = seconds(bound as f64).to_string();
            // The format recommends "1.0" over "1" for `le`.
            let le = if le.contains('.') { le } else { format!("{le}.0") };
            self.sample(&bucket, &[label, ("le", &le)], histogram.count_up_to(bound));
        }
        self.sample(&bucket, &[label, ("le", "+Inf")], histogram.count());
        self.sample(&format!("{name}_count"), &[label], histogram.count());
        self.sample(&format!("{name}_sum"), &[label], seconds(histogram.sum() as f64));
    }
}

fn about(text: &mut Exposition, summary: &Summary) {
    let (run, verdict) = (&summary.run, &summary.verdict);
    text.family("gake_run_info", "gauge", "What was loaded, and how.");
    let plan = run.plan.to_string();
    let labels = [
        ("target", run.plan.target.as_str()),
        ("plan", &plan),
        ("gake", env!("CARGO_PKG_VERSION")),
    ];
    text.sample("gake_run_info", &labels, 1);
    let help = "When the run started, in seconds since 1970.";
    text.gauge("gake_started_seconds", help, seconds(run.started_unix_ns as f64));
    let help = "From the start to the last outcome.";
    text.gauge("gake_elapsed_seconds", help, seconds(run.elapsed as f64));

    text.family("gake_validity", "gauge", "Whether the figures can be believed.");
    for level in [Validity::Valid, Validity::Suspect, Validity::Invalid] {
        let on = u8::from(level == verdict.validity);
        text.sample("gake_validity", &[("gake_validity", level.name())], on);
    }
    if !verdict.objectives.is_empty() {
        text.family("gake_objective_met", "gauge", "1 when the objective was met.");
        let mut seen: Vec<&str> = Vec::new();
        for objective in &verdict.objectives {
            // A sample must be unique.
            if !seen.contains(&objective.text.as_str()) {
                seen.push(&objective.text);
                let labels = [("objective", objective.text.as_str())];
                text.sample("gake_objective_met", &labels, u8::from(objective.met));
            }
        }
    }
    if !verdict.findings.is_empty() {
        text.family("gake_finding", "gauge", "What limited the run.");
        for finding in &verdict.findings {
            text.sample("gake_finding", &[("finding", finding.id)], 1);
        }
    }
}

fn counts(text: &mut Exposition, run: &Run) {
    let (tally, counts) = (&run.tally, &run.tally.counts);
    text.family("gake_requests", "counter", "Arrivals due, by outcome.");
    text.outcomes("gake_requests_total", &[], counts);

    let rates = RunRates::of(run);
    text.family("gake_rate", "gauge", "Arrivals a second.");
    let asked = rates.asked.map(|asked| ("asked", asked));
    let seen = [("sent", rates.sent), ("completed", rates.completed), ("ok", rates.goodput)];
    for (of, rate) in asked.into_iter().chain(seen) {
        text.sample("gake_rate", &[("of", of)], rate);
    }
    text.family("gake_responses", "counter", "Responses by status code.");
    for &(status, count) in tally.statuses() {
        text.sample("gake_responses_total", &[("status", &status.to_string())], count);
    }
    text.family("gake_faults", "counter", "Ends without a response, by fault.");
    for (fault, count) in tally.faults() {
        let detail = fault.detail();
        let labels = [("fault", fault.name()), ("detail", detail.as_str())];
        text.sample("gake_faults_total", &labels, *count);
    }
    text.family("gake_transfer_bytes", "counter", "Bytes, heads included, before TLS.");
    for (direction, bytes) in [("in", counts.bytes_in), ("out", counts.bytes_out)] {
        text.sample("gake_transfer_bytes_total", &[("direction", direction)], bytes);
    }
    text.family("gake_connections_opened", "counter", "Connections opened.");
    text.sample("gake_connections_opened_total", &[], counts.opened);
    text.gauge("gake_connections_peak", "Most connections open at once.", run.peak_connections);
    text.family("gake_cpu_seconds", "counter", "CPU time of the generator's workers.");
    text.sample("gake_cpu_seconds_total", &[], seconds(run.generator.cpu as f64));
    text.gauge("gake_memory_bytes", "Highest resident memory seen.", run.generator.rss_bytes);
}

fn latencies(text: &mut Exposition, run: &Run) {
    let response = run.tally.latency.response();
    let all = LatencyMetric::ALL.into_iter().map(|m| (m.name(), run.tally.latency.of(m)));
    let all: Vec<_> = [("response", &*response)]
        .into_iter()
        .chain(all)
        .filter(|(_, histogram)| !histogram.is_empty())
        .collect();
    if all.is_empty() {
        return;
    }
    text.family("gake_latency_seconds", "histogram", "Latencies, in coarse buckets.");
    for (name, histogram) in &all {
        text.histogram("gake_latency_seconds", ("metric", name), histogram);
    }
    let help = "Quantiles of the latencies, to three digits.";
    text.family("gake_latency_quantile_seconds", "gauge", help);
    for (name, histogram) in &all {
        for quantile in QUANTILES {
            let labels = [("metric", *name), ("quantile", &quantile.to_string())];
            let value = seconds(histogram.quantile(quantile) as f64);
            text.sample("gake_latency_quantile_seconds", &labels, value);
        }
    }
}

fn labels(text: &mut Exposition, run: &Run) {
    let mut labels: Vec<(String, _)> = Vec::new();
    for (name, label) in run.plan.labels.iter().zip(run.tally.labels()) {
        // Labels identify a sample, and two of ours may have the same name.
        let twin = labels.iter().any(|(other, _)| other == name);
        let name = if twin { format!("{name}#{}", labels.len()) } else { name.clone() };
        labels.push((name, label));
    }
    if labels.len() < 2 {
        return;
    }
    text.family("gake_label_requests", "counter", "Arrivals by label and outcome.");
    for (name, label) in &labels {
        text.outcomes("gake_label_requests_total", &[("label", name)], &label.counts);
    }
    text.family("gake_label_response_seconds", "summary", "Response time by label.");
    for (name, label) in &labels {
        for quantile in QUANTILES {
            let value = seconds(label.response.quantile(quantile) as f64);
            let labels = [("label", name.as_str()), ("quantile", &quantile.to_string())];
            text.sample("gake_label_response_seconds", &labels, value);
        }
        let (of, response) = ([("label", name.as_str())], &label.response);
        text.sample("gake_label_response_seconds_count", &of, response.count());
        text.sample("gake_label_response_seconds_sum", &of, seconds(response.sum() as f64));
    }
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
#[path = "openmetrics_tests.rs"]
mod tests;
