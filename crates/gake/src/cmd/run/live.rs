//! The line that shows a run while it goes on.

use gake_core::plan::Plan;
use gake_engine::JoinedSecond;
use gake_judge::units::duration;

use crate::cli::RunArgs;
use crate::console::{Console, Moving};

/// A progress bar on a terminal, a line a second when asked for, or nothing.
#[derive(Debug)]
pub struct Live {
    bar: Option<Moving>,
    verbose: bool,
}

impl Live {
    /// What suits the terminal and the flags.
    pub fn new(args: &RunArgs, console: &Console, plan: &Plan) -> Self {
        let watched = !args.output.quiet && !args.output.verbose;
        let bar = if watched { bar(plan, console) } else { None };
        Self { bar, verbose: args.output.verbose }
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
            counts.failed + counts.unsent + counts.dropped,
        );
        if self.verbose {
            console.note(&format!("{:>5}s  {text}", second.second));
        }
        if let Some(bar) = &self.bar {
            bar.at(second.second);
            bar.say(&text);
        }
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
    }
}

fn bar(plan: &Plan, console: &Console) -> Option<Moving> {
    match plan.length() {
        Some(length) => {
            let seconds = length.as_secs_f64().ceil() as u64;
            console.moving(Some(seconds), "[{bar:20}] {pos}/{len}s  {msg}")
        }
        None => console.moving(None, "{spinner} {elapsed}  {msg}"),
    }
}
