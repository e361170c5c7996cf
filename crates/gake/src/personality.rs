//! gake as another tool (`gake as hey ...`, or by the name `hey`), where this build can.

#[cfg(not(feature = "compat"))]
use absent as personalities;
#[cfg(feature = "compat")]
use gake_compat as personalities;

pub use personalities::{attach, run};

/// In place of the crate that this build lacks.
#[cfg(not(feature = "compat"))]
mod absent {
    use std::ffi::OsString;

    use gake_fleet::{Orphan, OrphanScript};
    use gake_session::options::AttachArgs;
    use gake_session::{Console, Exit, Failure};

    /// No command line makes this build behave as another tool.
    pub fn run(_: &[OsString], _: &Console) -> Option<Result<Exit, Failure>> {
        None
    }

    /// Refuses to continue the run of a script that `gake as k6` started.
    ///
    /// # Errors
    /// Always.
    pub fn attach(
        _: Orphan,
        _: OrphanScript,
        args: &AttachArgs,
        _: &Console,
    ) -> Result<Exit, Failure> {
        let why = crate::personality::ABSENT;
        Err(Failure::could_not(format!("`gake as k6` started the run {}: {why}", args.run)))
    }
}

/// Why a build without the feature behaves as no other tool.
pub const ABSENT: &str =
    "this build has no personalities: it was made without the feature `compat`";
