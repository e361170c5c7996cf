//! `cargo xtask pictures`: the pictures of docs/cliffs.md, drawn from its tables.
//!
//! A picture has a row for each step: how many requests were ok and how many were not, and how long
//! responses took, from the median to the longest, on a logarithmic scale.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use xtask::workspace;

use crate::screenshots;

/// Where the tables are.
const PAGE: &str = "docs/cliffs.md";
/// What a section's table begins with.
const HEAD: &str = "    step ";
/// Pixels: the height of a row, where rows begin, and where labels end.
const ROW: f64 = 22.0;
const TOP: f64 = 30.0;
const LABELS: f64 = 330.0;
/// Where the bars of the counts and the lines of the times begin and end.
const COUNTS: (f64, f64) = (340.0, 560.0);
const TIMES: (f64, f64) = (600.0, 880.0);
const WIDTH: f64 = 900.0;
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#59636e}.name{text-anchor:end}\
.ok{fill:#2a8a3e}.not{fill:#d1242f}.span{stroke:#3b7dd8;stroke-width:3}.p99{fill:#3b7dd8}\
.grid{stroke:#8886;stroke-width:1}.tick{text-anchor:middle}@media(prefers-color-scheme:dark)\
{text{fill:#9198a1}}";

/// A step, as the table has it.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    ok: f64,
    not_ok: f64,
    /// The median, the 99th percentile and the longest, in seconds.
    times: [f64; 3],
}

/// The task.
pub fn main(args: &[String]) -> Result<()> {
    match args {
        [] => {}
        [flag] if flag == "--pages" => screenshots::take()?,
        _ => bail!("usage: cargo xtask pictures [--pages]"),
    }
    for (path, picture) in pictures()? {
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(&path, picture).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Every picture, and where it is kept.
fn pictures() -> Result<Vec<(PathBuf, String)>> {
    let page = fs::read_to_string(workspace::root().join(PAGE)).context(PAGE)?;
    let mut pictures = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let name = section.lines().next().unwrap_or_default().trim();
        let rows = rows(section).with_context(|| format!("{PAGE}, {name}"))?;
        let path = workspace::root().join(format!("docs/cliffs/{name}.svg"));
        pictures.push((path, draw(&rows)));
    }
    Ok(pictures)
}

/// The rows of the first table of a section.
fn rows(section: &str) -> Result<Vec<Row>> {
    let table = section.lines().skip_while(|line| !line.starts_with(HEAD)).skip(1);
    let rows = table.take_while(|line| line.starts_with("    "));
    let rows =
        rows.map(|line| row(line).with_context(|| line.to_owned())).collect::<Result<Vec<_>>>()?;
    if rows.is_empty() { bail!("it has no table") } else { Ok(rows) }
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<_> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let [name, ok, not_ok, _, p50, p99, max, _] = cells[..] else {
        bail!("it has not the eight columns of an experiment");
    };
    let count = |text: &str| text.replace(',', "").parse::<f64>().context(text.to_owned());
    Ok(Row {
        name: name.to_owned(),
        ok: count(ok)?,
        not_ok: count(not_ok)?,
        times: [seconds(p50)?, seconds(p99)?, seconds(max)?],
    })
}

/// `12.5 µs` in seconds.
fn seconds(text: &str) -> Result<f64> {
    let (number, unit) = text.split_once(' ').with_context(|| format!("{text}: no time"))?;
    let unit = match unit {
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        other => bail!("{other}: no unit of time"),
    };
    Ok(number.parse::<f64>()? * unit)
}

fn draw(rows: &[Row]) -> String {
    let most = rows.iter().map(|row| row.ok + row.not_ok).fold(1.0, f64::max);
    let times = || rows.iter().flat_map(|row| row.times);
    let low = times().fold(f64::INFINITY, f64::min).log10().floor();
    let high = times().fold(0.0, f64::max).log10().ceil().max(low + 1.0);
    let height = TOP + ROW * rows.len() as f64 + 8.0;
    let x = |seconds: f64| {
        let part = (seconds.log10() - low) / (high - low);
        TIMES.0 + part * (TIMES.1 - TIMES.0)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\"><style>{STYLE}</style>\n\
         <text x=\"{}\" y=\"14\">ok, and not ok</text>\n",
        COUNTS.0
    );
    for power in low as i32..=high as i32 {
        let at = x(10_f64.powi(power));
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{height}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"14\">{}</text>",
            TOP - 10.0,
            power_of_ten(power)
        );
    }
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, row, TOP + ROW * index as f64, (COUNTS.1 - COUNTS.0) / most, &x);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_row(svg: &mut String, row: &Row, y: f64, scale: f64, x: &impl Fn(f64) -> f64) {
    let (middle, bar) = (y + ROW / 2.0, ROW - 8.0);
    let _ = writeln!(
        svg,
        "<text class=\"name\" x=\"{LABELS}\" y=\"{}\">{}</text>",
        middle + 4.0,
        row.name.replace('&', "&amp;").replace('<', "&lt;")
    );
    let (ok, not_ok) = (row.ok * scale, row.not_ok * scale);
    for (class, from, width) in [("ok", COUNTS.0, ok), ("not", COUNTS.0 + ok, not_ok)] {
        if width > 0.0 {
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{bar}\"/>",
                y + 4.0
            );
        }
    }
    let [p50, p99, max] = row.times.map(x);
    let _ = writeln!(
        svg,
        "<line class=\"span\" x1=\"{p50:.1}\" x2=\"{max:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>\
         <circle class=\"p99\" cx=\"{p99:.1}\" cy=\"{middle}\" r=\"5\"><title>p99</title></circle>"
    );
}

/// `10 ms` for −2.
fn power_of_ten(power: i32) -> String {
    let (unit, base) = match power {
        ..-6 => ("ns", -9),
        -6..-3 => ("µs", -6),
        -3..0 => ("ms", -3),
        _ => ("s", 0),
    };
    format!("{} {unit}", 10_i64.pow((power - base).unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_shows_the_picture_of_its_table() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap();
        let pictures = pictures().unwrap();
        assert!(pictures.len() > 10, "{}", pictures.len());
        for (path, picture) in pictures {
            let kept = fs::read_to_string(&path).unwrap_or_default();
            assert!(kept == picture, "{}: run `cargo xtask pictures`", path.display());
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(page.contains(&format!("](cliffs/{name})")), "{name} is not shown");
        }
    }

    #[test]
    fn a_row_has_counts_and_times() {
        let line = "    1,000/s, idle 2, bound 151    2,808    1,120     605/s  50.2 ms   654 ms   1.00 s  -";
        let row = row(line).unwrap();
        assert_eq!((row.ok, row.not_ok), (2_808.0, 1_120.0));
        assert_eq!(row.name, "1,000/s, idle 2, bound 151");
        for (seen, expected) in row.times.into_iter().zip([0.0502, 0.654, 1.0]) {
            assert!((seen - expected).abs() < 1e-9, "{seen} {expected}");
        }
        assert!(super::row("    one two").is_err());
    }

    #[test]
    fn times_are_marked_by_powers_of_ten() {
        let marks = [(-9, "1 ns"), (-5, "10 µs"), (-3, "1 ms"), (-1, "100 ms"), (1, "10 s")];
        for (power, text) in marks {
            assert_eq!(power_of_ten(power), text);
        }
    }
}
