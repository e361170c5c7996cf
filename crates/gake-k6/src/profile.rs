//! A sampling profile of a script's lines.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use gake_script::user::SAMPLE_STEPS;

/// Distinct lines; all others count as one.
const LINES_MAX: usize = 10_000;

const SHOWN_MAX: usize = 20;

/// The location of a function that has called nothing yet.
const UNKNOWN: &str = "missing";

/// Below this many samples, shares mean little.
const SAMPLES_MIN: u64 = 100;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ProfiledLine {
    function: String,
    /// `/home/me/script.js:12`
    location: String,
}

/// Samples by line, over all users. A sample is taken after a number of calls and branches, so that
/// native functions are never sampled.
#[derive(Debug, Default)]
pub struct ScriptProfile {
    lines: Mutex<HashMap<ProfiledLine, u64>>,
}

impl ScriptProfile {
    /// Counts a sample: a JavaScript stack, innermost call first.
    pub fn count(&self, stack: &str) {
        let Some(line) = innermost(stack) else { return };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let is_room = lines.len() < LINES_MAX || lines.contains_key(&line);
        let other = || ProfiledLine { function: String::new(), location: "other lines".to_owned() };
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
        let shown = lines.iter().take(SHOWN_MAX);
        let width = shown.clone().map(|(line, _)| line.function.chars().count()).max().unwrap_or(0);
        for (ProfiledLine { function, location }, samples) in shown {
            let share = **samples as f64 * 100.0 / total as f64;
            let _ = writeln!(text, "  {share:5.1}%  {function:width$}  {location}");
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

/// The innermost call of a script in a stack of `    at f (file:///a.js:3:9)`. A function that has
/// called nothing yet has no line: its caller's line stands for it.
fn innermost(stack: &str) -> Option<ProfiledLine> {
    let line =
        |function: &str, location| Some(ProfiledLine { function: function.to_owned(), location });
    let mut callee = None;
    for call in stack.lines().filter_map(|line| line.trim().strip_prefix("at ")) {
        // A path may contain " (" too.
        let parts = call.strip_suffix(')').and_then(|call| call.split_once(" ("));
        let (function, location) = parts.unwrap_or(("", call));
        if location == UNKNOWN {
            callee.get_or_insert(function);
        }
        let is_script = location.starts_with("file://") || location.starts_with("https://");
        let location = location.rsplit_once(':').filter(|_| is_script);
        let Some((location, _column)) = location else { continue };
        let location = location.strip_prefix("file://").unwrap_or(location);
        return match callee {
            Some(callee) => line(callee, format!("called at {location}")),
            None => line(function, location.to_owned()),
        };
    }
    line(callee?, "line unknown".to_owned())
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
        expect_test::expect![[r#"
            script profile: 6 samples, one every 10000 calls and branches; native functions are not sampled
            too few samples for shares to mean much: run longer
               50.0%  work     /a b/s.js:12
               16.7%           https://a.test/x.js:3
               16.7%  busy     called at /s.js:9
               16.7%  default  line unknown
        "#]]
        .assert_eq(&text);
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
