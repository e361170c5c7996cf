//! The door to the standard streams.

use std::io::{self, IsTerminal, Write};

use owo_colors::OwoColorize;

use crate::exit::Failure;

/// Standard output and error, and what they can do.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    colour_out: bool,
    colour_err: bool,
    live: bool,
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
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
            Err(error) => Err(Failure::could_not(format!("the result cannot be written: {error}"))),
        }
    }

    /// Standard output, for a result that is written while the run goes on.
    pub fn output(&self) -> impl Write + Send + use<> {
        io::BufWriter::new(io::stdout())
    }

    /// Writes to standard error as it is.
    pub fn plain(&self, text: &str) {
        // Nobody is left to tell when this fails.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Tells the user something that is not the result.
    pub fn note(&self, text: &str) {
        // Nobody is left to tell when this fails.
        let _ = writeln!(io::stderr(), "{text}");
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
