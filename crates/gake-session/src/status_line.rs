//! The status line on a terminal.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gake_text::foreign;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// Redraw interval.
const TICK: Duration = Duration::from_millis(100);

/// Width of the bar in columns.
const BAR: usize = 16;

/// The line that is shown now.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Hides the status line while `write` writes to the terminal.
pub fn suspended<T>(write: impl FnOnce() -> T) -> T {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some(line) => line.suspend(write),
        None => write(),
    }
}

fn shown(line: Option<ProgressBar>) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = line;
}

/// A status line that is redrawn periodically; clones are the same line.
#[derive(Debug, Clone)]
pub struct StatusLine(ProgressBar);

impl StatusLine {
    /// A line with the elapsed time and a message, and with a bar if the length is known. It is cut
    /// to the width of the terminal.
    pub fn start(length: Option<Duration>) -> Self {
        let bar = ProgressBar::new_spinner();
        let template = match length {
            Some(_) => "[{filled}] {time}  {wide_msg}",
            None => "{spinner} {time}  {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            let bar_key = move |state: &ProgressState, out: &mut dyn Write| {
                let filled = filled(state.elapsed(), length.unwrap_or_default());
                // Writing to a String cannot fail.
                let _ = write!(out, "{}{}", "=".repeat(filled), " ".repeat(BAR - filled));
            };
            let time = move |state: &ProgressState, out: &mut dyn Write| {
                let _ = write!(out, "{}", clock(state.elapsed(), length));
            };
            bar.set_style(style.with_key("filled", bar_key).with_key("time", time));
        }
        Self::ticking(bar)
    }

    /// A line that calls `text` each time it is drawn.
    pub fn with_text(text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {text}") {
            let text = Arc::new(text);
            let draw = move |_: &ProgressState, out: &mut dyn Write| {
                // Writing to a String cannot fail.
                let _ = write!(out, "{}", foreign::line(&text()));
            };
            bar.set_style(style.with_key("text", draw));
        }
        Self::ticking(bar)
    }

    fn ticking(bar: ProgressBar) -> Self {
        bar.enable_steady_tick(TICK);
        shown(Some(bar.clone()));
        Self(bar)
    }

    /// Sets the message.
    pub fn set_message(&self, text: &str) {
        self.0.set_message(foreign::line(text).into_owned());
    }

    /// Prints a line above the status line.
    pub fn above(&self, text: &str) {
        self.0.println(foreign::lines(text));
    }

    /// Removes the line.
    pub fn clear(self) {
        shown(None);
        self.0.finish_and_clear();
    }
}

/// Filled columns of the bar after `elapsed` of `length`.
fn filled(elapsed: Duration, length: Duration) -> usize {
    let share = elapsed.as_secs_f64() / length.as_secs_f64().max(f64::MIN_POSITIVE);
    (share.min(1.0) * BAR as f64) as usize
}

/// `3.4/10s`, and past the end the time of the drain.
fn clock(elapsed: Duration, length: Option<Duration>) -> String {
    let elapsed = elapsed.as_secs_f64();
    match length.map(|length| length.as_secs_f64()) {
        Some(length) if elapsed > length => format!("{length}s, draining {:.1}s", elapsed - length),
        Some(length) => format!("{elapsed:.1}/{length}s"),
        None => format!("{elapsed:.1}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_moves_with_the_time() {
        let ms = Duration::from_millis;
        let at = |elapsed| filled(ms(elapsed), ms(10_000));
        assert_eq!([0, 5_000, 9_999, 20_000].map(at), [0, BAR / 2, BAR - 1, BAR]);
        assert_eq!(filled(ms(1), Duration::ZERO), BAR);
        let clock = |elapsed, length: Option<u64>| clock(ms(elapsed), length.map(ms));
        assert_eq!(clock(3_400, Some(10_000)), "3.4/10s");
        assert_eq!(clock(10_500, Some(10_000)), "10s, draining 0.5s");
        assert_eq!(clock(61_000, None), "61.0s");
    }
}
