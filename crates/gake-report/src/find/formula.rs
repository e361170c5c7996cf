//! A search on a modelled target that misses its objective like load^30, from 100/s on. Tests of
//! other crates include this file.

use gake_judge::search::{
    ClauseCounts, Observation, Search, SearchAction, SearchOptions, Trial, TrialLoad,
};
use gake_judge::{BadCount, Objective};

/// A finished search for p99<50ms. `users` is the throughput of a closed loop.
pub fn searched(users: fn(f64) -> f64) -> Search {
    let objective: Objective = "p99<50ms".parse().unwrap();
    let mut search = Search::new(vec![objective.clause().unwrap()], SearchOptions::default());
    loop {
        match search.next() {
            SearchAction::Done => return search,
            SearchAction::Rest(_) => {}
            SearchAction::Trial(trial) => search.tell(seen(&trial, users)),
        }
    }
}

fn seen(trial: &Trial, users: fn(f64) -> f64) -> Observation {
    let measured = trial.duration.as_secs_f64();
    let rate = match trial.load {
        TrialLoad::Rate(rate) => rate,
        load => users(load.level()),
    };
    let due = (rate * measured).round();
    let bad = (due * 0.01 * (rate / 100.0).powi(30)).round().min(due);
    Observation {
        measured,
        took: measured + trial.warmup.as_secs_f64(),
        due: due as u64,
        ok: due as u64,
        throughput: rate,
        response: 0.02,
        in_flight: rate * 0.02,
        clauses: vec![ClauseCounts { total: BadCount { bad, of: due }, ..ClauseCounts::default() }],
        ..Observation::default()
    }
}
