//! Rows against answers: was every write that was acknowledged kept, and none made twice?

use gake_core::record::Run;

use crate::objective::{Evaluation, Unit};
use crate::units;

/// Judges the rows that a run added. An answer that was ok wrote one; a request that failed or did
/// not finish may have written one, or not.
#[must_use]
pub fn reconcile(run: &Run, before: u64, after: Result<u64, String>) -> Evaluation {
    let both = [&run.tally.counts, &run.warmup];
    let ok: u64 = both.iter().map(|counts| counts.ok).sum();
    let unsure: u64 = both.iter().map(|counts| counts.failed + counts.unfinished).sum();
    let text = match unsure {
        0 => format!("rows added = {}, the answers that were ok", units::count(ok)),
        _ => format!(
            "rows added = {} ok, and up to {} more that failed or did not finish",
            units::count(ok),
            units::count(unsure)
        ),
    };
    let (value, met, problem) = match after {
        Err(why) => (None, false, Some(format!("the rows cannot be counted: {why}"))),
        Ok(after) if after < before => {
            let problem = format!("fewer rows than before: {before}, then {after}");
            (None, false, Some(problem))
        }
        Ok(after) => {
            let added = after - before;
            (Some(added as f64), (ok..=ok + unsure).contains(&added), None)
        }
    };
    Evaluation { text, value, unit: Unit::Count, met, problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, RunSample};

    #[test]
    fn lost_and_doubled_writes_are_told_from_those_that_may_have_been_made() {
        let run = RunSample::of(100, MS).status(500, 5).run();
        let met = |added: u64| reconcile(&run, 7, Ok(7 + added)).met;
        assert!(met(100) && met(105));
        assert!(!met(99), "one that was acknowledged is lost");
        assert!(!met(106), "one was made twice");
        assert!(!reconcile(&run, 7, Ok(6)).met);
        let unknown = reconcile(&run, 7, Err("it is gone".to_owned()));
        assert!(!unknown.met && unknown.shown().contains("it is gone"));
    }
}
