//! The arrivals of a worker: its own share of the schedule, and what it takes over while it runs.

use gake_core::clock::Nanos;
use gake_core::schedule::Share;
use gake_core::work::Arrival;

/// Arrivals in the order in which they are due, counted from the run's epoch.
#[derive(Debug)]
pub(crate) struct Source {
    /// The next one, when it is known already.
    head: Option<Arrival>,
    /// What follows it.
    share: Option<Share<'static>>,
    start: Nanos,
}

impl Source {
    /// The arrivals of `share`, whose schedule begins at `start`.
    pub(crate) fn new(share: Share<'static>, start: Nanos) -> Self {
        Self { head: None, share: Some(share), start }
    }

    /// Those of them that are due at `from` or later.
    pub(crate) fn since(self, from: Nanos) -> Self {
        let mut source = self;
        source.head = std::iter::from_fn(|| source.next()).find(|arrival| arrival.due >= from);
        source
    }

    fn next(&mut self) -> Option<Arrival> {
        if let Some(head) = self.head.take() {
            return Some(head);
        }
        let Arrival { number, due } = self.share.as_mut()?.next()?;
        Some(Arrival { number, due: due + self.start })
    }
}

/// The arrivals of several sources in the order in which they are due.
#[derive(Debug)]
pub(crate) struct Arrivals {
    sources: Vec<Source>,
}

impl Arrivals {
    pub(crate) fn new(own: Source) -> Self {
        Self { sources: vec![own] }
    }

    /// Adds a source, and gives back an arrival that was taken last and not used.
    pub(crate) fn add(&mut self, source: Source, unused: Option<Arrival>) {
        let start = source.start;
        self.sources.push(source);
        self.sources.extend(unused.map(|head| Source { head: Some(head), share: None, start }));
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
            source.head = source.next();
        }
        self.sources.retain(|source| source.head.is_some());
        let due = |source: &&mut Source| source.head.map(|head| head.due);
        self.sources.iter_mut().min_by_key(due)?.head.take()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use gake_core::clock::SECOND;
    use gake_core::schedule::{Process, Schedule, Slice, Stage};

    const OF: usize = 4;

    fn source(schedule: &Schedule, index: usize) -> Source {
        Source::new(schedule.share(Slice::new(index, OF)).into_owned(), SECOND)
    }

    fn all(mut source: Source) -> Vec<Arrival> {
        std::iter::from_fn(|| source.next()).collect()
    }

    #[test]
    fn what_is_taken_over_joins_the_own_in_order() {
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
}
