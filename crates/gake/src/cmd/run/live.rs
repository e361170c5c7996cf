//! The line that shows a run while it goes on.

use std::time::Duration;

use gake_core::plan::Plan;
use gake_engine::JoinedSecond;
use gake_judge::units::duration;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::RunArgs;
use crate::console::Console;

/// A progress bar on a terminal, a line a second when asked for, or nothing.
#[derive(Debug)]
pub struct Live {
    bar: Option<ProgressBar>,
    verbose: bool,
}

impl Live {
    /// What suits the terminal and the flags.
    pub fn new(args: &RunArgs, console: &Console, plan: &Plan) -> Self {
        let watched = console.live() && !args.output.quiet && !args.output.verbose;
        Self { bar: watched.then(|| bar(plan)), verbose: args.output.verbose }
    }

    /// Shows one second.
    pub fn show(&mut self, console: &Console, second: &JoinedSecond, asked: Option<f64>) {
        if self.bar.is_none() && !self.verbose {
            return;
        }
        let mut counts = second.tally.counts;
        counts.merge(&second.warmup);
        let response = second.tally.latency.response();
        let asked = asked.map_or(String::new(), |asked| format!("asked {asked:.0}/s, "));
        let text = format!(
            "{asked}sent {}/s, p50 {}, p99 {}, {} failed",
            counts.sent,
            duration(response.quantile(0.5) as f64),
            duration(response.quantile(0.99) as f64),
            counts.failed + counts.dropped,
        );
        if self.verbose {
            console.note(&format!("{:>5}s  {text}", second.second));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(second.second);
            bar.set_message(text);
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(plan: &Plan) -> ProgressBar {
    let (bar, template) = match plan.length() {
        Some(length) => {
            (ProgressBar::new(length.as_secs_f64().ceil() as u64), "[{bar:20}] {pos}/{len}s  {msg}")
        }
        None => (ProgressBar::new_spinner(), "{spinner} {elapsed}  {msg}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
