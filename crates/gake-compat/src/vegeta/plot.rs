//! `vegeta plot`: latencies over time as an HTML page.

use std::collections::BTreeMap;
use std::io::Write as _;

use gake_report::html::{self, Plot, PlotSeries};

use super::files::{self, ResultFiles};
use crate::flags::{Flag, switch, value};
use gake_session::Console;
use gake_session::{Exit, Failure};

const FLAGS: &[Flag] =
    &[value(&["title"]), value(&["threshold"]), value(&["output"]), switch(&["h", "help"])];

const USAGE: &str = "\
Usage: vegeta plot [options] [<file>...]

Draws the latency of each request over time as an HTML page that needs no network, with one line
for each attack's successes and one for its errors.

  -title       the page's title (default Vegeta Plot)
  -threshold   maximum points per line; longer lines are thinned out (default 4000)
  -output      a file (default stdout)
";

/// The most points over all lines, 16 bytes each. Later ones are left out, with a warning.
const POINTS_MAX: usize = 20_000_000;

/// Runs the command.
pub fn run(args: &[String], console: &Console) -> Result<Exit, Failure> {
    let Some(parsed) = super::command(FLAGS, USAGE, args, console)? else { return Ok(Exit::Done) };
    let threshold = parsed.get("threshold").map_err(Failure::usage)?;
    let title = parsed.last("title").unwrap_or("Vegeta Plot").to_owned();
    let mut results = ResultFiles::open(&parsed.operands)?;
    let plot = Plot {
        title,
        series: series(&mut results, console)?,
        threshold: threshold.unwrap_or(Plot::default().threshold),
    };
    let page = html::plot(&plot);
    let name = parsed.last("output").unwrap_or("stdout");
    let mut out = files::create(name, console)?;
    out.write_all(page.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| files::write_failure(name, &error))?;
    Ok(Exit::Done)
}

/// Time and latency of each request of an attack, successes and errors separately.
#[derive(Default)]
struct Attack {
    /// The start of its first request, in Unix nanoseconds.
    began: i64,
    /// Times are Unix times until every record has been read.
    ok: Vec<(i64, i64)>,
    errors: Vec<(i64, i64)>,
}

fn series(results: &mut ResultFiles, console: &Console) -> Result<Vec<PlotSeries>, Failure> {
    let mut attacks: BTreeMap<String, Attack> = BTreeMap::new();
    let (mut points, mut left_out) = (0, 0_u64);
    while let Some(record) = results.next(console)? {
        if points == POINTS_MAX {
            left_out += 1;
            continue;
        }
        points += 1;
        let at = record.timestamp.unix_ns;
        let attack = attacks
            .entry(record.attack)
            .or_insert_with(|| Attack { began: at, ..Attack::default() });
        attack.began = attack.began.min(at);
        let line = if record.error.is_empty() { &mut attack.ok } else { &mut attack.errors };
        line.push((at, record.latency));
    }
    if left_out > 0 {
        console.warn(&format!("{left_out} results after the first {POINTS_MAX} are not drawn"));
    }
    Ok(attacks.into_iter().flat_map(|(name, attack)| lines(&name, attack)).collect())
}

/// The lines of an attack: errors before successes, as Vegeta sorts them.
fn lines(name: &str, attack: Attack) -> Vec<PlotSeries> {
    let Attack { began, ok, errors } = attack;
    let line = |label: &str, mut points: Vec<(i64, i64)>| {
        points.sort_unstable();
        let points = points
            .into_iter()
            .map(|(at, latency)| (at.saturating_sub(began) as f64 / 1e9, latency as f64 / 1e6))
            .collect();
        PlotSeries { name: format!("{name}: {label}"), points }
    };
    [("ERROR", errors), ("OK", ok)]
        .into_iter()
        .filter(|(_, points)| !points.is_empty())
        .map(|(label, points)| line(label, points))
        .collect()
}
