//! The metrics of a script for InfluxDB, one point per series and second: the volume does not grow
//! with the rate.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::metric::{
    Definition, MAX_SERIES, MetricUnit, SeriesKey, SeriesTable, SeriesValue, Tags,
};

use crate::address::SinkAddress;
use crate::carrier::{Carrier, FigureBatch, Push, RETRY};
use crate::format::{self, escape, write_tags};
use crate::spill::Spill;

/// Tags with too many values for an index.
const UNINDEXED: [&str; 3] = ["url", "vu", "iter"];
/// Seconds kept open for late samples.
const OPEN: u64 = 2;
const SECOND: i128 = 1_000_000_000;
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

/// Sends the series of a script's metrics to a database during a run, second by second.
pub struct ScriptSeconds {
    name: String,
    tags: Vec<(String, String)>,
    push: Push,
    /// By Unix second; each table is bounded in the number of series.
    seconds: BTreeMap<u64, SeriesTable>,
    /// The newest second sent. A later point of the same second would replace the first.
    sent: u64,
    /// Samples above the limit of series, which are in the series `other` of their metric.
    over: u64,
    /// Samples left out because they are not finite.
    not_numbers: u64,
}

impl ScriptSeconds {
    /// Prepares to write to an `influxdb` database.
    #[must_use]
    pub fn new(address: &SinkAddress, spill: &Spill) -> Self {
        Self {
            name: address.to_string(),
            tags: address.tags(),
            push: Push::new(&format::post(address), RETRY, spill),
            seconds: BTreeMap::new(),
            sent: 0,
            over: 0,
            not_numbers: 0,
        }
    }

    /// Checks that the database responds; creates it if necessary.
    ///
    /// # Errors
    /// One sentence on what is wrong.
    pub fn check(&mut self) -> Result<(), String> {
        self.push.check()
    }

    /// Adds a sample; times in nanoseconds. A late one counts in the oldest second not yet sent.
    pub fn write(&mut self, metric: &Arc<Definition>, tags: &Tags, value: f64, unix_ns: i128) {
        let second = u64::try_from(unix_ns / SECOND).unwrap_or(0).max(self.sent + 1);
        let table = self.seconds.entry(second).or_default();
        let tags = tags.without_any(|name| UNINDEXED.contains(&name));
        let series = table.intern(metric, &tags);
        table.add(series, value, Nanos::try_from(unix_ns).unwrap_or(0));
    }

    /// Sends seconds that are over; call it about once a second.
    pub fn tick(&mut self) {
        let newest = self.seconds.last_key_value().map_or(0, |(second, _)| *second);
        self.flush(newest.saturating_sub(OPEN));
    }

    /// Ends the writing. Blocks until everything is delivered or given up; returns one sentence on
    /// samples that are lost or altered.
    pub fn finish(&mut self) -> Option<String> {
        self.flush(u64::MAX);
        self.push.finish();
        let limits = self.limits();
        match self.push.lost().sentence(&self.name) {
            Some(lost) => Some([vec![lost], limits].concat().join("; ")),
            None if limits.is_empty() => None,
            None => Some(format!("{}: {}", self.name, limits.join("; "))),
        }
    }

    /// Samples that were altered, even if everything was delivered.
    fn limits(&self) -> Vec<String> {
        let causes = [
            (self.over, format!("in series=other, as a second has more than {MAX_SERIES} series")),
            (self.not_numbers, "left out, as they are not finite numbers".to_owned()),
        ];
        let causes = causes.into_iter().filter(|(samples, _)| *samples > 0);
        causes.map(|(samples, what)| format!("{samples} samples are {what}")).collect()
    }

    fn flush(&mut self, up_to: u64) {
        while let Some(entry) = self.seconds.first_entry().filter(|entry| *entry.key() <= up_to) {
            let (second, table) = entry.remove_entry();
            self.sent = second;
            self.over += table.over();
            self.not_numbers += table.not_numbers();
            self.push.carry(points(&table, &self.tags, second));
        }
    }
}

/// A point for each series of a second.
fn points(table: &SeriesTable, tags: &[(String, String)], second: u64) -> FigureBatch {
    let (mut lines, mut rows) = (String::new(), 0);
    for (SeriesKey { metric, tags: own }, value) in table.series() {
        escape(&metric.name, &mut lines);
        let pairs = tags.iter().chain(own.pairs());
        write_tags(pairs.map(|(name, value)| (name.as_str(), value.as_str())), &mut lines);
        for (at, (name, number)) in fields(value, metric.unit).into_iter().enumerate() {
            let separator = if at == 0 { ' ' } else { ',' };
            let _ = write!(lines, "{separator}{name}={number}");
        }
        let _ = writeln!(lines, " {second}000000000");
        rows += 1;
    }
    FigureBatch { bytes: lines.into_bytes(), rows }
}

/// The fields of a point. `value` is what k6's field of that name would add up to, or average.
fn fields(value: &SeriesValue, unit: MetricUnit) -> Vec<(&'static str, f64)> {
    // Times are in milliseconds.
    let scale = if unit == MetricUnit::Time { 1e-6 } else { 1.0 };
    match value {
        SeriesValue::Counter { sum, samples } => {
            vec![("value", sum.value() * scale), ("count", *samples as f64)]
        }
        SeriesValue::Gauge { last, min, max, samples, .. } => vec![
            ("value", last * scale),
            ("min", min * scale),
            ("max", max * scale),
            ("count", *samples as f64),
        ],
        SeriesValue::Rate { passed, samples } => vec![
            ("value", *passed as f64 / (*samples).max(1) as f64),
            ("sum", *passed as f64),
            ("count", *samples as f64),
        ],
        SeriesValue::Trend(trend) => {
            let mut fields = vec![
                ("value", trend.mean() * scale),
                ("count", trend.count() as f64),
                ("sum", trend.sum_number() * scale),
                ("min", trend.min_number() * scale),
                ("max", trend.max_number() * scale),
            ];
            let percentile = |(name, q): (&'static str, f64)| (name, trend.interpolated(q) * scale);
            fields.extend(PERCENTILES.map(percentile));
            fields
        }
    }
}

#[cfg(test)]
mod tests {
    use gake_core::metric::MetricKind;

    use super::*;

    fn metric(name: &str, kind: MetricKind, unit: MetricUnit) -> Arc<Definition> {
        Arc::new(Definition { name: name.to_owned(), kind, unit })
    }

    fn seconds() -> ScriptSeconds {
        let address = "influxdb=http://127.0.0.1:1/k6?tags=env:t".parse().unwrap();
        ScriptSeconds::new(&address, &Spill::default())
    }

    fn lines(seconds: &ScriptSeconds, second: u64) -> Vec<String> {
        let batch = points(&seconds.seconds[&second], &seconds.tags, second);
        let text = String::from_utf8(batch.bytes).unwrap();
        assert_eq!(text.lines().count() as u64, batch.rows);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_series_is_one_point_per_second() {
        let mut seconds = seconds();
        let requests = metric("http_reqs", MetricKind::Counter, MetricUnit::Number);
        let duration = metric("http_req_duration", MetricKind::Trend, MetricUnit::Time);
        let checks = metric("checks", MetricKind::Rate, MetricUnit::Number);
        for number in 0..1_000_u32 {
            let (vu, url) = (number.to_string(), format!("http://h/{number}"));
            let tags = Tags::new([("name", "a b"), ("vu", &vu), ("url", &url)]);
            let at = 5 * SECOND + i128::from(number);
            seconds.write(&requests, &tags, 1.0, at);
            seconds.write(&duration, &tags, 2e6 + f64::from(number % 2) * 2e6, at);
            seconds.write(&checks, &tags, f64::from(u8::from(number % 4 != 0)), at);
        }
        let lines = lines(&seconds, 5);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], "http_reqs,env=t,name=a\\ b value=1000,count=1000 5000000000");
        let trend =
            "http_req_duration,env=t,name=a\\ b value=3,count=1000,sum=3000,min=2,max=4,p50=";
        assert!(lines[1].starts_with(trend), "{}", lines[1]);
        assert_eq!(lines[2], "checks,env=t,name=a\\ b value=0.75,sum=750,count=1000 5000000000");
    }

    #[test]
    fn altered_samples_are_reported() {
        let mut seconds = seconds();
        let vus = metric("vus", MetricKind::Gauge, MetricUnit::Number);
        seconds.write(&vus, &Tags::default(), 1.0, SECOND);
        seconds.flush(1);
        assert_eq!(seconds.limits(), [""; 0]);
        seconds.write(&vus, &Tags::default(), f64::NAN, 2 * SECOND);
        for number in 0..MAX_SERIES + 4 {
            let tags = Tags::new([("name", number.to_string())]);
            seconds.write(&vus, &tags, 1.0, 2 * SECOND);
        }
        seconds.flush(2);
        // The one without tags is a series, too.
        let over = "5 samples are in series=other, as a second has more than 10000 series";
        let not_numbers = "1 samples are left out, as they are not finite numbers";
        assert_eq!(seconds.limits(), [over, not_numbers]);
    }

    #[test]
    fn late_samples_replace_no_sent_point() {
        let mut seconds = seconds();
        let vus = metric("vus", MetricKind::Gauge, MetricUnit::Number);
        let write = |seconds: &mut ScriptSeconds, second: i128, value| {
            seconds.write(&vus, &Tags::default(), value, second * SECOND);
        };
        write(&mut seconds, 5, 3.0);
        write(&mut seconds, 8, 4.0);
        seconds.tick();
        assert_eq!(seconds.sent, 5);
        write(&mut seconds, 4, 9.0);
        assert_eq!(lines(&seconds, 6), ["vus,env=t value=9,min=9,max=9,count=1 6000000000"]);
        seconds.flush(u64::MAX);
        assert!(seconds.seconds.is_empty() && seconds.sent == 8);
    }
}
