//! The display of a run in progress.

use std::time::Duration;

use gake_core::plan::Plan;
use gake_run::{Interrupt, ResolvedRun, SecondUpdate};
use gake_text::units::{count, duration};

use crate::console::Console;
use crate::exit::Failure;
use crate::options::OutputArgs;
use crate::status_line::StatusLine;
use crate::tui::{self, Tui};

use super::connection_progress::ConnectionProgress;

/// A status line, a line per second, the full-screen view, or nothing.
#[derive(Debug)]
pub struct RunLive {
    bar: Option<StatusLine>,
    tui: Option<Tui>,
    /// Whether the full-screen view is requested.
    wants_tui: bool,
    verbose: bool,
    quiet: bool,
    opening: ConnectionProgress,
    /// How long arrivals last, if a time ends them.
    length: Option<Duration>,
    /// How many requests the plan has, if only their number ends them.
    requests: Option<u64>,
}

impl RunLive {
    /// Chooses the display by the terminal and the flags.
    pub fn new(output: &OutputArgs, console: &Console, plan: &Plan) -> Self {
        let wants_tui = output.tui;
        let watched = !output.quiet && !output.verbose && !wants_tui;
        let length = plan.length();
        let requests = plan.requests.filter(|_| length.is_none());
        let bar = if watched { console.status_line(length) } else { None };
        let (verbose, quiet) = (output.verbose, output.quiet);
        let opening = ConnectionProgress::of(plan);
        Self { bar, tui: None, wants_tui, verbose, quiet, opening, length, requests }
    }

    /// Opens the full-screen view if it is requested.
    ///
    /// # Errors
    /// When there is no terminal.
    pub fn open(
        &mut self,
        console: &Console,
        prepared: &ResolvedRun,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        if self.wants_tui {
            self.tui = Some(Tui::start(console, prepared, interrupt)?);
        }
        Ok(())
    }

    /// A signal handler that removes the line when the user stops the run, and notes what happens
    /// then.
    pub fn stopper(&self, console: &Console) -> impl FnMut(u32) + Send + 'static {
        let (mut bar, console, quiet) = (self.bar.clone(), *console, self.quiet);
        let has_tui = self.wants_tui;
        move |count| {
            // The third signal ends the process, and would leave the terminal in raw mode.
            if has_tui && count > 2 {
                tui::close();
            }
            if let Some(bar) = bar.take() {
                bar.clear();
            }
            if !quiet && !has_tui && count == 1 {
                console.note("stopping: waiting for requests in flight; again to stop at once");
            }
        }
    }

    /// Reports events of the agents above the line.
    pub fn agents_reporter(
        &self,
        console: &Console,
    ) -> Option<impl Fn(&str) + Send + Sync + 'static> {
        if self.quiet || self.wants_tui {
            return None;
        }
        let (bar, console) = (self.bar.clone(), *console);
        Some(move |text: &str| match &bar {
            Some(bar) => bar.above(&format!("warning: {text}")),
            None => console.warn(text),
        })
    }

    /// Shows one second.
    pub fn show(&mut self, console: &Console, update: &SecondUpdate<'_>, prepared: &ResolvedRun) {
        if let Some(tui) = &self.tui {
            return tui.show(update, prepared);
        }
        let (second, asked) = (update.second, update.asked);
        self.report_limit(console, update);
        if self.bar.is_none() && !self.verbose {
            return;
        }
        let mut counts = second.tally.counts;
        counts.merge(&second.warmup);
        let is_over =
            self.length.is_some_and(|length| Duration::from_secs(second.second - 1) >= length);
        if is_over && counts.due() == 0 {
            return;
        }
        let asked = asked.map_or(String::new(), |asked| format!("asked {asked:.0}/s, "));
        let opening = self.opening.progress(update.so_far.tally(), second.point.open);
        let opening = opening.map_or(String::new(), |opening| format!("{opening}, "));
        let dropped = match counts.dropped {
            0 => String::new(),
            dropped => format!(", {dropped} dropped"),
        };
        let failed = counts.failed + counts.unsent;
        let responses = match second.point.p99 {
            0 => format!("no response, {:.0} in flight", second.point.in_flight),
            p99 => {
                format!("p50 {}, p99 {}", duration(second.point.p50 as f64), duration(p99 as f64))
            }
        };
        let of_count = self.requests.map_or(String::new(), |requests| {
            let so_far = update.so_far.tally().counts.due();
            format!("{} of {}, ", count(so_far), count(requests))
        });
        let text = format!(
            "{opening}{of_count}{asked}sent {}/s, {failed} failed{dropped}, {responses}",
            counts.sent,
        );
        if self.verbose {
            console.note(&format!("{:>5}s  {text}", second.second));
        }
        if let Some(bar) = &self.bar {
            bar.set_message(&text);
        }
    }

    /// Reports the first limit on the number of connections.
    fn report_limit(&mut self, console: &Console, update: &SecondUpdate<'_>) {
        if self.quiet {
            return;
        }
        let limit = self.opening.limit(update.so_far.tally(), update.second.point.open);
        match (&self.bar, limit) {
            (_, None) => {}
            (Some(bar), Some(limit)) => bar.above(&limit),
            (None, Some(limit)) => console.note(&limit),
        }
    }

    /// Removes the display.
    pub fn clear(&mut self) {
        if let Some(tui) = self.tui.take() {
            tui.end();
        }
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
    }
}
