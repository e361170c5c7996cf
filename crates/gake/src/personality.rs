//! gake as another tool (`gake as hey ...`, or by the name `hey`), where this build can.

#[cfg(not(feature = "compat"))]
use absent as personalities;
#[cfg(feature = "compat")]
use gake_compat as personalities;

#[cfg(feature = "fleet")]
pub use personalities::attach;
pub use personalities::run;

/// In place of the crate that this build lacks.
#[cfg(not(feature = "compat"))]
mod absent {
    use std::ffi::OsString;

    use gake_session::{Console, Exit, Failure};

    /// No command line makes this build behave as another tool.
    pub fn run(_: &[OsString], _: &Console) -> Option<Result<Exit, Failure>> {
        None
    }

    /// Refuses to continue the run of a script that `gake as k6` started.
    ///
    /// # Errors
    /// Always.
    #[cfg(feature = "fleet")]
    pub fn attach(
        _: gake_fleet::Orphan,
        _: gake_fleet::OrphanScript,
        args: &gake_session::options::AttachArgs,
        _: &Console,
    ) -> Result<Exit, Failure> {
        let why = crate::personality::ABSENT;
        Err(Failure::could_not(format!("`gake as k6` started the run {}: {why}", args.run)))
    }
}

/// Why a build without the feature behaves as no other tool.
pub const ABSENT: &str =
    "this build has no personalities: it was made without the feature `compat`";
