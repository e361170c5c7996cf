//! The log of a script, as k6 writes it: logfmt for programs, short lines for people.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gake_k6::test::{LogLevel, LogLine, ScriptLog};
use gake_text::redact::Redacted;

use crate::Console;

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScriptLogFormat {
    style: LogStyle,
    /// Whether times have nanoseconds.
    has_nanos: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LogStyle {
    /// logfmt for programs, short lines for people.
    #[default]
    Text,
    /// An object of JSON a line.
    Json,
    /// Only the messages.
    Raw,
}

impl ScriptLogFormat {
    /// The format for `--log-format` and `--log-ns-timestamps`. As in k6, any unknown name is text.
    pub fn named(name: Option<&str>, has_nanos: bool) -> Self {
        let style = match name {
            Some("json") => LogStyle::Json,
            Some("raw") => LogStyle::Raw,
            _ => LogStyle::Text,
        };
        Self { style, has_nanos }
    }

    fn written(self, line: &LogLine) -> String {
        match self.style {
            LogStyle::Text => logfmt(line, &self.now()),
            LogStyle::Json => json(line, &self.now()),
            LogStyle::Raw => line.message.clone().into_inner(),
        }
    }

    fn now(self) -> String {
        let now = jiff::Timestamp::now();
        match self.has_nanos {
            true => now.to_string(),
            false => now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }
    }
}

enum LogDestination {
    Error,
    Result,
    File(Mutex<File>),
    Nowhere,
}

/// The log of a run. `output` is the value of `--log-output`.
///
/// # Errors
/// When it is not valid, or its file cannot be created.
pub fn log(
    console: &Console,
    output: Option<&str>,
    format: ScriptLogFormat,
    verbose: bool,
) -> Result<ScriptLog, String> {
    let destination = match output {
        None | Some("stderr") => LogDestination::Error,
        Some("stdout") => LogDestination::Result,
        Some("none") => LogDestination::Nowhere,
        Some(other) => {
            let path = other.strip_prefix("file=").ok_or_else(|| {
                format!(
                    "--log-output {other} is not supported: give stderr, stdout, none or \
                     file=PATH"
                )
            })?;
            let file = gake_files::create(path.as_ref(), gake_files::Access::Owner);
            LogDestination::File(Mutex::new(file.map_err(|error| format!("{path}: {error}"))?))
        }
    };
    let (console, began) = (*console, Instant::now());
    Ok(Arc::new(move |line: &LogLine| {
        if line.level == LogLevel::Debug && !verbose {
            return;
        }
        match &destination {
            LogDestination::Nowhere => {}
            LogDestination::Error if console.live() && format.style == LogStyle::Text => {
                console.note(&for_people(line, began));
            }
            LogDestination::Error => console.script_note(&format.written(line)),
            // A closed pipe is not an error.
            LogDestination::Result => {
                drop(console.script_result(&format!("{}\n", format.written(line))))
            }
            LogDestination::File(file) => write(file, &format.written(line)),
        }
    }))
}

/// The log of a search: only the first error of an iteration, since the others repeat it.
#[must_use]
pub fn first_error(console: &Console) -> ScriptLog {
    let (console, is_shown) = (*console, AtomicBool::new(false));
    Arc::new(move |line: &LogLine| {
        if line.level == LogLevel::Error && !is_shown.swap(true, Relaxed) {
            console.warn(&format!("an iteration failed: {}", line.message.trim_end()));
        }
    })
}

/// Writes lines of the script itself to the file at `path`, as `--console-output` does; the others
/// go to `others`.
///
/// # Errors
/// When the file cannot be opened.
pub fn with_console_file(
    others: ScriptLog,
    path: &str,
    format: ScriptLogFormat,
) -> Result<ScriptLog, String> {
    let file = gake_files::append(path.as_ref(), gake_files::Access::Owner);
    let file = Mutex::new(file.map_err(|error| format!("open {path}: {error}"))?);
    let is_source = |(key, value): &(&str, Redacted)| *key == SOURCE && *value == "console";
    Ok(Arc::new(move |line: &LogLine| {
        if !line.fields.iter().any(is_source) {
            return others(line);
        }
        let mut line = line.clone();
        line.fields.retain(|(key, _)| *key != SOURCE);
        write(&file, &format.written(&line));
    }))
}

/// The field with the origin of a line.
const SOURCE: &str = "source";

fn write(file: &Mutex<File>, line: &str) {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    // An error could not be reported anywhere else.
    let _ = writeln!(file, "{line}");
}

fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
    }
}

/// With sorted keys, as in k6.
fn json(line: &LogLine, now: &str) -> String {
    let fields = line.fields.iter().map(|(key, value)| (*key, &**value));
    let level = level(line.level);
    let own = [("level", level), ("msg", &*line.message), ("time", now)];
    let all: BTreeMap<&str, &str> = fields.chain(own).collect();
    // Strings: this cannot fail.
    serde_json::to_string(&all).unwrap_or_default()
}

fn logfmt(line: &LogLine, now: &str) -> String {
    let mut text = format!("time=\"{now}\" level={}", level(line.level));
    // As in k6, an empty message is left out.
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
    let mut text = format!("{level}[{:04}] {:<45}", began.elapsed().as_secs(), &*line.message);
    for (key, value) in &line.fields {
        text += &format!(" {key}={}", quoted(value));
    }
    text
}

/// A logfmt value, quoted unless it is plain.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/@^+".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\x07' => quoted += "\\a",
            '\x08' => quoted += "\\b",
            '\x0c' => quoted += "\\f",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            '\x0b' => quoted += "\\v",
            c if c.is_ascii_control() => quoted += &format!("\\x{:02x}", c as u32),
            c if is_printed(c) => quoted.push(c),
            c if (c as u32) < 0x1_0000 => quoted += &format!("\\u{:04x}", c as u32),
            c => quoted += &format!("\\U{:08x}", c as u32),
        }
    }
    quoted.push('"');
    quoted
}

/// Go's `unicode.IsPrint`: no controls, blanks other than the space, format characters or private
/// use.
fn is_printed(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let is_format = matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}'
        | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}');
    let is_private =
        matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..);
    !(c.is_control() || c.is_whitespace() || is_format || is_private)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_requested_format() {
        let fields = vec![("source", Redacted::plain("console"))];
        let line =
            LogLine { level: LogLevel::Warning, message: Redacted::plain("a \"b\""), fields };
        assert_eq!(ScriptLogFormat::named(Some("raw"), false).written(&line), "a \"b\"");
        let json = ScriptLogFormat::named(Some("json"), false).written(&line);
        let start = r#"{"level":"warning","msg":"a \"b\"","source":"console","time":""#;
        assert!(json.starts_with(start), "{json}");
        let text = ScriptLogFormat::named(Some("other"), true).written(&line);
        let seconds = "time=\"2026-01-01T00:00:00".len();
        let (start, rest) = text.split_at(seconds);
        assert!(start.starts_with("time=\"2") && rest.starts_with('.'), "{text}");
        assert!(text.ends_with(r#" level=warning msg="a \"b\"" source=console"#), "{text}");
    }

    #[test]
    fn values_are_quoted_as_go_does() {
        for (text, expected) in [
            ("plain-1.2/x", "plain-1.2/x"),
            ("", ""),
            ("two words", "\"two words\""),
            ("a\n\t\"b\"\\", "\"a\\n\\t\\\"b\\\"\\\\\""),
            ("é", "\"é\""),
            ("\u{1b}[2J", "\"\\x1b[2J\""),
            ("a\u{a0}b", "\"a\\u00a0b\""),
            ("a\u{7}\u{8}\u{b}\u{c}", "\"a\\a\\b\\v\\f\""),
            (
                "\u{2714}\u{fe0f} \u{1f468}\u{200d}\u{1f4bb}",
                "\"\u{2714}\u{fe0f} \u{1f468}\\u200d\u{1f4bb}\"",
            ),
            ("\u{feff}\u{ad}\u{e0041}", "\"\\ufeff\\u00ad\\U000e0041\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
