//! `leak`: a pool that loses a thread with every n-th request.

use std::time::Duration;

use gake_run::spec::Load;

use super::bench::{Bench, Stopped, limited, load_on};
use super::theory;

/// Threads of the pool.
const THREADS: u64 = 16;
/// Requests a second, which need one thread: 200/s × 5 ms.
const RATE: f64 = 200.0;
/// How long a request may take: what finds no thread never ends.
const LIMIT: Duration = Duration::from_secs(2);

/// Runs the steps: T threads that lose one with every n-th request serve T × n requests.
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    let every: u64 = if bench.quick() { 80 } else { 400 };
    // Longer than the larger pool lasts.
    let duration = Duration::from_secs_f64(1.4 * (THREADS * every) as f64 / RATE);
    step(bench, THREADS, None, duration)?;
    step(bench, THREADS, Some(every), duration)?;
    // A larger pool lasts longer, and that is all.
    step(bench, THREADS * 5 / 4, Some(every), duration)
}

fn step(
    bench: &mut Bench<'_>,
    threads: u64,
    every: Option<u64>,
    duration: Duration,
) -> Result<(), Stopped> {
    let lost = every.map_or("no leak".to_owned(), |every| format!("one lost every {every}"));
    let name = format!("{threads} threads, {lost}");
    if !bench.wants(&name) {
        return Ok(());
    }
    let leak = every.map_or(String::new(), |every| format!(" --leak-every {every}"));
    let server = bench.server(&format!("--threads {threads} --service const:5ms{leak}"))?;
    let load = load_on(&server, "/fast", Load::rate(RATE, duration));
    let summary = bench.fire(&limited(load, LIMIT))?;
    let counts = summary.run.tally.counts;
    let sent = RATE * duration.as_secs_f64();
    let expectations = match every {
        None => {
            let all = sent as u64;
            let theory = format!("all {all}: they need {RATE}/s × 5 ms = 1 thread");
            let met = theory::number("ok", counts.ok, all - 1..=all + 1, theory);
            vec![met, theory::no_cause(&summary)]
        }
        Some(every) => {
            let ok = threads * every;
            let theory = format!("{threads} × {every} = {ok}, and not one more");
            // Those in the queue of a dying pool may time out before their turn.
            let met = theory::number("ok", counts.ok, ok - threads..=ok, theory);
            let cause = theory::cause(&summary, "target_leak", &[]);
            vec![met, cause]
        }
    };
    bench.step(name, &server, summary, expectations);
    Ok(())
}
