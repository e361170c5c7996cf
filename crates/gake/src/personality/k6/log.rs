//! The log of a k6 run: logfmt for programs, short lines for people.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gake_k6::test::{LogLevel, LogLine, ScriptLog};

use crate::console::Console;

/// Where lines of the log go.
enum Place {
    Error,
    Result,
    File(Mutex<File>),
    Nowhere,
}

/// The log of a run. `output` is what `--log-output` says.
///
/// # Errors
/// When it names no place, or its file cannot be created.
pub fn log(console: &Console, output: Option<&str>, verbose: bool) -> Result<ScriptLog, String> {
    let place = match output {
        None | Some("stderr") => Place::Error,
        Some("stdout") => Place::Result,
        Some("none") => Place::Nowhere,
        Some(other) => {
            let path = other.strip_prefix("file=").ok_or_else(|| {
                format!(
                    "--log-output {other} cannot be honoured: write stderr, stdout, none or \
                     file=PATH"
                )
            })?;
            let file = gake_files::create(path.as_ref(), gake_files::Access::Mask);
            Place::File(Mutex::new(file.map_err(|error| format!("{path}: {error}"))?))
        }
    };
    let (console, began) = (*console, Instant::now());
    Ok(Arc::new(move |line: &LogLine| {
        if line.level == LogLevel::Debug && !verbose {
            return;
        }
        match &place {
            Place::Nowhere => {}
            Place::Error if console.live() => console.note(&for_people(line, began)),
            Place::Error => console.note(&logfmt(line)),
            // A closed pipe is no news.
            Place::Result => drop(console.result(&format!("{}\n", logfmt(line)))),
            Place::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                // Nobody is left to tell when this fails.
                let _ = writeln!(file, "{}", logfmt(line));
            }
        }
    }))
}

fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
    }
}

fn logfmt(line: &LogLine) -> String {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let mut text = format!("time=\"{now}\" level={}", level(line.level));
    // As k6: a line that says nothing has no message.
    if !line.message.is_empty() {
        text += &format!(" msg={}", quoted(&line.message));
    }
    for (key, value) in &line.fields {
        text += &format!(" {key}={}", quoted(value));
    }
    text
}

fn for_people(line: &LogLine, began: Instant) -> String {
    let level = match line.level {
        LogLevel::Debug => "DEBU",
        LogLevel::Info => "INFO",
        LogLevel::Warning => "WARN",
        LogLevel::Error => "ERRO",
    };
    let mut text = format!("{level}[{:04}] {:<45}", began.elapsed().as_secs(), line.message);
    for (key, value) in &line.fields {
        text += &format!(" {key}={}", quoted(value));
    }
    text
}

/// A value of logfmt: in quotes unless it is plain.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/@^+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            c if c.is_control() => quoted += &format!("\\x{:02x}", c as u32),
            c if c.is_whitespace() && c != ' ' => quoted += &format!("\\u{:04x}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_go_does() {
        for (text, expected) in [
            ("plain-1.2/x", "plain-1.2/x"),
            ("", "\"\""),
            ("two words", "\"two words\""),
            ("a\n\t\"b\"\\", "\"a\\n\\t\\\"b\\\"\\\\\""),
            ("é", "\"é\""),
            ("\u{1b}[2J", "\"\\x1b[2J\""),
            ("a\u{a0}b", "\"a\\u00a0b\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
