//! Compares rows with responses: no acknowledged write may be lost or made twice.

use gake_core::record::{Counts, Run};
use gake_text::units;

use crate::objective::{Evaluation, ValueUnit};

/// The requests of a run, each of which may have written a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteCounts {
    /// Ok responses.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that did not finish.
    pub unfinished: u64,
}

impl WriteCounts {
    /// The requests of a run, including its warm-up.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let both = [&run.tally.counts, &run.warmup];
        let sum = |of: fn(&Counts) -> u64| both.into_iter().map(of).sum();
        Self {
            ok: sum(|counts| counts.ok),
            failed: sum(|counts| counts.failed),
            unfinished: sum(|counts| counts.unfinished),
        }
    }
}

/// Judges the rows that a run added: each ok response wrote one, other requests may have.
#[must_use]
pub fn reconcile(writes: WriteCounts, before: u64, after: Result<u64, String>) -> Evaluation {
    let WriteCounts { ok, failed, unfinished } = writes;
    let most = ok + failed + unfinished;
    let expected = match most - ok {
        0 => format!("rows added = {}, the ok responses", units::count(ok)),
        _ => format!(
            "rows added = {} ok, and up to {} more ({} failed, {} did not finish)",
            units::count(ok),
            units::count(most - ok),
            units::count(failed),
            units::count(unfinished)
        ),
    };
    let (value, met, found, problem) = match after {
        Err(why) => {
            let found = format!("{} before", units::count(before));
            (None, false, found, Some(format!("the rows cannot be counted: {why}")))
        }
        Ok(after) => {
            let found = format!("{} before, {} after", units::count(before), units::count(after));
            match after.checked_sub(before) {
                None => (None, false, found, Some("fewer rows than before".to_owned())),
                Some(added) => {
                    let met = (ok..=most).contains(&added);
                    let found = format!("{found}: {}", verdict(added, ok, most));
                    (Some(added as f64), met, found, None)
                }
            }
        }
    };
    Evaluation { text: format!("{expected}; {found}"), value, unit: ValueUnit::Count, met, problem }
}

fn verdict(added: u64, ok: u64, most: u64) -> String {
    match added {
        _ if added < ok => format!("{} acknowledged and lost", units::plural(ok - added, "write")),
        _ if added > most => {
            format!("{} too many, made twice", units::plural(added - most, "write"))
        }
        _ if added == ok => "equal".to_owned(),
        _ => "explained".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunBuilder};

    #[test]
    fn lost_and_duplicate_writes_are_distinguished_from_possible_ones() {
        let run = RunBuilder::of(100, MS).status(500, 5).run();
        let writes = WriteCounts::of(&run);
        let met = |added: u64| reconcile(writes, 7, Ok(7 + added)).met;
        assert!(met(100) && met(105));
        assert!(!met(99), "an acknowledged one is lost");
        assert!(!met(106), "one was made twice");
        assert!(!reconcile(writes, 7, Ok(6)).met);
        let text = |added: u64| reconcile(writes, 7, Ok(7 + added)).text;
        assert!(
            text(98).ends_with("7 before, 105 after: 2 writes acknowledged and lost"),
            "{}",
            text(98)
        );
        assert!(text(102).contains("up to 5 more (5 failed, 0 did not finish)"), "{}", text(102));
        assert!(text(102).ends_with("explained"), "{}", text(102));
        assert!(text(100).ends_with("equal"), "{}: those that failed wrote none", text(100));
        assert!(text(106).ends_with("1 write too many, made twice"), "{}", text(106));
        let all_ok = reconcile(WriteCounts::of(&RunBuilder::of(100, MS).run()), 0, Ok(100));
        assert!(all_ok.met && all_ok.text.ends_with("equal"), "{}", all_ok.text);
        let unknown = reconcile(writes, 7, Err("it is gone".to_owned()));
        assert!(!unknown.met && unknown.shown().contains("it is gone"));
    }
}
