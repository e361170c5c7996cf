//! What is shown while a search goes on: a line for each step, and one that moves on a terminal.

use std::time::Duration;

use gake_engine::JoinedSecond;
use gake_judge::search::{Found, Search, Step, Trial, TrialLoad};
use gake_text::units;

use crate::cli::FindArgs;
use gake_session::Console;
use gake_session::StatusLine;

/// Standard error, while the search goes on.
pub struct SearchLive<'a> {
    console: &'a Console,
    quiet: bool,
    bar: Option<StatusLine>,
    budget: Duration,
}

impl<'a> SearchLive<'a> {
    /// What suits the terminal and the flags.
    pub fn new(args: &FindArgs, console: &'a Console) -> Self {
        let quiet = args.output.quiet;
        let bar = if quiet { None } else { console.moving(None) };
        Self { console, quiet, bar, budget: args.search.budget }
    }

    /// What will be done.
    pub fn plan(&self, text: &str) {
        self.line(text);
    }

    /// One second of a trial.
    pub fn second(&self, trial: &Trial, second: &JoinedSecond) {
        let Some(bar) = &self.bar else { return };
        let mut counts = second.tally.counts;
        counts.merge(&second.warmup);
        bar.say(&format!(
            "{} {}: sent {}/s, p99 {}, {} failed",
            trial.purpose.name(),
            load(trial.load),
            counts.sent,
            units::duration(second.point.p99 as f64),
            counts.failed + counts.unsent + counts.dropped
        ));
    }

    /// A rest, while it lasts.
    pub fn resting(&self, rest: Duration, wait: impl FnOnce()) {
        if let Some(bar) = &self.bar {
            bar.say(&format!("resting {}", units::duration(rest.as_nanos() as f64)));
        }
        wait();
    }

    /// A step that is over.
    pub fn step(&self, step: &Step, search: &Search) {
        let known = match search.answer().found {
            Found::Capacity(e) => format!(
                "   capacity {} ({} to {})",
                units::number(e.capacity),
                units::number(e.low),
                units::number(e.high)
            ),
            _ => String::new(),
        };
        self.line(&format!(
            "{:>4.0}s of {:.0}s  {:<7} {:>12}  response {:>8}  {:<12}{known}",
            search.spent(),
            self.budget.as_secs_f64(),
            step.trial.purpose.name(),
            load(step.trial.load),
            units::duration(step.seen.response * 1e9),
            if step.trial.purpose.is_exploring() { "" } else { step.outcome.name() },
        ));
    }

    /// Takes the moving line away.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.above(text),
            None => self.console.note(text),
        }
    }
}

/// A load in words.
fn load(load: TrialLoad) -> String {
    match load {
        TrialLoad::Rate(rate) => units::rate(rate),
        TrialLoad::Users(n) => units::plural(n as u64, "user"),
        TrialLoad::Connections(n) => units::plural(n as u64, "connection"),
    }
}
