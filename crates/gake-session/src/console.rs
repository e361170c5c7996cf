//! All access to the standard streams.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::ValueEnum;
use gake_judge::Verdict;
use gake_text::foreign;
use gake_text::redact::{Redacted, Redactor, SecretNames};
use owo_colors::OwoColorize;

use crate::exit::{Exit, Failure};
use crate::status_line::{self, StatusLine};

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Not at all
    Never,
}

/// Standard output and error, and whether they are terminals and take colours.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    colour_out: bool,
    colour_err: bool,
    live: bool,
    out_is_terminal: bool,
}

/// The environment's choice of colours: `NO_COLOR`, `CLICOLOR_FORCE`, `TERM=dumb`, `CLICOLOR=0`,
/// in this order. With `None`, terminals get colours.
fn colour(variable: impl Fn(&str) -> Option<String>) -> Option<bool> {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    if set("NO_COLOR") {
        return Some(false);
    }
    if variable("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0") {
        return Some(true);
    }
    let none = variable("TERM").is_some_and(|term| term == "dumb")
        || variable("CLICOLOR").is_some_and(|value| value == "0");
    none.then_some(false)
}

/// Escapes control sequences and invisible characters, which foreign text may contain.
fn safe(text: &str, coloured: bool) -> Cow<'_, str> {
    if coloured { foreign::coloured_lines(text) } else { foreign::lines(text) }
}

fn of_script(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal { foreign::coloured_lines(text) } else { foreign::without_controls(text) }
}

/// Hides passwords and secret parameters of the URLs in an error or warning: many quote what they
/// refuse.
fn without_secrets(text: &str) -> Redacted {
    Redactor::masking(SecretNames::default()).urls(text)
}

/// Indents lines after the first, so that foreign text cannot imitate a message of ours.
fn continued(text: &str) -> Cow<'_, str> {
    if text.contains('\n') { text.replace('\n', "\n  ").into() } else { text.into() }
}

/// Standard input.
pub fn stdin() -> io::Stdin {
    io::stdin()
}

/// Writes panic messages through the console: they may contain foreign text.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let trace = std::backtrace::Backtrace::capture();
        let has_trace = trace.status() == std::backtrace::BacktraceStatus::Captured;
        let trace = if has_trace { format!("\n{trace}") } else { String::new() };
        Console::new().note(&format!("thread '{name}' {panic}{trace}"));
    }));
}

/// Escapes control sequences in what is written to a terminal.
struct EscapingWriter<W> {
    out: W,
    /// The start of an incomplete character.
    held: Vec<u8>,
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        // An incomplete character at the end waits for its remaining bytes.
        let whole = match std::str::from_utf8(&self.held) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.held.len(),
        };
        let text: Vec<u8> = self.held.drain(..whole).collect();
        self.out.write_all(foreign::lines(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Console {
    /// Detects terminals, and colours from the environment.
    pub fn new() -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let colour = colour(|name| std::env::var(name).ok());
        Self {
            colour_out: colour.unwrap_or(out),
            colour_err: colour.unwrap_or(err),
            live: err,
            out_is_terminal: out,
        }
    }

    /// Overrides the detected colours.
    pub fn with(self, colour: Color) -> Self {
        let always = match colour {
            Color::Auto => return self,
            Color::Always => true,
            Color::Never => false,
        };
        Self { colour_out: always, colour_err: always, ..self }
    }

    /// Whether standard output takes colours.
    pub fn colour_out(&self) -> bool {
        self.colour_out
    }

    /// Whether standard error takes colours.
    pub fn colour_err(&self) -> bool {
        self.colour_err
    }

    /// The terminal on standard error, for a full-screen view; `None` if it is not a terminal.
    pub fn screen(&self) -> Option<io::Stderr> {
        self.live.then(io::stderr)
    }

    /// Whether standard error is a terminal.
    pub fn live(&self) -> bool {
        self.live
    }

    /// Writes the result to standard output.
    ///
    /// # Errors
    /// When the output is closed or full.
    pub fn result(&self, text: &str) -> Result<(), Failure> {
        Self::write_result(&safe(text, self.colour_out))
    }

    /// Writes a script's output without control characters. Zero-width characters stay, since emoji
    /// contain them, except on a terminal, where both are escaped.
    ///
    /// # Errors
    /// When the output is closed or full.
    pub fn script_result(&self, text: &str) -> Result<(), Failure> {
        Self::write_result(&of_script(text, self.out_is_terminal))
    }

    /// Writes a script's output to standard error, without a line feed.
    pub fn script_plain(&self, text: &str) {
        let text = of_script(text, self.live);
        // An error could not be reported anywhere else.
        let _ = status_line::suspended(|| io::stderr().write_all(text.as_bytes()));
    }

    /// Writes a line of a script to standard error.
    pub fn script_note(&self, text: &str) {
        self.script_plain(&format!("{text}\n"));
    }

    fn write_result(text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match status_line::suspended(|| out.write_all(text.as_bytes()).and_then(|()| out.flush())) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
            Err(error) => Err(Failure::could_not(format!("the result cannot be written: {error}"))),
        }
    }

    /// Standard output for results that are written during the run, and for binary formats. On a
    /// terminal, control characters are escaped.
    pub fn output(&self) -> Box<dyn Write + Send> {
        let out = io::BufWriter::new(io::stdout());
        if self.out_is_terminal {
            Box::new(EscapingWriter { out, held: Vec::new() })
        } else {
            Box::new(out)
        }
    }

    /// Whether standard output is a terminal.
    pub fn out_is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    /// Columns and lines of the terminal on standard output.
    pub fn window(&self) -> Option<(usize, usize)> {
        let (lines, columns) =
            self.out_is_terminal.then(|| ::console::Term::stdout().size_checked()).flatten()?;
        (columns > 0 && lines > 0).then_some((columns.into(), lines.into()))
    }

    /// Clears the terminal on standard output.
    pub fn clear(&self) {
        if self.colour_out && self.out_is_terminal {
            // If this fails, the next result is written below the last.
            let _ = io::stdout().write_all(b"\x1b[2J\x1b[H");
        }
    }

    /// Writes to standard error, without a line feed.
    pub fn plain(&self, text: &str) {
        // An error could not be reported anywhere else.
        let _ = status_line::suspended(|| {
            io::stderr().write_all(safe(text, self.colour_err).as_bytes())
        });
    }

    /// Writes a line to standard error.
    pub fn note(&self, text: &str) {
        // An error could not be reported anywhere else.
        let _ =
            status_line::suspended(|| writeln!(io::stderr(), "{}", safe(text, self.colour_err)));
    }

    /// Prints clap's message: help and versions to standard output, errors to standard error.
    pub fn clap(&self, error: &clap::Error) {
        let coloured = if error.use_stderr() { self.colour_err } else { self.colour_out };
        let text = error.render();
        let text = if coloured { text.ansi().to_string() } else { text.to_string() };
        if error.use_stderr() {
            self.plain(&without_secrets(&text));
        } else {
            // A closed pipe is not an error.
            let _ = self.result(&text);
        }
    }

    /// Prints why a command failed.
    pub fn failure(&self, failure: &Failure) {
        match failure {
            Failure::Clap(error) => self.clap(error),
            Failure::OutputClosed => {}
            Failure::Usage(_) | Failure::CouldNot(_) => self.error(&failure.to_string()),
        }
    }

    /// The exit of a verdict. If nothing succeeded, this also prints an error, since a script may
    /// read only that.
    pub fn conclude(&self, verdict: &Verdict) -> Exit {
        if let Some(nothing) = &verdict.nothing_ok {
            self.error(&format!("nothing succeeded: {}", nothing.cause));
        }
        Exit::of(verdict)
    }

    /// A status line with a bar if the length is known; `None` unless standard error is a terminal.
    pub fn status_line(&self, length: Option<Duration>) -> Option<StatusLine> {
        self.live.then(|| StatusLine::start(length))
    }

    /// A status line that calls `text` each time it is drawn.
    pub fn status_line_with(
        &self,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Option<StatusLine> {
        self.live.then(|| StatusLine::with_text(text))
    }

    /// Writes a warning to standard error.
    pub fn warn(&self, text: &str) {
        let text = without_secrets(text);
        let text = continued(&text);
        if self.colour_err {
            self.note(&format!("{} {text}", "warning:".yellow().bold()));
        } else {
            self.note(&format!("warning: {text}"));
        }
    }

    /// Writes an error to standard error.
    pub fn error(&self, text: &str) {
        let text = without_secrets(text);
        let text = continued(&text);
        if self.colour_err {
            self.note(&format!("{} {text}", "error:".red().bold()));
        } else {
            self.note(&format!("error: {text}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_hide_the_secrets_of_urls() {
        for text in [
            "invalid value 'http://me:s3cret@h:99999/' for TARGET",
            "mysql://root:s3cret@db/x: connection refused",
            "--watch: prometheus:https://h/m?token=s3cret\nis not a source",
            "\u{1b}[33mhttps://s3cret@h/a.js\u{1b}[0m",
        ] {
            let shown = without_secrets(text);
            assert!(!shown.contains("s3cret"), "{shown}");
            assert_eq!(shown.split_whitespace().count(), text.split_whitespace().count());
        }
        let plain = "http://h:80/?page=2 was refused, password: asked";
        assert_eq!(without_secrets(plain), plain);
    }

    #[test]
    fn control_sequences_are_escaped_on_a_terminal() {
        let mut shown = EscapingWriter { out: Vec::new(), held: Vec::new() };
        for byte in "é\u{1b}]0;x\u{7}\u{9b}2J\n".as_bytes() {
            shown.write_all(&[*byte]).unwrap();
        }
        shown.write_all(b"\xff\x1b").unwrap();
        let text = String::from_utf8(shown.out).unwrap();
        assert_eq!(text, "é\\u001b]0;x\\u0007\\u009b2J\n\u{fffd}\\u001b");
    }

    #[test]
    fn the_environment_decides_on_colours() {
        let of = |set: &[(&str, &str)]| {
            colour(|name| set.iter().find(|one| one.0 == name).map(|one| one.1.to_owned()))
        };
        for (set, expected) in [
            (&[][..], None),
            (&[("NO_COLOR", "")], None),
            (&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], Some(false)),
            (&[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], Some(true)),
            (&[("CLICOLOR_FORCE", "0")], None),
            (&[("CLICOLOR", "0")], Some(false)),
            (&[("TERM", "dumb")], Some(false)),
        ] {
            assert_eq!(of(set), expected, "{set:?}");
        }
    }

    #[test]
    fn only_our_colours_pass() {
        assert_eq!(safe("\u{1b}[31ma\u{1b}[2J", true), "\u{1b}[31ma\\u001b[2J");
        assert_eq!(safe("\u{1b}[31ma", false), "\\u001b[31ma");
    }

    #[test]
    fn only_a_message_of_ours_begins_a_line_as_one() {
        assert_eq!(continued("a\nerror: b\n\nwarning: c"), "a\n  error: b\n  \n  warning: c");
    }
}
