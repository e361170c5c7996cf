//! Replaces `fleet` in a build without the feature: flags of a fleet are refused, and its types
//! have no values.

use std::convert::Infallible;
use std::marker::PhantomData;

use gake_core::record::AgentRecord;
use gake_core::spec::RunSpec;
use gake_run::search::PreparedTrial;
use gake_run::{EachSecond, Interrupt, RecordedRun, ResolvedRun, RunError, RunOptions};

use crate::options::FleetArgs;
use crate::{Console, Exit, Failure};

/// Assembles the fleets of a command.
#[derive(Debug)]
pub enum FleetMaker {}

impl FleetMaker {
    /// Refuses the flags of a fleet.
    ///
    /// # Errors
    /// When a flag is given.
    pub fn of(args: &FleetArgs) -> Result<Option<Self>, Failure> {
        match args.is_given() {
            true => Err(Failure::usage(
                "this build has no agents: it was made without the feature `fleet`",
            )),
            false => Ok(None),
        }
    }

    /// Is never called.
    #[must_use]
    pub fn for_scripts(self, _: bool) -> Self {
        self
    }

    /// Is never called.
    #[must_use]
    pub fn interrupted_by(self, _: &Interrupt) -> Self {
        self
    }

    /// Is never called.
    #[must_use]
    pub fn without_journal(self) -> Self {
        self
    }

    /// Is never called.
    pub fn agents(&self) -> usize {
        match *self {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// Never.
    pub fn find(&self) -> Result<(), Infallible> {
        match *self {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// Never.
    pub fn run(
        &self,
        _: &RunSpec,
        _: &ResolvedRun,
        _: RunOptions<'_>,
        _: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        match *self {}
    }

    pub(crate) fn run_trial(
        &self,
        _: PreparedTrial<'_>,
        _: RunOptions<'_>,
        _: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        match *self {}
    }
}

/// A loaded script that agents are to run.
#[derive(Debug)]
pub struct AgentScript<'a>(Infallible, PhantomData<&'a ()>);

/// The agents of a run.
#[derive(Debug)]
pub struct RunAgents<'a>(Infallible, PhantomData<&'a ()>);

impl RunAgents<'_> {
    pub(crate) fn follow(&mut self, _: Option<impl Fn(&str)>, _: &Interrupt) {
        match self.0 {}
    }

    pub(crate) fn run(
        &mut self,
        _: &ResolvedRun,
        _: RunOptions<'_>,
        _: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        match self.0 {}
    }

    pub(crate) fn finish(self) -> Option<EndedAgents> {
        match self.0 {}
    }
}

/// The agents of a run that has ended.
#[derive(Debug)]
pub enum EndedAgents {}

impl EndedAgents {
    pub(crate) fn is_interrupted(&self) -> bool {
        match *self {}
    }

    pub(crate) fn teardown_note(&self, _: &ResolvedRun) -> Option<&'static str> {
        match *self {}
    }

    pub(crate) fn conclude(
        &self,
        _: (&ResolvedRun, &[AgentRecord]),
        _: bool,
        _: Exit,
        _: &Console,
    ) -> Exit {
        match *self {}
    }

    pub(crate) fn forget(&self) {
        match *self {}
    }
}

/// Returns no agents.
///
/// # Errors
/// Never.
pub fn assemble<'a>(
    maker: Option<&'a FleetMaker>,
    _: (&RunSpec, &[AgentScript<'_>]),
    _: &'a ResolvedRun,
    _: bool,
    _: &'a Console,
) -> Result<Option<RunAgents<'a>>, Failure> {
    maker.map_or(Ok(None), |maker| match *maker {})
}

/// Is never called.
pub fn failure(error: Infallible) -> Failure {
    match error {}
}
