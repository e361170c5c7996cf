//! `pool`: users against a pool of threads.

use gake_judge::queueing::closed_fixed;
use gake_text::units::plural;

use super::bench::{Bench, Stopped, closed};
use super::theory;

/// Threads of the pool, and of the larger one.
const THREADS: u32 = 10;
const MORE_THREADS: u32 = 50;
/// Users, as multiples of a tenth of the threads.
const USERS: [u32; 5] = [1, 5, 8, 20, 40];
/// A request holds its thread for this long, in seconds.
const SERVICE: f64 = 0.05;
/// A busy machine may be this much slower; it cannot be faster.
const SLOWER: f64 = 0.2;
/// What the edges of a run add to a rate.
const EDGES: f64 = 0.05;

/// Runs the steps: X = min(N, T) / S, R = S · max(1, N / T).
pub fn run(bench: &mut Bench<'_>) -> Result<(), Stopped> {
    for users in USERS {
        step(bench, users, THREADS)?;
    }
    // A pool as large as the crowd: the cure, as long as what its threads wait for takes it.
    if bench.is_own() { Ok(()) } else { step(bench, USERS[4], MORE_THREADS) }
}

fn step(bench: &mut Bench<'_>, users: u32, threads: u32) -> Result<(), Stopped> {
    let name = format!("{}, {threads} threads", plural(users.into(), "user"));
    if !bench.wants(&name) {
        return Ok(());
    }
    let server = bench.server(&format!("--threads {threads} --service const:50ms"))?;
    let duration = bench.seconds(8.0, 3.0);
    let summary = bench.fire(&closed(&server, "/fast", users as usize, duration))?;
    let (rate, response) = closed_fixed(threads, SERVICE, users);
    let seen = summary.run.tally.latency.response().mean();
    let ok = summary.run.tally.counts.ok as f64 * 1e9 / summary.run.completing.max(1) as f64;
    let range = rate * (1.0 - SLOWER)..=rate * (1.0 + EDGES);
    let text = format!("min({users}, {threads}) / 50 ms = {rate:.0}/s");
    let mut expectations = vec![theory::rate("rate", ok, range, text)];
    let of = |factor: f64| std::time::Duration::from_secs_f64(response * factor);
    let text = format!("50 ms × max(1, {users}/{threads}) = {:.0} ms", response * 1e3);
    // The first round of a closed loop finds an empty queue.
    expectations.push(theory::time("mean", seen, of(0.85)..=of(1.0 + 1.5 * SLOWER), text));
    expectations.push(if users > threads {
        theory::cause(&summary, "target_pool", &[])
    } else {
        theory::no_cause(&summary)
    });
    bench.step(name, &server, summary, expectations);
    Ok(())
}
