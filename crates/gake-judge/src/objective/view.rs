//! The records that objectives are evaluated on.

use gake_core::clock::{Nanos, nanos};
use gake_core::metric::Tags;
use gake_core::plan::Plan;
use gake_core::record::{Run, ScenarioRun, Tally, WatchRecord};

/// The data to evaluate objectives on: a whole run, or a run in progress.
#[derive(Debug, Clone)]
pub struct RunView<'a> {
    /// The records of all scenarios together.
    pub tally: &'a Tally,
    /// The duration of sending.
    pub sending: Nanos,
    /// The duration from the first arrival to the last completion.
    pub span: Nanos,
    /// The plan of the run.
    pub plan: &'a Plan,
    /// The samples of the target.
    pub watched: &'a WatchRecord,
    /// Each scenario, in the plan's order, if the run has several.
    pub scenarios: Vec<ScenarioView<'a>>,
}

/// One scenario of a [`RunView`].
#[derive(Debug, Clone, Copy)]
pub struct ScenarioView<'a> {
    /// The records of the scenario.
    pub tally: &'a Tally,
    /// The end of its warm-up, from the start of the run.
    pub begun: Nanos,
    /// The duration of sending.
    pub sending: Nanos,
    /// The duration from the first arrival to the last completion.
    pub span: Nanos,
}

impl<'a> RunView<'a> {
    /// The view of a whole run.
    #[must_use]
    pub fn of(run: &'a Run) -> Self {
        Self {
            tally: &run.tally,
            sending: run.sending,
            span: run.completing,
            plan: &run.plan,
            watched: &run.watched,
            scenarios: run.scenarios.iter().map(ScenarioView::of).collect(),
        }
    }

    pub(super) fn has(&self, tags: &Tags) -> bool {
        self.plan.scenarios().iter().any(|plan| plan.carries(tags))
    }

    /// Calls `of` with a view of only the scenarios with `tags`, of which there must be some
    /// ([`RunView::has`]).
    pub(super) fn within<T>(&self, tags: &Tags, of: impl FnOnce(&RunView<'_>) -> T) -> T {
        let scenarios: Vec<_> = self.tagged(tags).collect();
        let (sending, span) = self.times(tags).unwrap_or_default();
        let narrowed = |tally| RunView { tally, sending, span, scenarios: Vec::new(), ..*self };
        match scenarios.as_slice() {
            // A single scenario has no records of its own: it is the whole.
            all if all.len() == self.scenarios.len() => of(self),
            [] => of(&narrowed(&Tally::default())),
            [one] => of(&narrowed(one.tally)),
            [first, rest @ ..] => {
                let mut all = first.tally.clone();
                rest.iter().for_each(|scenario| all.merge(scenario.tally));
                of(&narrowed(&all))
            }
        }
    }

    /// The durations of sending and completing of the scenarios with `tags`, from the end of the
    /// first warm-up; `None` when they are not recorded separately.
    pub(crate) fn times(&self, tags: &Tags) -> Option<(Nanos, Nanos)> {
        let first = self.tagged(tags).map(|scenario| scenario.begun).min()?;
        let until = |end: fn(&ScenarioView<'_>) -> Nanos| {
            let ends =
                self.tagged(tags).map(|scenario| scenario.begun.saturating_add(end(scenario)));
            ends.max().map(|last| last.saturating_sub(first))
        };
        Some((until(|scenario| scenario.sending)?, until(|scenario| scenario.span)?))
    }

    fn tagged(&self, tags: &Tags) -> impl Iterator<Item = &ScenarioView<'a>> {
        let scenarios = self.plan.scenarios().iter().zip(&self.scenarios);
        scenarios.filter(|(plan, _)| plan.carries(tags)).map(|(_, scenario)| scenario)
    }

    pub(super) fn labels(&self) -> &'a [String] {
        &self.plan.labels
    }

    /// Levels of the target count from here on.
    pub(super) fn warmup(&self) -> Nanos {
        nanos(self.plan.warmup)
    }
}

impl<'a> ScenarioView<'a> {
    fn of(run: &'a ScenarioRun) -> Self {
        let begun = nanos(run.plan.start).saturating_add(nanos(run.plan.warmup));
        Self { tally: &run.tally, begun, sending: run.sending, span: run.completing }
    }
}
