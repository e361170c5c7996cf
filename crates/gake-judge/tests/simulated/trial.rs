//! Runs a search's trials on a virtual server like on a real one: requests count in the second in
//! which they end, and a drain has a time limit.

use gake_judge::search::{
    ClauseCounts, Observation, Search, SearchAction, Trial, TrialLoad, TrialSecond,
};
use gake_judge::{BadCount, Clause};

use super::server::{Arrivals, Done, Server};

/// Maximum seconds of a drain.
const DRAIN: f64 = 10.0;

/// The latency above which a request is bad, in seconds; refused ones always are.
fn limit(clause: &Clause) -> f64 {
    clause.limit().map_or(f64::INFINITY, |limit| limit as f64 / 1e9)
}

/// Runs the search to its end.
pub fn run(search: &mut Search, server: &mut Server) {
    loop {
        match search.next() {
            SearchAction::Trial(trial) => {
                let seen = observe(server, &trial, search.clauses());
                search.tell(seen);
            }
            SearchAction::Rest(rest) => server.now += rest.as_secs_f64(),
            SearchAction::Done => return,
        }
    }
}

/// Runs one trial.
pub fn observe(server: &mut Server, trial: &Trial, clauses: &[Clause]) -> Observation {
    server.disturb();
    let began = server.now;
    let arrivals = match trial.load {
        TrialLoad::Rate(rate) => Arrivals::Open(rate),
        TrialLoad::Users(users) => Arrivals::Closed(users),
        TrialLoad::Connections(_) => Arrivals::Open(10.0),
    };
    let limits: Vec<f64> = clauses.iter().map(limit).collect();
    let start = began + trial.warmup.as_secs_f64();
    let length = trial.duration.as_secs_f64();
    let mut done = Vec::new();
    let mut stop = start + length;
    if let Arrivals::Closed(_) = arrivals {
        server.load(&arrivals, stop, &mut done);
    } else {
        server.load(&arrivals, start, &mut done);
        done.clear();
        let mut second = 1.0;
        while server.now < stop {
            server.load(&arrivals, (start + second).min(stop), &mut done);
            let now = server.now;
            let bad: Vec<f64> = limits
                .iter()
                .map(|limit| {
                    let bad = |d: &&Done| d.arrival + d.latency <= now && is_bad(d, *limit);
                    done.iter().filter(bad).count() as f64
                })
                .collect();
            if trial.is_settled(&bad) {
                stop = now;
            }
            second += 1.0;
        }
    }
    done.retain(|d| d.arrival >= start);
    server.now = server.drained().min(stop + DRAIN);
    let closed = matches!(arrivals, Arrivals::Closed(_));
    summarize(&done, &limits, (began, start, stop, server.now), closed)
}

fn is_bad(done: &Done, limit: f64) -> bool {
    done.refused || done.latency > limit
}

fn summarize(
    done: &[Done],
    limits: &[f64],
    (began, start, stop, end): (f64, f64, f64, f64),
    closed: bool,
) -> Observation {
    let measured = stop - start;
    let seconds = (measured.ceil() as usize).max(1);
    let finished = |d: &Done| d.arrival + d.latency <= end;
    let at = |d: &Done| ((d.arrival + d.latency - start) as usize).min(seconds - 1);
    let mut seen = Observation {
        measured,
        took: end - began,
        due: done.len() as u64,
        clauses: vec![
            ClauseCounts {
                slices: vec![BadCount::default(); seconds],
                ..ClauseCounts::default()
            };
            limits.len()
        ],
        seconds: vec![TrialSecond::default(); seconds],
        ..Observation::default()
    };
    let mut time = 0.0;
    for d in done {
        let ok = !d.refused && finished(d);
        seen.ok += u64::from(ok);
        seen.errors += u64::from(!ok);
        seen.unfinished += u64::from(!finished(d));
        seen.in_flight += d.latency.min(end - d.arrival) / measured;
        for (clause, limit) in seen.clauses.iter_mut().zip(limits) {
            let bad = f64::from(u8::from(is_bad(d, *limit) || !finished(d)));
            clause.total.bad += bad;
            clause.total.of += 1.0;
            clause.slices[at(d)].bad += bad;
            clause.slices[at(d)].of += 1.0;
        }
        let second = &mut seen.seconds[at(d)];
        second.due += 1.0;
        if ok {
            time += d.latency;
            // Sums, divided below.
            second.response += d.latency;
            second.ok += 1.0;
            second.good += f64::from(u8::from(limits.iter().all(|limit| !is_bad(d, *limit))));
        } else {
            second.failed += 1.0;
            second.failure += d.latency;
        }
    }
    for second in &mut seen.seconds {
        second.response /= second.ok.max(1.0);
        second.failure /= second.failed.max(1.0);
    }
    seen.response = time / (seen.ok as f64).max(1.0);
    // Users stop with the interval; an open loop includes the drain.
    let span = if closed { measured } else { end - start };
    seen.throughput = seen.ok as f64 / span;
    seen
}
