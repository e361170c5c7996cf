//! Hooks from closures, as many of each kind as wanted.

use super::{ChangeScope, HookError, HookRequest, HookRequestHead, Hooks, Selection};
use crate::exchange::MirroredExchange;

type Select = Box<dyn Fn(&HookRequestHead) -> Selection + Send + Sync>;
type Change = Box<dyn Fn(&str, &mut HookRequest) + Send + Sync>;
type Finish = Box<dyn Fn(&MirroredExchange) + Send + Sync>;

/// Callbacks, called in the order in which they were added.
#[derive(Default)]
pub struct HookSet {
    select: Vec<Select>,
    change: Vec<(ChangeScope, Change)>,
    finish: Vec<Finish>,
}

impl HookSet {
    /// Without any callback.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses who gets a request. Of several, the last that does not say [`Selection::All`]
    /// counts.
    #[must_use]
    pub fn on_select_backends(
        mut self,
        hook: impl Fn(&HookRequestHead) -> Selection + Send + Sync + 'static,
    ) -> Self {
        self.select.push(Box::new(hook));
        self
    }

    /// Changes method, target and headers of a request to a backend, which is named.
    #[must_use]
    pub fn on_munge_request(
        mut self,
        hook: impl Fn(&str, &mut HookRequest) + Send + Sync + 'static,
    ) -> Self {
        self.change.push((ChangeScope::Head, Box::new(hook)));
        self
    }

    /// Changes the body as well, which is read whole before it is sent.
    #[must_use]
    pub fn on_munge_body(
        mut self,
        hook: impl Fn(&str, &mut HookRequest) + Send + Sync + 'static,
    ) -> Self {
        self.change.push((ChangeScope::Body, Box::new(hook)));
        self
    }

    /// Is told what came of a request at every backend.
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
        let said = self.select.iter().map(|hook| hook(request));
        Ok(said.filter(|said| *said != Selection::All).last().unwrap_or_default())
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
