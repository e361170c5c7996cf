//! Exit codes, and failures that lead to them.

use std::fmt::Display;

use crate::console::Console;

/// What the shell is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, and every objective met.
    Done = 0,
    /// It could not be done.
    CouldNot = 1,
    /// Bad usage.
    Usage = 2,
    /// The run is invalid.
    Invalid = 3,
    /// An objective failed.
    ObjectiveFailed = 99,
    /// Interrupted, after the summary.
    Interrupted = 130,
}

/// Why a command ended without a result.
#[derive(Debug)]
pub enum Failure {
    /// The command line cannot be what was meant.
    Usage(String),
    /// The world is in the way.
    CouldNot(anyhow::Error),
    /// clap's own: help, version or a usage error, with its own text and code.
    Clap(Box<clap::Error>),
    /// Nobody reads our output any more; there is no one to tell.
    OutputClosed,
}

impl Failure {
    /// A usage error.
    pub fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// Something could not be done.
    pub fn could_not(message: impl Display) -> Self {
        Self::CouldNot(anyhow::anyhow!("{message}"))
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::CouldNot(_) => Exit::CouldNot,
            Self::Clap(error) if error.use_stderr() => Exit::Usage,
            Self::Clap(_) | Self::OutputClosed => Exit::Done,
        }
    }

    /// Says it.
    pub fn show(&self, console: &Console) {
        match self {
            Self::Usage(message) => console.error(message),
            Self::CouldNot(error) => console.error(&format!("{error:#}")),
            Self::Clap(error) => {
                // To stdout or stderr as it belongs; a closed pipe is no news.
                let _ = error.print();
            }
            Self::OutputClosed => {}
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::CouldNot(error)
    }
}
