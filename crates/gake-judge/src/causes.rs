//! The limits of several runs: the findings of all, each listed once.

use gake_core::record::Run;

use crate::finding::{self, Finding};
use crate::usl::PoolFit;

/// A finding that at least one of several runs has.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// The finding, with the evidence of the run under the highest load.
    pub finding: Finding,
    /// The number of runs that have it.
    pub runs: u64,
}

/// Collects the findings of runs in which a target was at its limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Causes {
    causes: Vec<(Cause, f64)>,
    /// The number of runs examined.
    pub runs: u64,
}

impl Causes {
    /// Adds the findings of a run under `load`, except `unexplained`, which is not a cause.
    pub fn add(&mut self, run: &Run, load: f64) {
        self.runs += 1;
        let found = finding::find(run, &[]);
        for finding in found.into_iter().filter(|finding| finding.id != finding::UNEXPLAINED) {
            let known = self.causes.iter_mut().find(|(known, _)| known.finding.id == finding.id);
            match known {
                None => self.causes.push((Cause { finding, runs: 1 }, load)),
                Some((cause, highest)) => {
                    cause.runs += 1;
                    if load >= *highest {
                        (cause.finding, *highest) = (finding, load);
                    }
                }
            }
        }
    }

    /// The causes, the most frequent first; then the symptoms. `pool` is the number served at once
    /// that all steps together show: what one step alone says to the contrary is left out.
    #[must_use]
    pub fn sorted(mut self, pool: Option<PoolFit>) -> Vec<Cause> {
        if let Some(PoolFit { slots, .. }) = pool {
            let agrees = |served: f64| (slots.low..=slots.high).contains(&served);
            self.causes.retain(|(Cause { finding, .. }, _)| {
                !finding.is_number_served() || finding.served.is_some_and(agrees)
            });
        }
        self.causes.sort_by_key(|(cause, _)| (cause.finding.rank, std::cmp::Reverse(cause.runs)));
        self.causes.into_iter().map(|(cause, _)| cause).collect()
    }
}

#[cfg(test)]
mod tests {
    use gake_core::record::Fault;

    use super::*;
    use crate::finding::served_at_once;
    use crate::testing::{MS, RunBuilder};
    use crate::usl::IntervalEstimate;

    #[test]
    fn the_most_frequent_comes_first_with_the_evidence_of_the_highest_load() {
        let closes = |n| RunBuilder::of(1_000, 5 * MS).fault(Fault::Reset, n).run();
        let errors = RunBuilder::of(1_000, 5 * MS).status(503, 100).run();
        let healthy = RunBuilder::of(1_000, 5 * MS).run();
        let mut causes = Causes::default();
        for (run, load) in [(&errors, 1.0), (&closes(50), 9.0), (&closes(20), 5.0), (&healthy, 2.0)]
        {
            causes.add(run, load);
        }
        assert_eq!(causes.runs, 4);
        let sorted = causes.sorted(None);
        let ids: Vec<_> = sorted.iter().map(|cause| (cause.finding.id, cause.runs)).collect();
        assert_eq!(ids, [("server_closes", 2), ("server_errors", 1)]);
        assert!(sorted[0].finding.evidence.contains("50"), "{}", sorted[0].finding.evidence);
    }

    #[test]
    fn what_all_steps_show_outweighs_one() {
        let pool = |low, high| {
            let slots = IntervalEstimate { value: (low + high) / 2.0, low, high };
            PoolFit { throughput: 400.0, service: 0.01, slots }
        };
        let step = |served| Cause { finding: served_at_once("so".to_owned(), served), runs: 1 };
        for (served, pool, is_left) in [
            (Some(1.28), Some(pool(3.2, 5.2)), false),
            (Some(4.0), Some(pool(3.2, 5.2)), true),
            (None, Some(pool(3.2, 5.2)), false),
            (Some(1.28), None, true),
        ] {
            let causes = Causes { causes: vec![(step(served), 1.0)], runs: 1 };
            assert_eq!(causes.sorted(pool).len(), usize::from(is_left), "{served:?} {pool:?}");
        }
    }
}
