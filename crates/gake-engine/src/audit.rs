//! Checks that the counts of a run agree with each other and with its schedules.

use gake_core::clock::Nanos;
use gake_core::record::{Counts, Run, RunEvent};

/// Two counts that must agree and do not.
#[derive(Debug, PartialEq, Eq)]
struct CountMismatch {
    size: u64,
    text: String,
}

/// Checks the counts of `run`. `due` is the number of arrivals of each scenario's schedule, warm-up
/// included, if known. Mismatches become events and make the run invalid.
pub(crate) fn check(run: &mut Run, due: &[Option<u64>]) {
    let differences = differences(run, due);
    debug_assert!(differences.is_empty(), "{differences:?}");
    let at: Nanos = run.elapsed;
    for CountMismatch { size, text } in differences {
        run.generator.miscounted += size;
        run.events.push(RunEvent::new(at, &text));
    }
}

fn differences(run: &Run, due: &[Option<u64>]) -> Vec<CountMismatch> {
    let whole = ("the run", &run.tally.counts, &run.warmup);
    let each = run.scenarios.iter();
    let each = each.map(|one| (one.plan.name.as_str(), &one.tally.counts, &one.warmup));
    let mut scenarios: Vec<_> = each.collect();
    let mut found = Vec::new();
    for (name, counts, warmup) in std::iter::once(&whole).chain(&scenarios) {
        found.extend([*counts, *warmup].into_iter().filter_map(|counts| sent(name, counts)));
    }
    if scenarios.is_empty() {
        scenarios.push(whole);
    }
    let mut sums = (Counts::default(), Counts::default());
    for (_, counts, warmup) in &scenarios {
        sums.0.merge(counts);
        sums.1.merge(warmup);
    }
    found.extend(compared("the scenarios", &sums.0, &run.tally.counts));
    found.extend(compared("the scenarios' warm-ups", &sums.1, &run.warmup));
    for ((name, counts, warmup), due) in scenarios.iter().zip(due) {
        let counted = counts.arrivals() + warmup.arrivals();
        let text = |due| format!("{name} counted {counted} arrivals, but its schedule has {due}");
        found.extend(due.and_then(|due| difference(counted, due, || text(due))));
    }
    found
}

/// Sent = ok + failed + unfinished.
fn sent(name: &str, counts: &Counts) -> Option<CountMismatch> {
    let ends = counts.ok + counts.failed + counts.unfinished;
    let text = || format!("{name} sent {} requests, but counted {ends} ends", counts.sent);
    difference(counts.sent, ends, text)
}

/// Compares the sum over scenarios with the run.
fn compared(name: &str, sum: &Counts, whole: &Counts) -> Option<CountMismatch> {
    type CountField = (&'static str, fn(&Counts) -> u64);
    const COMPARED: [CountField; 6] = [
        ("started", |counts| counts.started),
        ("dropped", |counts| counts.dropped),
        ("sent", |counts| counts.sent),
        ("ok", |counts| counts.ok),
        ("failed", |counts| counts.failed),
        ("unfinished", |counts| counts.unfinished),
    ];
    COMPARED.iter().find_map(|(what, of)| {
        let (sum, whole) = (of(sum), of(whole));
        difference(sum, whole, || format!("{name} add up to {sum} {what}, but the run has {whole}"))
    })
}

fn difference(a: u64, b: u64, text: impl Fn() -> String) -> Option<CountMismatch> {
    (a != b).then(|| CountMismatch { size: a.abs_diff(b), text: text() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use expect_test::expect;
    use gake_core::Load;
    use gake_core::plan::{Plan, Stage};
    use gake_core::record::RunEnd;
    use gake_core::schedule::Process;

    use super::*;
    use crate::Collector;

    fn run() -> Run {
        let stages = vec![Stage::step(10.0, Duration::from_secs(1))];
        let plan = Arc::new(Plan::new("", Load::Open { stages, process: Process::Uniform }));
        // Interrupted: not all arrivals of its schedule were due.
        Collector::new(&plan, 1, 1).finish(0, RunEnd::Interrupted, 1)
    }

    #[test]
    fn mismatches_are_reported_with_their_sizes() {
        let mut run = run();
        run.tally.counts = Counts { started: 10, sent: 10, ok: 9, ..Counts::default() };
        let found = differences(&run, &[Some(12)]);
        let texts: Vec<_> = found.iter().map(|found| found.text.as_str()).collect();
        expect![[r#"
            the run sent 10 requests, but counted 9 ends
            the run counted 10 arrivals, but its schedule has 12"#]]
        .assert_eq(&texts.join("\n"));
        assert_eq!(found.iter().map(|found| found.size).sum::<u64>(), 3);
    }

    #[test]
    fn counts_that_agree_are_not_reported() {
        let mut run = run();
        let counts = Counts { started: 9, sent: 9, ok: 8, failed: 1, ..Counts::default() };
        run.tally.counts = Counts { dropped: 1, ..counts };
        run.warmup = Counts { started: 2, sent: 2, ok: 2, ..Counts::default() };
        assert_eq!(differences(&run, &[Some(12)]), []);
        assert_eq!(differences(&run, &[None]), []);
    }
}
