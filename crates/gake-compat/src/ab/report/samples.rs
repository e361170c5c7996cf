//! The files of `-e` (percentages) and `-g` (every request, for gnuplot).

use std::fmt::Write as _;
use std::io;

use gake_core::clock::Nanos;
use gake_core::record::Histogram;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::ms;

/// The header line of `-e`.
pub const CSV_HEADER: &str = "Percentage served,Time in ms";

/// One response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbSample {
    /// Its start, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// The time to open the connection.
    pub connect: Nanos,
    /// The time from start to end.
    pub total: Nanos,
    /// The time from the request to the first byte of the response.
    pub waiting: Nanos,
}

/// The file of `-e`: the longest times of the fastest 0 to 100 percent.
pub fn csv(total: &Histogram) -> String {
    let mut out = format!("{CSV_HEADER}\n");
    for percent in 0..=100_u32 {
        let time = total.quantile(f64::from(percent) / 100.0);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{percent},{:.3}", time as f64 / 1e6);
    }
    out
}

/// Writes the file of `-g`: every sample, sorted by duration, with local times.
pub fn gnuplot(samples: &mut [AbSample], out: &mut impl io::Write) -> io::Result<()> {
    samples.sort_unstable_by_key(|sample| (sample.total, sample.started_unix_ns));
    let zone = TimeZone::system();
    writeln!(out, "starttime\tseconds\tctime\tdtime\tttime\twait")?;
    for sample in samples {
        let seconds = (sample.started_unix_ns / 1_000_000_000) as i64;
        let start = Timestamp::from_second(seconds).unwrap_or_default().to_zoned(zone.clone());
        let connect = ms(sample.connect);
        writeln!(
            out,
            "{}\t{seconds}\t{connect}\t{}\t{}\t{}",
            start.strftime("%a %b %d %H:%M:%S %Y"),
            ms(sample.total.saturating_sub(sample.connect)),
            ms(sample.total),
            ms(sample.waiting)
        )?;
    }
    Ok(())
}
