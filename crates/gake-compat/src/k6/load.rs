//! Loading a script with the flags and the environment of k6.

use std::sync::Arc;

use gake_k6::test::{LogLevel, LogLine, ScriptLog};
use gake_run::script::{ConfiguredScript, ScriptRefusal, ScriptSettings, ScriptSource};
use gake_session::script::{environment, source};
use gake_session::{Console, Exit};

use super::ANY;
use super::exit::{code, exit_of};
use super::flags::RunFlags;

/// Why there is no run.
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) exit: Exit,
    /// Where that is logged, once there is a log.
    pub(super) log: Option<ScriptLog>,
}

impl Refused {
    /// The error of a command that has no log.
    pub(super) fn into_error(self) -> (String, Exit) {
        (self.why, self.exit)
    }

    /// Tells why, where that belongs; the exit code.
    pub(super) fn tell(self, console: &Console) -> Exit {
        let Self { why, exit, log } = self;
        match log {
            Some(log) => {
                let hint = ("hint", "script exception".to_owned());
                let fields = if exit == code::EXCEPTION { vec![hint] } else { Vec::new() };
                log(&LogLine { level: LogLevel::Error, message: why, fields });
            }
            None => console.error(&why),
        }
        exit
    }
}

/// Loads the script, and joins the options of all tiers.
pub(super) fn load(flags: &RunFlags, log: ScriptLog) -> Result<ConfiguredScript, Refused> {
    match source(&flags.script) {
        Ok(source) => {
            let settings = ScriptSettings { system: environment(), ..flags.settings.clone() };
            load_source(source, &settings, log)
        }
        Err(why) => Err(Refused { why, exit: ANY, log: Some(log) }),
    }
}

/// The same for a script that is read already.
pub(super) fn load_source(
    source: ScriptSource,
    settings: &ScriptSettings,
    log: ScriptLog,
) -> Result<ConfiguredScript, Refused> {
    let loaded = ConfiguredScript::load(source, settings, Arc::clone(&log));
    loaded.map_err(|refusal| {
        let exit = match &refusal {
            ScriptRefusal::Load(error) => exit_of(error),
            ScriptRefusal::Options(_) => code::INVALID,
            ScriptRefusal::Other(_) => ANY,
        };
        Refused { why: refusal.with_stack(), exit, log: Some(log) }
    })
}
