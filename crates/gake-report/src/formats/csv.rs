//! The series over the run's seconds as CSV, with a header line. Seconds that the warm-up took
//! whole have no figures and no row.

use std::io;

use gake_core::record::{Run, SeriesPoint};

/// The columns.
const HEADER: [&str; 20] = [
    "second",
    "seconds",
    "asked",
    "sent",
    "ok",
    "failed",
    "unfinished",
    "dropped",
    "unsent",
    "bytes_in",
    "bytes_out",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
    "service_p99_ns",
    "lateness_p99_ns",
    "in_flight",
    "open_connections",
    "cpu_ns",
];

/// Writes the series of `run`.
///
/// # Errors
/// What the writer returns.
pub fn write(run: &Run, out: &mut impl io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(HEADER)?;
    let warmup = run.plan.warmup.as_secs();
    let figures = |point: &&SeriesPoint| point.second.saturating_add(point.seconds) > warmup;
    for point in run.series.points().iter().filter(figures) {
        csv.write_record(row(point))?;
    }
    csv.flush()
}

fn row(point: &SeriesPoint) -> [String; HEADER.len()] {
    let counts = &point.counts;
    [
        point.second.to_string(),
        point.seconds.to_string(),
        point.asked.map_or_else(String::new, |asked| asked.to_string()),
        counts.sent.to_string(),
        counts.ok.to_string(),
        counts.failed.to_string(),
        counts.unfinished.to_string(),
        counts.dropped.to_string(),
        counts.unsent.to_string(),
        counts.bytes_in.to_string(),
        counts.bytes_out.to_string(),
        point.p50.to_string(),
        point.p90.to_string(),
        point.p99.to_string(),
        point.max.to_string(),
        point.service_p99.to_string(),
        point.lateness_p99.to_string(),
        format!("{:.3}", point.in_flight),
        point.open.to_string(),
        point.cpu.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_second() {
        let mut out = Vec::new();
        write(&crate::testing::healthy(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.lines();
        assert!(lines.next().unwrap().starts_with("second,seconds,asked,sent,ok,"));
        assert!(lines.next().unwrap().starts_with("0,1,1000,1000,1000,0,0,0,0,212000,74000,"));
        assert_eq!(lines.count(), 9);
    }

    #[test]
    fn the_warm_up_has_no_row() {
        let mut run = crate::testing::healthy();
        run.plan.warmup = std::time::Duration::from_millis(2_500);
        let mut out = Vec::new();
        write(&run, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        // The third second is half of it.
        assert!(text.lines().nth(1).unwrap().starts_with("2,1,"), "{text}");
        assert_eq!(text.lines().count(), 1 + 8);
    }
}
