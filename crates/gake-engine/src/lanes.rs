//! Lanes: long-lived tasks that fire one arrival at a time.

use std::cell::RefCell;
use std::rc::Rc;

use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use gake_core::work::Factory;

use crate::scenario_state::ScenarioState;

/// The resources of lanes, for one scenario on a worker.
pub(crate) struct Lanes<F: Factory> {
    pub(crate) shared: Rc<ScenarioState>,
    pub(crate) slice: Slice,
    /// Work for lanes not yet opened, in reverse order.
    works: RefCell<Vec<F::Work>>,
}

impl<F: Factory> Lanes<F> {
    /// Makes the work of `lanes` lanes.
    pub(crate) fn new(shared: &Rc<ScenarioState>, slice: Slice, factory: &F, lanes: usize) -> Self {
        let works = (0..lanes).rev().map(|lane| factory.work(lane)).collect();
        Self { shared: Rc::clone(shared), slice, works: RefCell::new(works) }
    }

    /// The work of the next lane; `None` if all lanes are open.
    pub(crate) fn next_work(&self) -> Option<F::Work> {
        let mut works = self.works.borrow_mut();
        let work = works.pop();
        if works.is_empty() {
            // Free the memory: there may be a million users.
            *works = Vec::new();
        }
        work
    }

    /// Whether all lanes are open.
    pub(crate) fn is_all(&self) -> bool {
        self.works.borrow().is_empty()
    }

    /// The number of lane `lane` among the lanes of all workers.
    pub(crate) fn global(&self, lane: usize) -> usize {
        self.slice.number(lane)
    }
}

/// When the plan's connect rate allows the connection with this number.
pub(crate) fn opens_at(plan: &Plan, connection: usize) -> Nanos {
    plan.connect_rate.map_or(0, |rate| (connection as f64 / rate * SECOND as f64) as Nanos)
}
