//! Loading a script with the flags and the environment of k6.

use std::borrow::Cow;
use std::sync::Arc;

use gake_k6::test::{LogLevel, LogLine, ScriptLog};
use gake_k6::user::script_user::LoadError;
use gake_run::script::{
    ConfiguredScript, ScriptRefusal, ScriptRunError, ScriptSettings, UnloadedScript,
};
use gake_session::script::{environment, source};
use gake_session::{Console, Exit};
use gake_text::redact::{Redacted, Redactor, SecretNames};

use super::ANY;
use super::exit::{EXCEPTION_FIELDS, code, exit_of};
use super::flags::RunFlags;

/// The start of k6's message for a script that is not a valid program.
const NOT_INITIALIZED: &str = "could not initialize";

/// The starts of syntax errors that k6 follows by their place.
const PLACED: [&str; 2] = ["Identifier '", "Missing initializer in const declaration"];

/// k6's message for a script that is not a valid program: an import does not exist, or its syntax
/// is wrong.
fn not_initialized(error: &LoadError) -> Option<String> {
    match error {
        LoadError::Unresolved(why) => Some(why.clone()),
        LoadError::Options(_) => Some(error.to_string()),
        LoadError::Syntax(exception) => {
            let why = exception.message.strip_prefix("SyntaxError: ")?;
            if let Some(name) = why.strip_prefix("duplicate exported name ") {
                return Some(format!(
                    "SyntaxError: Duplicate export name {}",
                    name.trim_matches('\'')
                ));
            }
            if why.starts_with("duplicate bounded name ") {
                return Some(exception.message.clone());
            }
            if why.starts_with("The requested module ") {
                // Of a module that a required one imports: an exception like others.
                return None;
            }
            if PLACED.iter().any(|start| why.starts_with(start)) {
                return Some(format!("{} at {}", exception.message, exception.place));
            }
            let (file, at) = exception.place.rsplit_once(".js:")?;
            Some(format!("{file}.js: Line {at} {}", syntax_error(why)))
        }
        _ => None,
    }
}

/// k6's message for a syntax error.
fn syntax_error(why: &str) -> Cow<'_, str> {
    let token = ["unexpected token in expression: ", "Unexpected token "];
    let token = token.into_iter().find_map(|begin| why.strip_prefix(begin));
    match token.map(|token| token.trim_matches('\'')) {
        Some("") => "Unexpected end of input".into(),
        Some(token) => format!("Unexpected token {token}").into(),
        None if why.starts_with("Unexpected identifier ") => "Unexpected identifier".into(),
        None if why == "return not in a function" => "Illegal return statement".into(),
        None => why.into(),
    }
}

pub(super) struct LoadRefusal {
    pub(super) why: String,
    pub(super) exit: Exit,
    /// The log for the message, once there is one.
    pub(super) log: Option<ScriptLog>,
}

impl LoadRefusal {
    /// The error of a command without a log.
    pub(super) fn into_error(self) -> (String, Exit) {
        (self.why, self.exit)
    }

    /// Reports the reason in the log or on standard error; returns the exit code.
    pub(super) fn report(self, console: &Console) -> Exit {
        let Self { why, exit, log } = self;
        match log {
            Some(log) => {
                let is_exception = exit == code::EXCEPTION && !why.starts_with(NOT_INITIALIZED);
                let fields = if is_exception { EXCEPTION_FIELDS.as_slice() } else { &[] };
                let fields =
                    fields.iter().map(|&(key, text)| (key, Redacted::plain(text))).collect();
                let message = Redactor::masking(SecretNames::default()).urls(&why);
                log(&LogLine { level: LogLevel::Error, message, fields });
            }
            None => console.error(&why),
        }
        exit
    }
}

/// Loads the script and merges all tiers of options.
pub(super) fn load(flags: &RunFlags, log: ScriptLog) -> Result<ConfiguredScript, LoadRefusal> {
    match source(&flags.script) {
        Ok(source) => {
            let settings = ScriptSettings { system: environment(), ..flags.settings.clone() };
            load_source((&flags.script, source), &settings, log)
        }
        Err(why) => Err(LoadRefusal { why, exit: ANY, log: Some(log) }),
    }
}

/// Like [`load`], for a script whose source has been read.
pub(super) fn load_source(
    (script, source): (&str, UnloadedScript),
    settings: &ScriptSettings,
    log: ScriptLog,
) -> Result<ConfiguredScript, LoadRefusal> {
    let url = source.url();
    let loaded = ConfiguredScript::load(source, settings, Arc::clone(&log));
    loaded.map_err(|refusal| {
        let exit = match &refusal {
            ScriptRefusal::Load(error) => exit_of(error),
            ScriptRefusal::OwnOptions(_) | ScriptRefusal::Options(_) => code::INVALID,
            ScriptRefusal::NoFunctions | ScriptRefusal::Other(_) => ANY,
        };
        let why = match &refusal {
            ScriptRefusal::Load(ScriptRunError::Load(error)) => not_initialized(error),
            ScriptRefusal::NoFunctions | ScriptRefusal::OwnOptions(_) => Some(refusal.to_string()),
            _ => None,
        };
        let why = why.map_or_else(
            || refusal.with_stack(),
            |why| format!("{NOT_INITIALIZED} '{script}': could not load JS test '{url}': {why}"),
        );
        LoadRefusal { why, exit, log: Some(log) }
    })
}

#[cfg(test)]
mod tests {
    use super::syntax_error;

    #[test]
    fn tokens_are_shown_without_quotes() {
        for (why, expected) in [
            ("unexpected token in expression: ';'", "Unexpected token ;"),
            ("Unexpected token '{'", "Unexpected token {"),
            ("unexpected token in expression: ''", "Unexpected end of input"),
            ("Unexpected identifier 'c'", "Unexpected identifier"),
            ("Unexpected string", "Unexpected string"),
        ] {
            assert_eq!(syntax_error(why), expected);
        }
    }
}
