//! A search on a target that is a formula: it misses its objective like load^30, from 100/s on.

use std::time::Duration;

use gake_core::schedule::Process;
use gake_judge::overload::{self, Leg, Stair};
use gake_judge::search::{Ask, Dimension, Load, Observation, Options, Search, Second, Seen, Trial};
use gake_judge::{Bad, Cause, Finding, Objective};
use gake_report::find::FindReport;

use super::hour::HOSTILE;

fn seen(trial: &Trial) -> Observation {
    let measured = trial.duration.as_secs_f64();
    let rate = match trial.load {
        Load::Rate(rate) => rate,
        load => 120.0 * load.level() / (load.level() + 2.0),
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
        clauses: vec![Seen { total: Bad { bad, of: due }, ..Seen::default() }],
        ..Observation::default()
    }
}

/// The report of the search, with what comes after the capacity.
pub fn report() -> FindReport {
    let objective: Objective = "p99<50ms".parse().unwrap();
    let mut search = Search::new(vec![objective.clause().unwrap()], Options::default());
    loop {
        match search.next() {
            Ask::Done => break,
            Ask::Rest(_) => {}
            Ask::Trial(trial) => search.tell(seen(&trial)),
        }
    }
    let stairs = overload::stairs(100.0, None);
    let map = overload::judge(&stairs, &stairs.iter().flat_map(climbed).collect::<Vec<_>>());
    FindReport {
        target: format!("http://localhost:8080/{HOSTILE}"),
        started_unix_ns: 1_760_000_000_000_000_000,
        dimension: Dimension::Rate,
        arrivals: Process::Poisson,
        budget: Duration::from_secs(120),
        precision: 0.05,
        objectives: vec!["p99<50ms".to_owned()],
        answer: search.answer(),
        steps: search.steps().to_vec(),
        map: Some(map),
        causes: vec![Cause {
            finding: Finding {
                id: "saturated_pool",
                evidence: format!("all of the pool is busy: {HOSTILE}"),
                advice: "make the pool larger".to_owned(),
            },
            runs: 2,
        }],
        overloaded: 3,
    }
}

/// What the seconds of a stair saw: a target that serves less on its way back.
fn climbed(stair: &Stair) -> Vec<Second> {
    let best = if stair.leg == Leg::Up { 110.0 } else { 60.0 };
    let ok = stair.level.min(best);
    let second = Second {
        due: stair.level,
        ok,
        failed: stair.level - ok,
        good: ok * 0.9,
        response: 0.001 * stair.level,
        in_flight: 0.001 * stair.level * ok,
        failure: 0.002,
    };
    vec![second; usize::try_from(stair.seconds).unwrap()]
}
