//! The progress of a search: a line for each step, and a status line on a terminal.

use std::time::Duration;

use gake_engine::JoinedSecond;
use gake_judge::Clause;
use gake_judge::search::{Dimension, Found, Search, Step, Trial, TrialLoad};
use gake_run::search::SearchEvent;
use gake_session::{Console, StatusLine};
use gake_text::units;

use crate::cli::FindArgs;

/// Standard error during the search.
pub struct SearchLive<'a> {
    args: &'a FindArgs,
    console: &'a Console,
    bar: Option<StatusLine>,
    target: String,
    has_scripts: bool,
}

impl<'a> SearchLive<'a> {
    /// What suits the terminal and the flags, for a search of `target`.
    pub fn new(args: &'a FindArgs, target: &str, has_scripts: bool, console: &'a Console) -> Self {
        let bar = if args.output.quiet { None } else { console.moving(None) };
        Self { args, console, bar, target: target.to_owned(), has_scripts }
    }

    /// Shows what happens.
    pub fn show(&self, event: SearchEvent<'_>) {
        match event {
            SearchEvent::Begin(clauses) => self.line(&self.plan(clauses)),
            SearchEvent::Second(trial, second) => self.second(trial, second),
            SearchEvent::Rest(rest) => self.rest(rest),
            SearchEvent::Step(step, search) => self.step(step, search),
            SearchEvent::Map(steps) => {
                let length: u64 = steps.iter().map(|step| step.seconds).sum();
                self.line(&format!(
                    "mapping what comes after it: up to {} and back, {length} s",
                    units::rate(steps.iter().map(|step| step.level).fold(0.0, f64::max))
                ));
            }
        }
    }

    /// The one line before the first step.
    fn plan(&self, clauses: &[Clause]) -> String {
        let args = &self.args.search;
        let what = match Dimension::from(args.dimension) {
            Dimension::Rate if self.has_scripts => "the most iterations a second",
            Dimension::Rate => "the highest rate",
            Dimension::Users => "the most users",
            Dimension::Connections => "the most open connections",
            Dimension::ConnectRate => "the most new connections a second",
            Dimension::TlsHandshakes => "the most TLS handshakes a second",
            Dimension::Streams => "the most concurrent streams",
        };
        let texts: Vec<&str> = clauses.iter().map(|clause| clause.text.as_str()).collect();
        let highest = args.max_rate.map(|rate| format!(", never over {}", units::number(rate)));
        format!(
            "{}: {what} with {} (to {} in {}{})",
            self.target,
            texts.join(" and "),
            units::percent(args.precision),
            units::duration(args.budget.as_nanos() as f64),
            highest.unwrap_or_default()
        )
    }

    /// One second of a trial.
    fn second(&self, trial: &Trial, second: &JoinedSecond) {
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

    fn rest(&self, rest: Duration) {
        if let Some(bar) = &self.bar {
            bar.say(&format!("resting {}", units::duration(rest.as_nanos() as f64)));
        }
    }

    /// A step that is complete.
    fn step(&self, step: &Step, search: &Search) {
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
            self.args.search.budget.as_secs_f64(),
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
            _ if self.args.output.quiet => {}
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
