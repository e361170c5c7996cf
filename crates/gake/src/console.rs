//! The door to the standard streams.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use gake_core::foreign;
use owo_colors::OwoColorize;

use crate::exit::Failure;

/// Standard output and error, and what they can do.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    colour_out: bool,
    colour_err: bool,
    live: bool,
    out_is_terminal: bool,
}

/// What may be written to a stream that a terminal may show: whatever a text says of others holds
/// nothing that a terminal obeys, or that its reader does not see.
fn safe(text: &str, coloured: bool) -> Cow<'_, str> {
    if coloured { foreign::coloured_lines(text) } else { foreign::lines(text) }
}

/// Bytes on their way to a terminal.
struct Shown<W> {
    out: W,
    /// The start of a character.
    held: Vec<u8>,
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        // A character is four bytes at most: fewer at the end may be the start of one.
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

impl Console {
    /// Looks at the streams and at `NO_COLOR`.
    pub fn new() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour_out: !plain && io::stdout().is_terminal(),
            colour_err: !plain && io::stderr().is_terminal(),
            live: io::stderr().is_terminal(),
            out_is_terminal: io::stdout().is_terminal(),
        }
    }

    /// Whether the result may be coloured.
    pub fn colour_out(&self) -> bool {
        self.colour_out
    }

    /// Whether someone watches standard error.
    pub fn live(&self) -> bool {
        self.live
    }

    /// Writes the result to standard output.
    ///
    /// # Errors
    /// When the output is closed or full.
    pub fn result(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let text = safe(text, self.colour_out);
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
            Err(error) => Err(Failure::could_not(format!("the result cannot be written: {error}"))),
        }
    }

    /// Standard output for a result that is written while the run goes on, and for formats of bytes.
    /// On a terminal its controls are escapes too.
    pub fn output(&self) -> Box<dyn Write + Send> {
        let out = io::BufWriter::new(io::stdout());
        if self.out_is_terminal { Box::new(Shown { out, held: Vec::new() }) } else { Box::new(out) }
    }

    /// Whether people read standard output.
    pub fn out_is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    /// Empties the terminal that shows the result, if one does.
    pub fn clear(&self) {
        if self.colour_out {
            // What cannot be emptied is written below.
            let _ = io::stdout().write_all(b"\x1b[2J\x1b[H");
        }
    }

    /// Writes to standard error without a line's end.
    pub fn plain(&self, text: &str) {
        // Nobody is left to tell when this fails.
        let _ = io::stderr().write_all(safe(text, self.colour_err).as_bytes());
    }

    /// Tells the user something that is not the result.
    pub fn note(&self, text: &str) {
        // Nobody is left to tell when this fails.
        let _ = writeln!(io::stderr(), "{}", safe(text, self.colour_err));
    }

    /// A warning.
    pub fn warn(&self, text: &str) {
        if self.colour_err {
            self.note(&format!("{} {text}", "warning:".yellow().bold()));
        } else {
            self.note(&format!("warning: {text}"));
        }
    }

    /// An error.
    pub fn error(&self, text: &str) {
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
    fn a_terminal_is_shown_what_bytes_would_make_it_do() {
        let mut shown = Shown { out: Vec::new(), held: Vec::new() };
        for byte in "é\u{1b}]0;x\u{7}\u{9b}2J\n".as_bytes() {
            shown.write_all(&[*byte]).unwrap();
        }
        shown.write_all(b"\xff\x1b").unwrap();
        let text = String::from_utf8(shown.out).unwrap();
        assert_eq!(text, "é\\u001b]0;x\\u0007\\u009b2J\n\u{fffd}\\u001b");
    }

    #[test]
    fn only_our_colours_pass() {
        assert_eq!(safe("\u{1b}[31ma\u{1b}[2J", true), "\u{1b}[31ma\\u001b[2J");
        assert_eq!(safe("\u{1b}[31ma", false), "\\u001b[31ma");
    }
}
