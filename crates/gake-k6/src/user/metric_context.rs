//! What the samples of a user are tagged with, as its asynchronous code carries it
//! (`--features async-metric-context`).

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use gake_script::user::{CarriedState, carry};
use rquickjs::Ctx;

use super::vu::Vu;

/// The group, tags and metadata of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetricContext {
    group: Rc<str>,
    tags: Vec<(String, String)>,
    metadata: Vec<(String, String)>,
}

impl MetricContext {
    /// The user's.
    pub(crate) fn of(vu: &Vu) -> Self {
        Self {
            group: Rc::clone(&vu.group.borrow()),
            tags: vu.tags.borrow().clone(),
            metadata: vu.metadata.borrow().clone(),
        }
    }

    /// Whether it is the user's.
    fn is_of(&self, vu: &Vu) -> bool {
        self.group == *vu.group.borrow()
            && self.tags == *vu.tags.borrow()
            && self.metadata == *vu.metadata.borrow()
    }

    /// Makes it the user's.
    pub(crate) fn restore(&self, vu: &Vu) {
        *vu.group.borrow_mut() = Rc::clone(&self.group);
        vu.tags.borrow_mut().clone_from(&self.tags);
        vu.metadata.borrow_mut().clone_from(&self.metadata);
    }
}

/// The context of a user for its promises.
struct Carried {
    vu: Rc<Vu>,
    /// The last one: reactions in a row share it.
    last: RefCell<Rc<MetricContext>>,
}

impl CarriedState for Carried {
    fn now(&self) -> Rc<dyn Any> {
        let mut last = self.last.borrow_mut();
        if !last.is_of(&self.vu) {
            *last = Rc::new(MetricContext::of(&self.vu));
        }
        Rc::clone(&last) as Rc<dyn Any>
    }

    fn set(&self, state: &Rc<dyn Any>) {
        if let Some(context) = state.downcast_ref::<MetricContext>()
            && !context.is_of(&self.vu)
        {
            context.restore(&self.vu);
        }
    }
}

/// Lets the promises, timers and handlers of a user carry its context, if the run has the feature.
pub(crate) fn install(ctx: &Ctx<'_>, vu: &Rc<Vu>) {
    if vu.test.settings().features.async_metric_context {
        let last = RefCell::new(Rc::new(MetricContext::of(vu)));
        carry(ctx, Rc::new(Carried { vu: Rc::clone(vu), last }));
    }
}
