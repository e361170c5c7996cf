//! Bounds repeated log lines: a server that is down would fill the screen with one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gake_k6::test::{LogLevel, LogLine, ScriptLog};

/// How often the same warning or error is written.
const TIMES: u64 = 5;

/// Distinct texts that are counted; further ones are always written.
const TEXTS_MAX: usize = 1_000;

/// The field that marks lines of the script itself.
const CONSOLE: (&str, &str) = ("source", "console");

/// Counts of each text.
#[derive(Debug, Clone, Default)]
pub struct Repeats(Arc<Mutex<HashMap<String, u64>>>);

impl Repeats {
    /// A log that writes the same warning or error a few times. Lines of `console` are not bounded.
    #[must_use]
    pub fn bounding(&self, log: ScriptLog) -> ScriptLog {
        let repeats = self.clone();
        Arc::new(move |line: &LogLine| {
            let is_own = line.fields.iter().any(|(key, value)| (*key, &**value) == CONSOLE);
            let is_bounded = matches!(line.level, LogLevel::Warning | LogLevel::Error) && !is_own;
            if !is_bounded || repeats.count(line) <= TIMES {
                log(line);
            }
        })
    }

    fn count(&self, line: &LogLine) -> u64 {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let error = line.fields.iter().find(|(key, _)| *key == "error");
        let text = format!("{}{}", line.message, error.map_or("", |(_, error)| error));
        if !texts.contains_key(&text) && texts.len() >= TEXTS_MAX {
            return 0;
        }
        let count = texts.entry(text).or_default();
        *count += 1;
        *count
    }

    /// Number of lines that were not written, if any.
    #[must_use]
    pub fn left_out(&self) -> Option<u64> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more: u64 = texts.values().map(|count| count.saturating_sub(TIMES)).sum();
        (more > 0).then_some(more)
    }
}

#[cfg(test)]
mod tests {
    use gake_text::redact::Redacted;

    use super::*;

    #[test]
    fn repeated_errors_are_bounded_and_console_lines_are_not() {
        let written = Arc::new(Mutex::new(0));
        let to = Arc::clone(&written);
        let repeats = Repeats::default();
        let log = repeats.bounding(Arc::new(move |_: &LogLine| *to.lock().unwrap() += 1));
        let line = |message, source| LogLine {
            level: LogLevel::Error,
            message: Redacted::plain(message),
            fields: vec![("source", Redacted::plain(source))],
        };
        (0..20).for_each(|_| log(&line("down", "stacktrace")));
        assert_eq!((*written.lock().unwrap(), repeats.left_out()), (TIMES, Some(15)));
        (0..20).for_each(|_| log(&line("down", "console")));
        assert_eq!((*written.lock().unwrap(), repeats.left_out()), (TIMES + 20, Some(15)));
    }
}
