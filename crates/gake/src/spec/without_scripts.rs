//! Replaces scripts as targets in a build without the feature `scripts`: they are refused.

use gake_core::spec::RunDraft;
use gake_session::script::ScriptLoader;
use gake_session::{Console, Failure};

use crate::cli::{FindArgs, RunArgs};

/// Accepts every file: this build converts none.
///
/// # Errors
/// Never.
pub fn refuse_other_tools(_: &std::path::Path) -> Result<(), Failure> {
    Ok(())
}

/// Refuses scripts, and the flags that are for them.
///
/// # Errors
/// When there is one.
pub fn load(
    draft: &mut RunDraft,
    args: &RunArgs,
    _: &Console,
) -> Result<Option<ScriptLoader>, Failure> {
    let flags = &args.script;
    let is_given = !flags.env.is_empty() || flags.script_profile || flags.body_memory.is_some();
    refuse(is_given || has_script(draft))
}

/// Refuses scripts.
///
/// # Errors
/// When there is one.
pub fn load_journey(
    draft: &mut RunDraft,
    _: &FindArgs,
    _: &Console,
) -> Result<Option<ScriptLoader>, Failure> {
    refuse(has_script(draft))
}

fn has_script(draft: &RunDraft) -> bool {
    draft.scenarios.iter().any(|scenario| scenario.script.is_some())
}

fn refuse(is_given: bool) -> Result<Option<ScriptLoader>, Failure> {
    match is_given {
        true => Err(Failure::usage(
            "this build runs no scripts: it was made without the feature `scripts`",
        )),
        false => Ok(None),
    }
}
