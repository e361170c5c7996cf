//! Which lines of a script do its work: a count of samples of its stack.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use gake_script::user::SAMPLE_STEPS;

/// Lines that are told apart; the others count as one.
const LINES_MAX: usize = 10_000;

/// Lines that are shown.
const SHOWN_MAX: usize = 20;

/// What a stack has as the place of a function that has called nothing yet.
const UNKNOWN: &str = "missing";

/// Samples below which shares mean little.
const SAMPLES_MIN: u64 = 100;

/// Where a sample found a script.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ScriptLine {
    function: String,
    /// As `/home/me/script.js:12`.
    place: String,
}

/// How often samples found each line, over all users. Samples come after a number of calls and
/// branches; native functions run between two of them.
#[derive(Debug, Default)]
pub struct ScriptProfile {
    lines: Mutex<HashMap<ScriptLine, u64>>,
}

impl ScriptProfile {
    /// Counts a sample: the stack as JavaScript has it, innermost call first.
    pub fn count(&self, stack: &str) {
        let Some(line) = innermost(stack) else { return };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let is_room = lines.len() < LINES_MAX || lines.contains_key(&line);
        let other = || ScriptLine { function: String::new(), place: "other lines".to_owned() };
        *lines.entry(if is_room { line } else { other() }).or_default() += 1;
    }

    /// The lines with their shares of the samples, the largest first.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines: Vec<_> = lines.iter().collect();
        lines.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let total: u64 = lines.iter().map(|(_, samples)| **samples).sum();
        let mut text = format!(
            "script profile: {total} samples, one every {SAMPLE_STEPS} calls and branches; \
             native functions are not sampled\n"
        );
        if total < SAMPLES_MIN {
            text += "too few samples for shares to mean much: run longer\n";
        }
        let width = |line: &&(&ScriptLine, &u64)| line.0.function.chars().count();
        let width = lines.iter().take(SHOWN_MAX).map(|line| width(&line)).max().unwrap_or(0);
        for (ScriptLine { function, place }, samples) in lines.iter().take(SHOWN_MAX) {
            let share = **samples as f64 * 100.0 / total as f64;
            let _ = writeln!(text, "  {share:5.1}%  {function:width$}  {place}");
        }
        let rest = lines.get(SHOWN_MAX..).unwrap_or_default();
        if !rest.is_empty() {
            let samples: u64 = rest.iter().map(|(_, samples)| **samples).sum();
            let share = samples as f64 * 100.0 / total as f64;
            let _ = writeln!(text, "  {share:5.1}%  {:width$}  {} more lines", "", rest.len());
        }
        text
    }
}

/// The innermost call of a script: of `    at f (file:///a.js:3:9)`. A function that has called
/// nothing yet has no line; then it is the line that calls it.
fn innermost(stack: &str) -> Option<ScriptLine> {
    let mut callee = None;
    for call in stack.lines().filter_map(|line| line.trim().strip_prefix("at ")) {
        // A path may hold " (" too.
        let parts = call.strip_suffix(')').and_then(|call| call.split_once(" ("));
        let (function, place) = parts.unwrap_or(("", call));
        if place == UNKNOWN {
            callee.get_or_insert(function);
        }
        let is_script = place.starts_with("file://") || place.starts_with("https://");
        let Some((place, _column)) = place.rsplit_once(':').filter(|_| is_script) else { continue };
        let place = place.strip_prefix("file://").unwrap_or(place);
        return Some(match callee {
            Some(callee) => {
                ScriptLine { function: callee.to_owned(), place: format!("called at {place}") }
            }
            None => ScriptLine { function: function.to_owned(), place: place.to_owned() },
        });
    }
    let place = "line unknown".to_owned();
    callee.map(|function| ScriptLine { function: function.to_owned(), place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_shares() {
        let profile = ScriptProfile::default();
        let stack = |line: u32| {
            format!(
                "    at <eval> (eval_script:1:4)\n    at map (native)\n    \
                 at work (file:///a b/s.js:{line}:7)\n    at default (file:///a b/s.js:1:1)\n"
            )
        };
        (0..3).for_each(|_| profile.count(&stack(12)));
        profile.count("    at https://a.test/x.js:3:9\n");
        profile.count(
            "    at <eval> (eval_script:1:4)\n    at busy (missing)\n    at g (file:///s.js:9:1)",
        );
        profile.count("    at <eval> (eval_script:1:4)\n");
        profile.count("    at <eval> (eval_script:1:4)\n    at default (missing)");
        profile.count("");
        let text = profile.text();
        assert!(
            text.starts_with("script profile: 6 samples, one every 10000 calls and branches;"),
            "{text}"
        );
        assert!(text.contains("too few samples"), "{text}");
        assert!(text.contains("\n   50.0%  work     /a b/s.js:12\n"), "{text}");
        assert!(text.contains("\n   16.7%           https://a.test/x.js:3\n"), "{text}");
        assert!(text.contains("\n   16.7%  default  line unknown\n"), "{text}");
        assert!(text.contains("\n   16.7%  busy     called at /s.js:9\n"), "{text}");
    }

    #[test]
    fn its_memory_is_bounded() {
        let profile = ScriptProfile::default();
        for line in 0..=LINES_MAX as u32 + 5 {
            profile.count(&format!("at f (file:///s.js:{line}:1)"));
        }
        let text = profile.text();
        assert!(text.contains("other lines"), "{text}");
        assert!(text.ends_with("more lines\n"), "{text}");
        assert_eq!(profile.lines.lock().unwrap().len(), LINES_MAX + 1);
    }
}
