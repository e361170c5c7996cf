//! h2load's output after a run.

use std::fmt::Write;
use std::time::Duration;

use gake_core::record::Histogram;

/// Rates are kept in a histogram of whole numbers: millionths of a request a second.
pub const RATE_SCALE: f64 = 1e6;

const COLUMNS: &str =
    "                     min         max         mean         sd        +/- sd\n";

/// The counts of requests, as h2load names them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct H2loadRequests {
    /// Requests to make.
    pub total: u64,
    /// Requests sent.
    pub started: u64,
    /// Streams that ended with a response or a reset.
    pub done: u64,
    /// Responses with a status below 400.
    pub succeeded: u64,
    /// Other responses, and `errored`.
    pub failed: u64,
    /// Requests without a response, including requests that were never sent.
    pub errored: u64,
    /// The timed-out part of `errored`.
    pub timed_out: u64,
}

/// Bytes received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct H2loadTraffic {
    /// All.
    pub total: u64,
    /// Headers as transferred.
    pub headers: u64,
    /// The names and values in them.
    pub header_text: u64,
    /// Bodies.
    pub data: u64,
}

/// The figures of a run.
#[derive(Debug, Clone, Copy)]
pub struct H2load<'a> {
    pub took: Duration,
    /// The time that rates refer to.
    pub base: Duration,
    /// The counts of requests.
    pub requests: H2loadRequests,
    /// Responses of the classes 2xx to 5xx.
    pub classes: [u64; 4],
    /// Bytes received.
    pub traffic: H2loadTraffic,
    /// Time for a request, in nanoseconds, one sample each.
    pub request: &'a Histogram,
    /// Time to connect, in nanoseconds, one sample for each connection.
    pub connect: &'a Histogram,
    /// The time from the start of a connection to the first byte, in nanoseconds.
    pub first_byte: &'a Histogram,
    /// Requests a second of each connection, recorded by [`record_rate`].
    pub rates: &'a Histogram,
    /// Whether each row has a histogram.
    pub histogram: bool,
}

/// Adds a rate, in requests a second.
pub fn record_rate(rates: &mut Histogram, rate: f64) {
    rates.record((rate * RATE_SCALE).round() as u64);
}

/// The whole output after the run.
pub fn report(figures: &H2load<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(figures, &mut text);
    text
}

fn write(figures: &H2load<'_>, out: &mut String) -> std::fmt::Result {
    let H2load { requests, classes, traffic, .. } = figures;
    let seconds = figures.base.as_secs_f64();
    let answered = classes.iter().sum::<u64>() as f64;
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    writeln!(
        out,
        "\nfinished in {}, {:.2} req/s, {}B/s",
        whole_time(figures.took),
        per_second(answered),
        binary(per_second(traffic.total as f64) as u64),
    )?;
    let H2loadRequests { total, started, done, succeeded, failed, errored, timed_out } = requests;
    writeln!(
        out,
        "requests: {total} total, {started} started, {done} done, {succeeded} succeeded, {failed} \
         failed, {errored} errored, {timed_out} timeout"
    )?;
    let [second, third, fourth, fifth] = classes;
    writeln!(out, "status codes: {second} 2xx, {third} 3xx, {fourth} 4xx, {fifth} 5xx")?;
    let H2loadTraffic { total, headers, header_text, data } = *traffic;
    let savings =
        if header_text > 0 { (1.0 - headers as f64 / header_text as f64) * 100.0 } else { 0.0 };
    writeln!(
        out,
        "traffic: {}B ({total}) total, {}B ({headers}) headers (space savings {savings:.2}%), {}B \
         ({data}) data",
        binary(total),
        binary(headers),
        binary(data),
    )?;
    out.push_str(COLUMNS);
    let rate = |rate: f64| format!("{:.2}", rate / RATE_SCALE);
    for (name, samples, unit) in [
        ("time for request: ", figures.request, &time as &dyn Fn(f64) -> String),
        ("time for connect: ", figures.connect, &time),
        ("time to 1st byte: ", figures.first_byte, &time),
        ("req/s           : ", figures.rates, &rate),
    ] {
        row(out, name, samples, unit)?;
        if figures.histogram {
            plot(out, samples, unit)?;
        }
    }
    Ok(())
}

/// Ten bars of the same width from the smallest to the largest value, with the shares of the values
/// in them and up to their ends.
fn plot(out: &mut String, samples: &Histogram, unit: &dyn Fn(f64) -> String) -> std::fmt::Result {
    const BARS: u64 = 10;
    const LONGEST: u64 = 40;
    let (min, max) = (samples.min() as f64, samples.max() as f64);
    if samples.min() == samples.max() {
        return Ok(());
    }
    let end = |bar: u64| min + (max - min) / BARS as f64 * bar as f64;
    let below: Vec<u64> = (0..=BARS)
        .map(|bar| match bar {
            0 => 0,
            BARS => samples.count(),
            _ => samples.count_up_to((end(bar).ceil() as u64).saturating_sub(1)),
        })
        .collect();
    let counts: Vec<u64> = below.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let largest = counts.iter().copied().max().unwrap_or(1).max(1);
    let share = |count: u64| count as f64 * 100.0 / samples.count() as f64;
    for (bar, &count) in (0..).zip(&counts) {
        let length = if count == 0 { 0 } else { (count * LONGEST / largest).max(1) };
        let line = "/".repeat(length as usize);
        writeln!(
            out,
            "{:>10}-{:>10} [{line:<40}]({:6.2}/{:6.2}%)",
            unit(end(bar)),
            unit(end(bar + 1)),
            share(count),
            share(below[bar as usize + 1]),
        )?;
    }
    Ok(())
}

/// A row: minimum, maximum, mean, standard deviation, and the share within one deviation of the
/// mean.
fn row(
    out: &mut String,
    name: &str,
    samples: &Histogram,
    unit: &dyn Fn(f64) -> String,
) -> std::fmt::Result {
    let (mean, deviation, within) = (samples.mean(), deviation(samples), within(samples));
    let [min, max, mean, deviation] =
        [samples.min() as f64, samples.max() as f64, mean, deviation].map(unit);
    writeln!(
        out,
        "{name}{min:>10}  {max:>10}  {mean:>10}  {deviation:>10}{:>9}%",
        hundredths(within)
    )
}

/// The share of samples within one deviation of the mean, in percent.
pub fn within(samples: &Histogram) -> f64 {
    let (mean, deviation) = (samples.mean(), deviation(samples));
    match samples.count() {
        0 => 0.0,
        count => {
            // A sample that equals the mean counts as within, despite rounding.
            let low = (mean - deviation).max(0.0).floor() as u64;
            let high = (mean + deviation).ceil() as u64;
            samples.count_between(low, high) as f64 / count as f64 * 100.0
        }
    }
}

/// The standard deviation of a sample whose mean was estimated.
pub fn deviation(samples: &Histogram) -> f64 {
    let count = samples.count() as f64;
    if count < 2.0 { 0.0 } else { samples.stddev() * (count / (count - 1.0)).sqrt() }
}

/// A time measured in microseconds.
fn whole_time(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..1_000 => format!("{micros}us"),
        micros @ 1_000..1_000_000 => format!("{}ms", hundredths(micros as f64 / 1e3)),
        micros => format!("{}s", hundredths(micros as f64 / 1e6)),
    }
}

/// A time in nanoseconds, in the largest unit in which it is at least 1.
fn time(nanos: f64) -> String {
    if nanos >= 1e9 {
        format!("{}s", hundredths(nanos / 1e9))
    } else if nanos >= 1e6 {
        format!("{}ms", hundredths(nanos / 1e6))
    } else {
        format!("{}us", (nanos / 1e3) as u64)
    }
}

/// Bytes in the largest unit in which they are at least 1.
fn binary(bytes: u64) -> String {
    for (shift, unit) in [(30, 'G'), (20, 'M'), (10, 'K')] {
        if bytes >= 1 << shift {
            return format!("{}{unit}", hundredths(bytes as f64 / f64::from(1u32 << shift)));
        }
    }
    bytes.to_string()
}

/// Two decimals; halves are rounded away from zero.
fn hundredths(value: f64) -> String {
    let hundredths = (value * 100.0).round() as u64;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    /// The lines of h2load 1.52 with these figures.
    const EXPECTED: &str = "
finished in 29.02ms, 34458.99 req/s, 2.70MB/s
requests: 3000 total, 1009 started, 1000 done, 1000 succeeded, 2000 failed, 2000 errored, 0 timeout
status codes: 1000 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 80.14KB (82066) total, 47.85KB (49000) headers (space savings 50.51%), 14.65KB (15000) data
                     min         max         mean         sd        +/- sd
time for request:       46us      1.00ms       523us       675us   100.00%
time for connect:      100us       100us       100us         0us   100.00%
time to 1st byte:        0us         0us         0us         0us     0.00%
req/s           :    1000.50     1000.50     1000.50        0.00   100.00%
";

    #[test]
    fn the_text_is_h2loads() {
        let (request, connect) = (histogram(&[46_000, 1_001_000]), histogram(&[100_000]));
        let (first_byte, mut rates) = (Histogram::new(), Histogram::new());
        record_rate(&mut rates, 1_000.5);
        let figures = H2load {
            took: Duration::from_micros(29_020),
            base: Duration::from_micros(29_020),
            requests: H2loadRequests {
                total: 3_000,
                started: 1_009,
                done: 1_000,
                succeeded: 1_000,
                failed: 2_000,
                errored: 2_000,
                timed_out: 0,
            },
            classes: [1_000, 0, 0, 0],
            traffic: H2loadTraffic {
                total: 82_066,
                headers: 49_000,
                header_text: 99_000,
                data: 15_000,
            },
            request: &request,
            connect: &connect,
            first_byte: &first_byte,
            rates: &rates,
            histogram: false,
        };
        assert_eq!(report(&figures), EXPECTED);
        let text = report(&H2load { histogram: true, ..figures });
        let rows: Vec<_> = text.lines().filter(|line| line.contains('[')).collect();
        assert_eq!(rows.len(), 10, "rows of one value have no bars: {text}");
        let bar = format!("      46us-     141us [{}]( 50.00/ 50.00%)", "/".repeat(40));
        assert_eq!(rows[0], bar);
        assert!(rows[5].ends_with(&format!("[{}](  0.00/ 50.00%)", " ".repeat(40))), "{text}");
        assert!(rows[9].ends_with("( 50.00/100.00%)"), "{text}");
        let mut json = Vec::new();
        super::super::output::write(&mut json, &figures, 1).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let measured = &json["measurements"];
        assert_eq!(
            (&json["version"], &measured["requests"]["errored"]),
            (&"v1".into(), &2_000.into())
        );
        let request = &measured["performance"]["request"];
        let samples: Vec<f64> = serde_json::from_value(request["samples"].clone()).unwrap();
        for (sample, expected) in samples.iter().zip([46e-6, 1001e-6]) {
            assert!((sample / expected - 1.0).abs() < 0.001, "{samples:?}");
        }
        assert_eq!((samples.len(), &request["min"]), (2, &46e-6.into()));
        assert_eq!(
            measured["performance"]["request_per_second"]["samples"],
            serde_json::json!([1_000.5])
        );
    }

    #[test]
    fn units_change_at_one() {
        for (nanos, shown) in
            [(0.0, "0us"), (999_999.0, "999us"), (1e6, "1.00ms"), (1.5e9, "1.50s")]
        {
            assert_eq!(time(nanos), shown);
        }
        for (bytes, shown) in
            [(0, "0"), (1_023, "1023"), (1_024, "1.00K"), (3 << 20, "3.00M"), (5 << 30, "5.00G")]
        {
            assert_eq!(binary(bytes), shown);
        }
    }
}
