//! The table of connection times, with a warning if it is not reliable.

use std::fmt::{self, Write as _};

use gake_core::record::Histogram;

use super::{AbTimes, ms};

/// Writes the table; if `plain`, without median, deviation and warnings.
pub(super) fn times(out: &mut String, times: &AbTimes, plain: bool) -> fmt::Result {
    let rows = [
        ("Connect:", "the initial connection time", &times.connect),
        ("Processing:", "the processing time", &times.processing),
        ("Waiting:", "the waiting time", &times.waiting),
        ("Total:", "the total time", &times.total),
    ];
    writeln!(out, "\nConnection Times (ms)")?;
    if plain {
        writeln!(out, "              min   avg   max")?;
        for (name, _, times) in rows {
            let (min, mean, max) = (ms(times.min()), ms(times.mean() as u64), ms(times.max()));
            writeln!(out, "{name:11} {min:5} {mean:5}{max:5}")?;
        }
        return Ok(());
    }
    writeln!(out, "              min  mean[+/-sd] median   max")?;
    for (name, _, times) in rows {
        let (min, mean, max) = (ms(times.min()), ms(times.mean() as u64), ms(times.max()));
        let (deviation, median) = (deviation(times) / 1e6, ms(times.quantile(0.5)));
        writeln!(out, "{name:11} {min:5} {mean:4} {deviation:5.1} {median:6} {max:7}")?;
    }
    for (_, what, times) in rows {
        doubt(out, what, times)?;
    }
    Ok(())
}

/// The deviation of a sample, in nanoseconds.
fn deviation(times: &Histogram) -> f64 {
    let count = times.count() as f64;
    if count < 2.0 { 0.0 } else { times.stddev() * (count / (count - 1.0)).sqrt() }
}

/// Warns when mean and median differ. As in ab they are whole milliseconds here; only this rounding
/// lets them differ by more than one deviation.
fn doubt(out: &mut String, what: &str, times: &Histogram) -> fmt::Result {
    let apart = ms(times.mean() as u64).abs_diff(ms(times.quantile(0.5))) as f64;
    let deviation = deviation(times) / 1e6;
    if apart > 2.0 * deviation {
        writeln!(
            out,
            "ERROR: The median and mean for {what} are more than twice the standard\n       \
             deviation apart. These results are NOT reliable."
        )
    } else if apart > deviation {
        writeln!(
            out,
            "WARNING: The median and mean for {what} are not within a normal deviation\n        \
             These results are probably not that reliable."
        )
    } else {
        Ok(())
    }
}
