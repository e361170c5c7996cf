//! k6's exit codes, and how its log reports errors.

use gake_k6::test::{LogLevel, Test};
use gake_k6::user::script_user::LoadError;
use gake_k6::user::vu::VuStage;
use gake_run::script::ScriptRunError;
use gake_session::Exit;

use super::ANY;

/// What the log adds to an exception of the script.
pub(super) const EXCEPTION_FIELDS: [(&str, &str); 2] =
    [("hint", "script exception"), ("source", "stacktrace")];

/// k6's advice when `setup` took too long.
const SETUP_HINT: &str = "You can increase the time limit via the setupTimeout option";

/// k6's advice when `teardown` took too long.
const TEARDOWN_HINT: &str = "You can increase the time limit via the teardownTimeout option";

/// k6's exit codes.
pub(super) mod code {
    use gake_session::Exit;

    pub const THRESHOLDS: Exit = Exit::Tool(99);
    pub const SETUP_LATE: Exit = Exit::Tool(100);
    pub const TEARDOWN_LATE: Exit = Exit::Tool(101);
    pub const LATE: Exit = Exit::Tool(102);
    pub const STOPPED: Exit = Exit::Tool(103);
    pub const INVALID: Exit = Exit::Tool(104);
    pub const INTERRUPTED: Exit = Exit::Tool(105);
    pub const EXCEPTION: Exit = Exit::Tool(107);
    pub const ABORTED: Exit = Exit::Tool(108);
    pub const FAILED: Exit = Exit::Tool(110);
}

/// Logs why a script cannot be run, or was interrupted.
pub(super) fn report(test: &Test, error: &ScriptRunError) {
    let fields: &[(&str, &str)] = match error {
        ScriptRunError::Load(LoadError::Rejected(_) | LoadError::Options(_)) => &[],
        ScriptRunError::Load(_) | ScriptRunError::Thrown { .. } => &EXCEPTION_FIELDS,
        ScriptRunError::Late { stage: VuStage::Setup, .. } => &[("hint", SETUP_HINT)],
        ScriptRunError::Late { stage: VuStage::Teardown, .. } => &[("hint", TEARDOWN_HINT)],
        _ => &[],
    };
    test.log(LogLevel::Error, &error.with_stack(), fields);
}

/// k6's exit code for an error.
pub(super) fn exit_of(error: &ScriptRunError) -> Exit {
    match error {
        ScriptRunError::Load(
            LoadError::NoMemory(_) | LoadError::Options(_) | LoadError::Rejected(_),
        )
        | ScriptRunError::Run(_)
        | ScriptRunError::SetupData(_)
        | ScriptRunError::Rejected(_) => ANY,
        ScriptRunError::Load(LoadError::Aborted(_)) => code::ABORTED,
        ScriptRunError::Load(_) | ScriptRunError::Thrown { .. } => code::EXCEPTION,
        ScriptRunError::Late { stage: VuStage::Setup, .. } => code::SETUP_LATE,
        ScriptRunError::Late { stage: VuStage::Teardown, .. } => code::TEARDOWN_LATE,
        ScriptRunError::Late { .. } => code::LATE,
        ScriptRunError::NoFunction(_) => code::INVALID,
    }
}
