//! Loading a script with the flags and the environment of k6.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use gake_k6::test::ScriptLog;
use gake_k6::user::script_user::LoadError;
use gake_run::script::{
    ConfiguredScript, ScriptRefusal, ScriptRunError, ScriptSettings, ScriptSource,
};
use gake_session::Exit;
use gake_session::run::writes::WRITES_BY;
use gake_session::script::module_folder;

use super::ANY;
use super::flags::RunFlags;
use super::life::{code, exit_of};

/// How k6 begins to say that a script is no program.
pub(super) const NOT_INITIALIZED: &str = "could not initialize";

/// What k6 says of a script that is no program: it imports what is not there, or its syntax is
/// wrong.
fn not_initialized(error: &LoadError) -> Option<String> {
    match error {
        LoadError::Unresolved(why) => Some(why.clone()),
        LoadError::Syntax(exception) => {
            let (file, at) = exception.place.rsplit_once(".js:")?;
            let why = exception.message.strip_prefix("SyntaxError: ")?;
            Some(format!("{file}.js: Line {at} {}", syntax_error(why)))
        }
        _ => None,
    }
}

/// What k6 says where a program's syntax is wrong.
fn syntax_error(why: &str) -> Cow<'_, str> {
    let token = ["unexpected token in expression: ", "Unexpected token "];
    let token = token.into_iter().find_map(|begin| why.strip_prefix(begin));
    match token.map(|token| token.trim_matches('\'')) {
        Some("") => "Unexpected end of input".into(),
        Some(token) => format!("Unexpected token {token}").into(),
        None if why.starts_with("Unexpected identifier ") => "Unexpected identifier".into(),
        None => why.into(),
    }
}

/// Why there is no run.
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) exit: Exit,
    /// Where that is logged, once there is a log.
    pub(super) log: Option<ScriptLog>,
}

/// Loads the script, and joins the options of all tiers.
pub(super) fn load(flags: &RunFlags, log: ScriptLog) -> Result<ConfiguredScript, Refused> {
    let system = gake_session::script::environment();
    let mut stdin = io::stdin().lock();
    match ScriptSource::read(&flags.script, module_folder(), Some(&mut stdin)) {
        Ok(source) => load_source(source, flags, &system, log),
        Err(why) => Err(Refused { why, exit: ANY, log: Some(log) }),
    }
}

/// The same for a script that is read already, in an environment.
pub(super) fn load_source(
    source: ScriptSource,
    flags: &RunFlags,
    system: &BTreeMap<String, String>,
    log: ScriptLog,
) -> Result<ConfiguredScript, Refused> {
    let settings = ScriptSettings {
        options: flags.options.clone(),
        system: system.clone(),
        shows_system: flags.system_environment,
        variables: flags.environment.clone(),
        config: flags.config.clone(),
        secret_sources: flags.secret_sources.clone(),
        no_thresholds: flags.no_thresholds,
        seed: flags.seed,
        waits: flags.is_open_loop,
        max_series: flags.max_series,
        body_memory: flags.body_memory,
        failed_bodies: flags.body_errors,
        profile: flags.script_profile,
        keys: flags.reconcile.iter().map(|_| WRITES_BY.to_owned()).collect(),
    };
    let url = source.url();
    let loaded = ConfiguredScript::load(source, &settings, Arc::clone(&log));
    loaded.map_err(|refusal| {
        let exit = match &refusal {
            ScriptRefusal::Load(error) => exit_of(error),
            ScriptRefusal::Options(_) => code::INVALID,
            ScriptRefusal::Other(_) => ANY,
        };
        let why = match &refusal {
            ScriptRefusal::Load(ScriptRunError::Load(error)) => not_initialized(error),
            _ => None,
        };
        let why = why.map(|why| {
            let script = &flags.script;
            format!("{NOT_INITIALIZED} '{script}': could not load JS test '{url}': {why}")
        });
        Refused { why: why.unwrap_or_else(|| refusal.with_stack()), exit, log: Some(log) }
    })
}

#[cfg(test)]
mod tests {
    use super::syntax_error;

    #[test]
    fn tokens_are_told_without_quotes() {
        for (why, said) in [
            ("unexpected token in expression: ';'", "Unexpected token ;"),
            ("Unexpected token '{'", "Unexpected token {"),
            ("unexpected token in expression: ''", "Unexpected end of input"),
            ("Unexpected identifier 'c'", "Unexpected identifier"),
            ("Unexpected string", "Unexpected string"),
        ] {
            assert_eq!(syntax_error(why), said);
        }
    }
}
