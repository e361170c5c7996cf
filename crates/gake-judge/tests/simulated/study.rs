//! The study behind docs/capacity.md: many searches of each virtual server, compared with doubling
//! and bisecting. `cargo xtask sim` builds it optimized and runs it.
//!
//! Arguments: the number of searches (200), and names of servers (all).

#![allow(clippy::unwrap_used, clippy::print_stdout)] // its output is its purpose

mod baseline;
mod server;
mod servers;
mod trial;

use gake_judge::search::{CapacityResult, Search, SearchOptions};
use server::Server;
use servers::Case;

struct SearchOutcome {
    capacity: f64,
    low: f64,
    high: f64,
    safe: f64,
    spent: f64,
    flat: bool,
    hysteresis: bool,
    found: bool,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments.next().and_then(|runs| runs.parse().ok()).unwrap_or(200);
    let only: Vec<String> = arguments.collect();
    println!(
        "| server, objective | truth | method | bias | sd | within 5 % | interval covers | \
         half-width | safe ≤ truth | spent | notes |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for case in servers::cases() {
        if !only.is_empty() && !only.iter().any(|name| name == case.name) {
            continue;
        }
        let searched: Vec<SearchOutcome> = (0..runs).map(|seed| search(&case, seed)).collect();
        show(&case, "gake", &searched);
        let bisected: Vec<SearchOutcome> = (0..runs).map(|seed| bisect(&case, seed)).collect();
        show(&case, "double + bisect", &bisected);
    }
}

fn search(case: &Case, seed: u64) -> SearchOutcome {
    let mut server = Server::new(case.model.clone(), seed * 7 + 11);
    let mut search = Search::new(case.clauses(), SearchOptions::default());
    trial::run(&mut search, &mut server);
    let result = search.result();
    let nothing = f64::NAN;
    let (capacity, low, high, safe) = match result.found {
        CapacityResult::Capacity(e) => (e.capacity, e.low, e.high, e.safe),
        _ => (nothing, nothing, nothing, nothing),
    };
    SearchOutcome {
        capacity,
        low,
        high,
        safe,
        spent: result.spent,
        flat: result.flat,
        hysteresis: result.hysteresis.is_some(),
        found: capacity.is_finite(),
    }
}

fn bisect(case: &Case, seed: u64) -> SearchOutcome {
    let mut server = Server::new(case.model.clone(), seed * 7 + 11);
    let part = (seed as f64 * 0.618).fract();
    let done = baseline::bisect(case, &mut server, case.truth / 20.0 * part.exp2());
    SearchOutcome {
        capacity: done.capacity,
        low: done.low,
        high: done.high,
        safe: done.low,
        spent: done.spent,
        flat: false,
        hysteresis: false,
        found: true,
    }
}

fn show(case: &Case, method: &str, all: &[SearchOutcome]) {
    let found: Vec<&SearchOutcome> = all.iter().filter(|one| one.found).collect();
    let count = found.len() as f64;
    let ratio = |one: &&SearchOutcome| one.capacity / case.truth;
    let share = |which: &dyn Fn(&&SearchOutcome) -> bool| {
        100.0 * found.iter().filter(|one| which(one)).count() as f64 / all.len() as f64
    };
    let mean = found.iter().map(ratio).sum::<f64>() / count;
    let sd = (found.iter().map(|one| (ratio(one) - mean).powi(2)).sum::<f64>() / count).sqrt();
    let bias = median(found.iter().map(ratio).collect());
    let width = median(found.iter().map(|one| (one.high / one.low).sqrt() - 1.0).collect());
    let spent = all.iter().map(|one| one.spent).sum::<f64>() / all.len() as f64;
    println!(
        "| {}, {} | {:.1} | {method} | {:+.1} % | {:.1} % | {:.0} % | {:.0} % | {:.1} % | {:.0} % | \
         {spent:.0} s | {} |",
        case.what,
        case.objectives.join(", "),
        case.truth,
        100.0 * (bias - 1.0),
        100.0 * sd,
        share(&|one| (ratio(one) - 1.0).abs() < 0.05),
        share(&|one| one.low <= case.truth && case.truth <= one.high),
        100.0 * width,
        share(&|one| one.safe <= case.truth),
        notes(all),
    );
}

fn notes(all: &[SearchOutcome]) -> String {
    let percent = |which: fn(&SearchOutcome) -> bool| {
        100.0 * all.iter().filter(|one| which(one)).count() as f64 / all.len() as f64
    };
    let parts = [
        ("flat", percent(|one| one.flat)),
        ("hysteresis", percent(|one| one.hysteresis)),
        ("nothing", percent(|one| !one.found)),
    ];
    let present = parts.iter().filter(|part| part.1 > 0.0);
    present.map(|(name, share)| format!("{name} {share:.0} %")).collect::<Vec<_>>().join(", ")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
