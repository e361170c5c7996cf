//! Exit codes, and failures that lead to them.

use std::fmt::{Display, Formatter};

use gake_judge::{Conclusion, Verdict};

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and every objective met.
    Done,
    /// The command could not be carried out.
    CouldNot,
    /// Bad usage.
    Usage,
    /// The run is invalid.
    Invalid,
    /// An objective failed.
    ObjectiveFailed,
    /// Interrupted, after the summary.
    Interrupted,
    /// The exit code of the tool that gake behaves as.
    Tool(u8),
}

impl Exit {
    /// The exit of a verdict.
    pub fn of(verdict: &Verdict) -> Self {
        match verdict.conclusion() {
            Conclusion::Done => Self::Done,
            Conclusion::NothingOk => Self::CouldNot,
            Conclusion::Invalid => Self::Invalid,
            Conclusion::ObjectiveFailed => Self::ObjectiveFailed,
        }
    }

    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::CouldNot => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::ObjectiveFailed => 99,
            Self::Interrupted => 130,
            Self::Tool(code) => code,
        }
    }
}

/// Why a command ended without a result.
#[derive(Debug)]
pub enum Failure {
    /// The command line or spec is not valid.
    Usage(String),
    /// The environment prevents it.
    CouldNot(anyhow::Error),
    /// Help, version or a usage error of clap, with its own text and code.
    Clap(Box<clap::Error>),
    /// The reader of standard output has closed it.
    OutputClosed,
}

impl Failure {
    /// A usage error.
    pub fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// An error of the environment.
    pub fn could_not(message: impl Display) -> Self {
        Self::CouldNot(anyhow::anyhow!("{message}"))
    }

    /// Signal handlers cannot be installed.
    pub fn signals(error: std::io::Error) -> Self {
        Self::could_not(format!("signals cannot be watched: {error}"))
    }

    /// How a command that fails so ends.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::CouldNot(_) => Exit::CouldNot,
            Self::Clap(error) if error.use_stderr() => Exit::Usage,
            Self::Clap(_) | Self::OutputClosed => Exit::Done,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::CouldNot(error) => write!(f, "{error:#}"),
            Self::Clap(error) => write!(f, "{error}"),
            Self::OutputClosed => f.write_str("the output is closed"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::CouldNot(error)
    }
}

#[cfg(test)]
#[path = "../../gake-run/tests/run/orders.rs"]
mod orders;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_by_tag_decide_the_exit_code_of_a_programs_own_work() {
        let code = |objective: &str| {
            let summary = orders::judged(&orders::spec(objective)).unwrap();
            Exit::of(&summary.verdict).code()
        };
        assert_eq!(code("checks{check:paid}>=75%"), 0);
        assert_eq!(code("checks{check:paid}>80%"), 99);
    }
}
