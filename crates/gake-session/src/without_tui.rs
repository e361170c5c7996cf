//! Replaces `tui` in a build without the feature: `--tui` is refused.

use gake_run::{Interrupt, ResolvedRun, SecondUpdate};

use crate::console::Console;
use crate::exit::Failure;

/// The full-screen view, which has no values.
#[derive(Debug)]
pub enum Tui {}

impl Tui {
    /// Refuses `--tui`.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: &Console, _: &ResolvedRun, _: &Interrupt) -> Result<Self, Failure> {
        Err(Failure::usage("--tui: this build was made without the feature `tui`"))
    }

    /// Is never called.
    pub fn show(&self, _: &SecondUpdate<'_>, _: &ResolvedRun) {
        match *self {}
    }

    /// Is never called.
    pub fn end(self) {
        match self {}
    }
}

/// Does nothing.
pub fn close() {}
