//! Single samples for InfluxDB in k6's form, for dashboards made for k6.

use std::time::{Duration, Instant};

use crate::address::SinkAddress;
use crate::carrier::{Carrier, FigureBatch, Push, RETRY};
use crate::format::{self, escape, write_tags};
use crate::spill::Spill;

/// A batch is sent when it has this many bytes ...
const BATCH_BYTES: usize = 256 << 10;
/// ... or is this old.
const BATCH_AGE: Duration = Duration::from_secs(1);
/// Tags with too many values for an index, written as fields.
const FIELDS: [&str; 3] = ["url", "vu", "iter"];

/// A sample.
#[derive(Debug, Clone, Copy)]
pub struct InfluxPoint<'a> {
    /// The metric's name.
    pub metric: &'a str,
    /// Its tags.
    pub tags: &'a [(String, String)],
    /// The value; times in milliseconds.
    pub value: f64,
    /// The instant in Unix nanoseconds.
    pub unix_ns: i128,
    /// Whether it is a count, gauge or check, which is kept longer than a single time.
    pub is_figure: bool,
}

/// Sends samples to a database during a run.
pub struct InfluxPoints {
    name: String,
    tags: Vec<(String, String)>,
    push: Push,
    /// Counts, gauges and checks, then single times.
    batches: [FigureBatch; 2],
    begun: Instant,
    line: String,
}

impl InfluxPoints {
    /// Prepares to write to a database.
    #[must_use]
    pub fn new(address: &SinkAddress, spill: &Spill) -> Self {
        Self {
            name: address.to_string(),
            tags: address.tags(),
            push: Push::new(&format::post(address), RETRY, spill),
            batches: Default::default(),
            begun: Instant::now(),
            line: String::new(),
        }
    }

    /// Checks that the database responds; creates it if necessary.
    ///
    /// # Errors
    /// One sentence on what is wrong.
    pub fn check(&mut self) -> Result<(), String> {
        self.push.check()
    }

    /// Adds a sample.
    pub fn write(&mut self, point: &InfluxPoint<'_>) {
        if !point.value.is_finite() {
            return;
        }
        let line = &mut self.line;
        line.clear();
        escape(point.metric, line);
        let is_field = |name: &str| FIELDS.contains(&name);
        let pairs = self.tags.iter().chain(point.tags).filter(|(name, _)| !is_field(name));
        write_tags(pairs.map(|(name, value)| (name.as_str(), value.as_str())), line);
        line.push_str(&format!(" value={}", point.value));
        for (name, value) in point.tags.iter().filter(|(name, _)| is_field(name)) {
            match value.parse::<u64>() {
                Ok(number) if name != "url" => line.push_str(&format!(",{name}={number}i")),
                _ => {
                    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                    // Some databases and proxies take a raw line feed for the end of the point.
                    let value = value.replace('\n', "\\n").replace('\r', "\\r");
                    line.push_str(&format!(",{name}=\"{value}\""));
                }
            }
        }
        line.push_str(&format!(" {}\n", point.unix_ns));
        if self.batches.iter().all(FigureBatch::is_empty) {
            self.begun = Instant::now();
        }
        let batch = &mut self.batches[usize::from(!point.is_figure)];
        batch.bytes.extend_from_slice(line.as_bytes());
        batch.rows += 1;
        if batch.bytes.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Sends samples older than a second; call it about once a second.
    pub fn tick(&mut self) {
        if self.begun.elapsed() >= BATCH_AGE {
            self.flush();
        }
    }

    /// Ends the writing. Blocks until all samples are delivered or given up; returns one sentence
    /// on losses.
    pub fn finish(&mut self) -> Option<String> {
        self.flush();
        self.push.finish();
        self.push.lost().sentence(&self.name)
    }

    fn flush(&mut self) {
        let [figures, samples] = std::mem::take(&mut self.batches);
        if !figures.is_empty() {
            self.push.carry(figures);
        }
        if !samples.is_empty() {
            self.push.carry_samples(samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_line_with_its_url_as_a_field() {
        let address = "influxdb=http://127.0.0.1:1/k6?tags=env:t".parse().unwrap();
        let mut points = InfluxPoints::new(&address, &Spill::default());
        let tags = [("method", "GET"), ("url", "http://h/\"a\""), ("vu", "3"), ("group", "")];
        let tags: Vec<_> = tags.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec();
        let point = InfluxPoint {
            metric: "http_reqs",
            tags: &tags,
            value: 1.0,
            unix_ns: 5,
            is_figure: true,
        };
        points.write(&point);
        points.write(&InfluxPoint { value: f64::NAN, ..point });
        assert_eq!(
            String::from_utf8(points.batches[0].bytes.clone()).unwrap(),
            "http_reqs,env=t,method=GET value=1,url=\"http://h/\\\"a\\\"\",vu=3i 5\n"
        );
    }
}
