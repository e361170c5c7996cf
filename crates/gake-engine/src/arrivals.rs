//! The arrivals of a worker: its slice of the schedule, and arrivals taken over during the run.

use gake_core::clock::Nanos;
use gake_core::schedule::{Schedule, SliceArrivals};
use gake_core::work::Arrival;

/// The due time of an arrival that a change has removed from the schedule; another change may bring
/// it back.
const NEVER: Nanos = Nanos::MAX;

/// Arrivals in due order, counted from the epoch.
#[derive(Debug)]
pub(crate) struct ArrivalSource {
    /// The next arrival, if known already.
    head: Option<Arrival>,
    /// The arrivals after it.
    share: Option<SliceArrivals<'static>>,
    start: Nanos,
}

impl ArrivalSource {
    /// The arrivals of a schedule that begins at `start`.
    pub(crate) fn new(share: SliceArrivals<'static>, start: Nanos) -> Self {
        Self { head: None, share: Some(share), start }
    }

    /// Skips the arrivals due before `from`.
    pub(crate) fn since(self, from: Nanos) -> Self {
        let mut source = self;
        source.head = source.head.filter(|head| head.due >= from);
        if let (None, Some(share)) = (source.head, &mut source.share) {
            share.skip_before(from.saturating_sub(source.start));
            source.head = source.next();
        }
        source
    }

    /// Switches to a changed schedule.
    fn follow(&mut self, schedule: &Schedule) {
        if let Some(share) = &mut self.share {
            share.follow(schedule.clone());
        }
        let start = self.start;
        if let Some(head) = &mut self.head {
            head.due = schedule.due(head.number).map_or(NEVER, |due| due.saturating_add(start));
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        if let Some(head) = self.head {
            // Later arrivals are not due earlier.
            self.head = self.head.filter(|head| head.due == NEVER);
            return Some(head).filter(|head| head.due < NEVER);
        }
        let Arrival { number, due } = self.share.as_mut()?.next()?;
        Some(Arrival { number, due: due + self.start })
    }
}

/// The arrivals of several sources in due order.
#[derive(Debug)]
pub(crate) struct Arrivals {
    sources: Vec<ArrivalSource>,
}

impl Arrivals {
    pub(crate) fn new(own: ArrivalSource) -> Self {
        Self { sources: vec![own] }
    }

    /// Adds a source, and returns the last arrival taken, if unused.
    pub(crate) fn add(&mut self, source: ArrivalSource, unused: Option<Arrival>) {
        let start = source.start;
        self.sources.push(source);
        self.give_back(unused, start);
    }

    /// Switches to a changed schedule that begins at `start`, and returns the last arrival taken,
    /// if unused.
    pub(crate) fn follow(&mut self, schedule: &Schedule, start: Nanos, unused: Option<Arrival>) {
        self.give_back(unused, start);
        for source in &mut self.sources {
            source.follow(schedule);
        }
    }

    fn give_back(&mut self, unused: Option<Arrival>, start: Nanos) {
        self.sources.extend(unused.map(|head| ArrivalSource {
            head: Some(head),
            share: None,
            start,
        }));
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        if let [only] = self.sources.as_mut_slice() {
            return only.next();
        }
        for source in &mut self.sources {
            source.head = source.head.or_else(|| source.next());
        }
        // A change of the schedule may refill an exhausted source.
        self.sources.retain(|source| source.head.is_some() || source.share.is_some());
        let due = |source: &&mut ArrivalSource| source.head.map_or(NEVER, |head| head.due);
        self.sources.iter_mut().min_by_key(due)?.next()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use gake_core::clock::SECOND;
    use gake_core::schedule::{Process, RateChange, Schedule, Slice, Stage};

    const OF: usize = 4;

    fn source(schedule: &Schedule, index: usize) -> ArrivalSource {
        ArrivalSource::new(schedule.arrivals(Slice::new(index, OF)).into_owned(), SECOND)
    }

    fn all(mut source: ArrivalSource) -> Vec<Arrival> {
        std::iter::from_fn(|| source.next()).collect()
    }

    #[test]
    fn arrivals_taken_over_are_merged_in_order() {
        let jittered = Process::Bursts { size: 3, jitter: 30_000_000 };
        for process in [Process::Uniform, Process::Poisson, jittered] {
            let schedule =
                Schedule::new(process, &[Stage::step(40.0, Duration::from_secs(3))], None, 7);
            let mut arrivals = Arrivals::new(source(&schedule, 0));
            let (mut seen, mut expected) = (Vec::new(), all(source(&schedule, 0)));
            for (index, (used, from)) in [(9, 2 * SECOND), (5, 0), (60, SECOND)].iter().enumerate()
            {
                seen.extend(arrivals.by_ref().take(*used));
                let other = all(source(&schedule, index + 1));
                expected.extend(other.into_iter().filter(|arrival| arrival.due >= *from));
                let unused = arrivals.next();
                arrivals.add(source(&schedule, index + 1).since(*from), unused);
            }
            let rest: Vec<_> = arrivals.collect();
            assert!(rest.is_sorted_by_key(|arrival| arrival.due), "{process:?}");
            seen.extend(rest);
            seen.sort_by_key(|arrival| arrival.number);
            expected.sort_by_key(|arrival| arrival.number);
            assert_eq!(seen, expected, "{process:?}");
        }
    }

    #[test]
    fn changed_rates_neither_lose_nor_repeat_arrivals() {
        let jittered = Process::Bursts { size: 3, jitter: 30_000_000 };
        for process in [Process::Uniform, Process::Poisson, jittered] {
            let stages = [Stage::step(40.0, Duration::from_secs(3))];
            let changes = [(500, 0.01), (700, 4.0), (1_500, 0.5)];
            let changes = changes
                .map(|(at, factor)| RateChange { at: Duration::from_millis(1_000 + at), factor });
            let after = |count: usize| {
                let stages = RateChange::apply(&changes[..count], &stages, Duration::from_secs(1));
                Schedule::new(process, &stages, None, 7)
            };
            let mut arrivals = Arrivals::new(source(&after(0), 1));
            let (mut seen, mut next) = (Vec::new(), arrivals.next());
            for (count, change) in (1..).zip(&changes) {
                let at = u64::try_from(change.at.as_nanos()).unwrap();
                while let Some(arrival) = next.filter(|next| next.due < at) {
                    seen.push(arrival);
                    next = arrivals.next();
                }
                arrivals.follow(&after(count), SECOND, next.take());
                next = arrivals.next();
            }
            seen.extend(next);
            seen.extend(arrivals);
            seen.sort_by_key(|arrival| arrival.number);
            let mut expected = all(source(&after(3), 1));
            expected.sort_by_key(|arrival| arrival.number);
            assert!(seen.len() > 20, "{process:?}");
            assert_eq!(seen.len(), expected.len(), "{process:?}");
            for (is, should) in seen.iter().zip(&expected) {
                assert_eq!(is.number, should.number, "{process:?}");
                assert!(is.due.abs_diff(should.due) <= 2, "{process:?} {is:?} {should:?}");
            }
        }
    }
}
