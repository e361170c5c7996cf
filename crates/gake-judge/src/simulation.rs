//! Simulated stations, the truth in tests of inferences.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gake_core::clock::Nanos;
use gake_core::random::SplitMix64;

/// Which waiting request is served next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    First,
    Random,
    Last,
    /// The user of the last response again, nine times of ten; then the first who waits.
    Again,
}

/// The completions of `users` without think time at `servers` places, as (done, response time).
pub(crate) fn closed_loop(
    seed: u64,
    users: usize,
    servers: usize,
    order: Order,
    time: Nanos,
    mut service: impl FnMut(&mut SplitMix64) -> Nanos,
) -> Vec<(Nanos, Nanos)> {
    let mut random = SplitMix64::new(seed);
    let mut waiting: Vec<Nanos> = vec![0; users];
    // (done, sent)
    let mut busy = BinaryHeap::new();
    let mut completions = Vec::new();
    let mut now = 0;
    loop {
        while busy.len() < servers && !waiting.is_empty() {
            let at = match order {
                Order::First => 0,
                Order::Last => waiting.len() - 1,
                Order::Again if random.unit() < 0.9 => waiting.len() - 1,
                Order::Again => 0,
                Order::Random => random.below(waiting.len()),
            };
            busy.push(Reverse((now + service(&mut random), waiting.remove(at))));
        }
        let Some(Reverse((done, sent))) = busy.pop() else { return completions };
        if done >= time {
            return completions;
        }
        completions.push((done, done - sent));
        waiting.push(done);
        now = done;
    }
}

/// The requests of arrivals at `rate`/s for `time`, even or as a Poisson process, at `servers`
/// places, first come, first served, as (arrived, done).
pub(crate) fn open_loop(
    seed: u64,
    (rate, is_even): (f64, bool),
    servers: usize,
    time: Nanos,
    mut service: impl FnMut(&mut SplitMix64) -> Nanos,
) -> Vec<(Nanos, Nanos)> {
    let mut random = SplitMix64::new(seed);
    let mut free: BinaryHeap<Reverse<Nanos>> = (0..servers).map(|_| Reverse(0)).collect();
    let (mut requests, mut now) = (Vec::new(), 0.0);
    loop {
        let between = if is_even { 1.0 } else { -(1.0 - random.unit()).ln() };
        now += between * 1e9 / rate;
        let arrived = now as Nanos;
        if arrived >= time {
            return requests;
        }
        let begun = free.pop().map_or(arrived, |Reverse(free)| free.max(arrived));
        let done = begun + service(&mut random);
        free.push(Reverse(done));
        requests.push((arrived, done));
    }
}
