//! Hooks in JavaScript.
//!
//! `backendsFinished` has a thread of its own and cannot delay `selectBackends` and `mungeRequest`,
//! which clients wait for.

mod message;
mod options;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use gake_script::ConsoleLevel;
use gake_script::{
    ConsoleSink, Export, ScriptError, ScriptLimits, ScriptSource, ScriptThreads, Value,
};
use gake_text::foreign;
use gake_text::redact::{Redacted, Redactor};

use crate::Proxy;
use crate::config::Config;
use crate::exchange::MirroredExchange;
use crate::hooks::{
    ChangeScope, HookError, HookRequest, HookRequestHead, HookScript, HookTimeout, Hooks, Selection,
};
use options::{BodyFormat, ScriptHookOptions};

const SELECT: &str = "selectBackends";
const MUNGE: &str = "mungeRequest";
const FINISHED: &str = "backendsFinished";

/// Time limit of `backendsFinished`, which delays no response.
const FINISHED_LIMIT: Duration = Duration::from_secs(1);

/// Maximum bytes of a fault that is logged.
const FAULT_MAX: usize = 4 << 10;

/// Bytes of a fault that are redacted: well beyond those that are logged.
const FAULT_READ_MAX: usize = 16 * FAULT_MAX;

/// Distinct faults of a script that are logged; more are only counted.
const FAULTS_LOGGED_MAX: usize = 20;

/// The destination of a script's console and of its faults.
pub type HookLog = Arc<dyn Fn(ConsoleLevel, &Redacted) + Send + Sync>;

impl HookScript {
    /// Adds the hooks to `proxy`, whose configuration is `config`. The script's console goes to
    /// `log`, and so do its faults, cut and redacted.
    ///
    /// # Errors
    /// When the script cannot be loaded, or its exports are invalid.
    pub fn add(
        &self,
        config: &Config,
        log: HookLog,
        redactor: &Redactor,
        proxy: Proxy,
    ) -> Result<Proxy, String> {
        let hooks = ScriptHooks::load(self, config, log, redactor)?;
        Ok(proxy
            .hooks(hooks)
            .hook_threads(self.threads)
            .hook_limit(self.limit)
            .hook_wait(self.wait)
            .on_select_failure(self.on_select_failure))
    }
}

struct ScriptHooks {
    /// For `selectBackends` and `mungeRequest`.
    questions: Option<ScriptThreads>,
    /// For `backendsFinished`.
    finished: Option<ScriptThreads>,
    selects: bool,
    munges: bool,
    options: ScriptHookOptions,
    limit: Duration,
    faults: FaultLog,
}

impl ScriptHooks {
    fn load(
        script: &HookScript,
        config: &Config,
        log: HookLog,
        redactor: &Redactor,
    ) -> Result<Self, String> {
        let path: &Path = &script.path;
        let (hidden, out) = (redactor.clone(), Arc::clone(&log));
        // What a script prints may be a client's message.
        let console: ConsoleSink = Arc::new(move |level, line| out(level, &hidden.text(line)));
        let source = ScriptSource::file(path).map_err(|error| error.to_string())?;
        let start = |threads| {
            ScriptThreads::start(&source, ScriptLimits::default(), threads, &console).map_err(
                |error| match &error {
                    ScriptError::Thrown(exception) if exception.place.is_empty() => {
                        format!("{}: {error}", path.display())
                    }
                    _ => error.to_string(),
                },
            )
        };
        let first = start(1)?;
        let function = |name: &str| match first.export(name) {
            None => Ok(false),
            Some(Export::Function) => Ok(true),
            Some(_) => Err(format!("{}: {name} is not a function", path.display())),
        };
        let (selects, munges, finishes) =
            (function(SELECT)?, function(MUNGE)?, function(FINISHED)?);
        if !(selects || munges || finishes) {
            return Err(format!(
                "{} exports none of {SELECT}, {MUNGE} and {FINISHED}",
                path.display()
            ));
        }
        let backends: Vec<&str> = std::iter::once(&config.master)
            .chain(config.shadows.iter().map(|shadow| &shadow.backend))
            .map(|backend| &*backend.name)
            .collect();
        let options = ScriptHookOptions::of(first.export("options"), &backends)
            .map_err(|wrong| format!("{}: {wrong}", path.display()))?;
        let blocks = selects || munges;
        let (questions, finished) = match (blocks, finishes) {
            (true, true) => (Some(start(script.threads)?), Some(first)),
            (true, false) if script.threads == 1 => (Some(first), None),
            (true, false) => (Some(start(script.threads)?), None),
            (false, _) => (None, Some(first)),
        };
        let faults = FaultLog { log, redactor: redactor.clone(), logged: Mutex::default() };
        let limit = script.limit;
        Ok(Self { questions, finished, selects, munges, options, limit, faults })
    }

    fn call(&self, function: &'static str, arguments: Vec<Value>) -> Result<Value, HookError> {
        let Some(threads) = &self.questions else { return Ok(Value::Null) };
        self.faults.watch(function, threads.call(function, arguments, self.limit))
    }

    /// Logs an invalid return value.
    fn wrong(&self, function: &str, wrong: String) -> HookError {
        self.faults.log_once(&format!("{function} {}", self.faults.on_one_line(&wrong)));
        wrong.into()
    }
}

impl Hooks for ScriptHooks {
    fn selects(&self) -> bool {
        self.selects
    }

    fn select(&self, request: &HookRequestHead) -> Result<Selection, HookError> {
        let returned = self.call(SELECT, vec![message::head(request)])?;
        message::selection(returned).map_err(|wrong| self.wrong(SELECT, wrong))
    }

    fn munges(&self, backend: &str) -> ChangeScope {
        match (self.munges && self.options.munges(backend), self.options.request_body) {
            (false, _) => ChangeScope::No,
            (true, BodyFormat::None) => ChangeScope::Head,
            (true, BodyFormat::Text | BodyFormat::Bytes) => ChangeScope::Body,
        }
    }

    fn munge(&self, backend: &str, request: &mut HookRequest) -> Result<(), HookError> {
        let arguments =
            vec![Value::text(backend), message::request(request, self.options.request_body)];
        let returned = self.call(MUNGE, arguments)?;
        message::change(request, returned, self.options.request_body)
            .map_err(|wrong| self.wrong(MUNGE, wrong))
    }

    fn finishes(&self) -> bool {
        self.finished.is_some()
    }

    fn finished(&self, exchange: &MirroredExchange) -> Result<(), HookError> {
        let Some(threads) = &self.finished else { return Ok(()) };
        let arguments = vec![message::exchange(exchange, &self.options)];
        self.faults.watch(FINISHED, threads.call(FINISHED, arguments, FINISHED_LIMIT)).map(drop)
    }
}

/// Logs each distinct fault once; all are counted elsewhere.
struct FaultLog {
    log: HookLog,
    redactor: Redactor,
    logged: Mutex<HashSet<Redacted>>,
}

impl FaultLog {
    fn watch<T>(&self, function: &str, result: Result<T, ScriptError>) -> Result<T, HookError> {
        result.map_err(|error| match error {
            ScriptError::Late { .. } => {
                self.log_once(&error.to_string());
                HookTimeout.into()
            }
            // The threads are busy with calls that exceeded the limit.
            ScriptError::Busy(_) => HookTimeout.into(),
            ScriptError::Thrown(exception) => {
                // The exception may contain text from a client.
                let thrown = self.on_one_line(&exception.to_string());
                let mut fault = format!("{function} threw: {thrown}");
                // The message contains the innermost call.
                for call in exception.stack.lines().skip(1) {
                    fault = fault + "\n" + &self.on_one_line(call);
                }
                self.log_once(&fault);
                exception.into()
            }
            error => {
                self.log_once(&self.on_one_line(&error.to_string()));
                error.into()
            }
        })
    }

    /// A text of a script, redacted while a secret still stands on the line below its name.
    fn on_one_line(&self, text: &str) -> String {
        let text = &text[..text.floor_char_boundary(FAULT_READ_MAX)];
        foreign::line(&self.redactor.text(text)).into_owned()
    }

    /// What scripts throw may quote a client's message, and be as long.
    fn log_once(&self, fault: &str) {
        let fault = match fault.len() {
            0..=FAULT_MAX => Cow::Borrowed(fault),
            _ => Cow::Owned(fault[..fault.floor_char_boundary(FAULT_MAX)].to_owned() + " ..."),
        };
        let fault = self.redactor.text(&fault);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < FAULTS_LOGGED_MAX && logged.insert(fault.clone()) {
            (self.log)(ConsoleLevel::Warn, &fault);
            if logged.len() == FAULTS_LOGGED_MAX {
                let more = Redacted::plain("the script has more faults, which are only counted");
                (self.log)(ConsoleLevel::Warn, &more);
            }
        }
    }
}
