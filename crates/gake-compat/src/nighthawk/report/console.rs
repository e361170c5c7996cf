//! The formats for people and for spreadsheets.

use std::fmt::Write;

use super::{Output, STATISTICS, Unit, main_levels, shown_time};
use gake_core::record::Histogram;

const TITLE: &str = "Nighthawk - A layer 7 protocol benchmarking tool.\n";

/// `--output-format human`.
pub fn human(output: &Output) -> String {
    let mut text = format!("{TITLE}\n");
    // Writing to a string cannot fail.
    let _ = write_human(output, &mut text);
    text
}

fn write_human(output: &Output, out: &mut String) -> std::fmt::Result {
    let global = output.global();
    for ((_, name, unit), values) in STATISTICS.into_iter().zip(&global.statistics) {
        if values.is_empty() {
            continue;
        }
        let [min, mean, max, pstdev] = figures(values, unit);
        writeln!(out, "{name} ({} samples)", values.count())?;
        writeln!(out, "  min: {min} | mean: {mean} | max: {max} | pstdev: {pstdev}")?;
        let levels = main_levels(values);
        if !levels.is_empty() {
            writeln!(out, "\n  {:<12}{:<12}{:<15}", "Percentile", "Count", "Value")?;
        }
        for level in levels {
            let value = value(level.value as f64, unit);
            writeln!(out, "  {:<12}{:<12}{value:<15}", quantile(level.quantile), level.count)?;
        }
        out.push('\n');
    }
    writeln!(out, "{:<40}{:<12}Per second", "Counter", "Value")?;
    for (name, value) in global.shown_counters() {
        writeln!(out, "{name:<40}{value:<12}{:.2}", output.a_second(value))?;
    }
    out.push('\n');
    Ok(())
}

/// `--output-format csv`.
pub fn csv(output: &Output) -> String {
    let mut text = format!("{TITLE}\n");
    // Writing to a string cannot fail.
    let _ = write_csv(output, &mut text);
    text
}

fn write_csv(output: &Output, out: &mut String) -> std::fmt::Result {
    let global = output.global();
    for ((_, name, unit), values) in STATISTICS.into_iter().zip(&global.statistics) {
        if values.is_empty() {
            continue;
        }
        writeln!(out, "{name} ({} samples)", values.count())?;
        writeln!(out, "Min,Mean,Max,Pstdev\n{}", figures(values, unit).join(","))?;
        let levels = main_levels(values);
        if !levels.is_empty() {
            writeln!(out, "Percentile,Count,Value(microseconds),Value")?;
        }
        for level in levels {
            let micros = if unit == Unit::Time { level.value / 1_000 } else { 0 };
            let (quantile, value) = (quantile(level.quantile), value(level.value as f64, unit));
            writeln!(out, "{quantile},{},{micros},{value}", level.count)?;
        }
        out.push('\n');
    }
    writeln!(out, "Counter,Value,Per second")?;
    for (name, value) in global.shown_counters() {
        writeln!(out, "{name},{value},{:.2}", output.a_second(value))?;
    }
    out.push('\n');
    Ok(())
}

/// Minimum, mean, maximum and standard deviation.
fn figures(values: &Histogram, unit: Unit) -> [String; 4] {
    [values.min() as f64, values.mean(), values.max() as f64, values.stddev()]
        .map(|figure| value(figure, unit))
}

fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Time => shown_time(value),
        Unit::Bytes => value.to_string(),
    }
}

/// At most eight significant digits: further ones are artefacts of binary fractions.
fn quantile(quantile: f64) -> String {
    let text = format!("{quantile:.8}");
    text.trim_end_matches('0').to_owned()
}
