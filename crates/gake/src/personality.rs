//! gake as another tool (`gake as hey ...`, or by the name `hey`), where this build can.

#[cfg(not(feature = "compat"))]
use absent as personalities;
#[cfg(feature = "compat")]
use gake_compat as personalities;

#[cfg(feature = "fleet")]
pub use personalities::attach;
pub use personalities::run;

/// Replaces the crate that this build lacks.
#[cfg(not(feature = "compat"))]
mod absent {
    use std::ffi::OsString;
    use std::path::Path;

    use gake_session::{Console, Exit, Failure};

    use crate::cli::TOOL_NAMES;

    /// Refuses to run by the name of another tool.
    pub fn run(args: &[OsString], _: &Console) -> Option<Result<Exit, Failure>> {
        let name = Path::new(args.first()?).file_name()?.to_str()?;
        TOOL_NAMES.contains(&name).then(|| Err(Failure::usage(super::ABSENT)))
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
        let why = super::ABSENT;
        Err(Failure::could_not(format!("`gake as k6` started the run {}: {why}", args.run)))
    }
}

/// The error of a build without the feature.
pub const ABSENT: &str =
    "this build has no personalities: it was made without the feature `compat`";
