//! Hooks from closures, any number of each kind.

use super::{ChangeScope, HookError, HookRequest, HookRequestHead, Hooks, Selection};
use crate::exchange::MirroredExchange;

type Select = Box<dyn Fn(&HookRequestHead) -> Selection + Send + Sync>;
type Change = Box<dyn Fn(&str, &mut HookRequest) + Send + Sync>;
type Finish = Box<dyn Fn(&MirroredExchange) + Send + Sync>;

/// Callbacks, called in the order of their registration.
#[derive(Default)]
pub struct HookSet {
    select: Vec<Select>,
    change: Vec<(ChangeScope, Change)>,
    finish: Vec<Finish>,
}

impl HookSet {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects the backends of a request. Of several results the last other than
    /// [`Selection::All`] applies.
    #[must_use]
    pub fn on_select_backends(
        mut self,
        hook: impl Fn(&HookRequestHead) -> Selection + Send + Sync + 'static,
    ) -> Self {
        self.select.push(Box::new(hook));
        self
    }

    /// Changes method, target and headers of a request to the backend of the given name.
    #[must_use]
    pub fn on_munge_request(
        mut self,
        hook: impl Fn(&str, &mut HookRequest) + Send + Sync + 'static,
    ) -> Self {
        self.change.push((ChangeScope::Head, Box::new(hook)));
        self
    }

    /// Changes the body as well, which is buffered before it is sent.
    #[must_use]
    pub fn on_munge_body(
        mut self,
        hook: impl Fn(&str, &mut HookRequest) + Send + Sync + 'static,
    ) -> Self {
        self.change.push((ChangeScope::Body, Box::new(hook)));
        self
    }

    /// Receives the outcomes of a request at every backend.
    #[must_use]
    pub fn on_backends_finished(
        mut self,
        hook: impl Fn(&MirroredExchange) + Send + Sync + 'static,
    ) -> Self {
        self.finish.push(Box::new(hook));
        self
    }
}

impl Hooks for HookSet {
    fn selects(&self) -> bool {
        !self.select.is_empty()
    }

    fn select(&self, request: &HookRequestHead) -> Result<Selection, HookError> {
        let selections = self.select.iter().map(|hook| hook(request));
        Ok(selections.filter(|selection| *selection != Selection::All).last().unwrap_or_default())
    }

    fn munges(&self, _backend: &str) -> ChangeScope {
        self.change.iter().map(|(munge, _)| *munge).max().unwrap_or_default()
    }

    fn munge(&self, backend: &str, request: &mut HookRequest) -> Result<(), HookError> {
        for (_, hook) in &self.change {
            hook(backend, request);
        }
        Ok(())
    }

    fn finishes(&self) -> bool {
        !self.finish.is_empty()
    }

    fn finished(&self, exchange: &MirroredExchange) -> Result<(), HookError> {
        for hook in &self.finish {
            hook(exchange);
        }
        Ok(())
    }
}
