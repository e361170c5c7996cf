//! The proxy's hooks, written in JavaScript.
//!
//! `selectBackends` and `mungeRequest` run on threads of their own, `backendsFinished` on one more,
//! so that what only looks never holds up what a client waits for.

mod message;
mod options;

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use gake_script::{ConsoleSink, Level};
use gake_script::{Export, Limits, ScriptError, Source, Threads, Value};
use gake_text::foreign;

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

/// Time for `backendsFinished`, which holds up no response.
const FINISHED_LIMIT: Duration = Duration::from_secs(1);

/// Different faults of a script that are logged; the others are only counted.
const FAULTS_LOGGED_MAX: usize = 20;

impl HookScript {
    /// Gives the hooks to `proxy`, whose configuration is `config`. Lines of the script's console
    /// and its faults go to `log`.
    ///
    /// # Errors
    /// When the script cannot be loaded, or exports the wrong things.
    pub fn add(&self, config: &Config, log: ConsoleSink, proxy: Proxy) -> Result<Proxy, String> {
        let hooks = ScriptHooks::load(self, config, log)?;
        Ok(proxy
            .hooks(hooks)
            .hook_threads(self.threads)
            .hook_limit(self.limit)
            .hook_wait(self.wait)
            .on_select_failure(self.on_select_failure))
    }
}

/// A script's functions as hooks.
struct ScriptHooks {
    /// For what clients wait for.
    questions: Option<Threads>,
    /// For `backendsFinished`, which holds up no response.
    finished: Option<Threads>,
    selects: bool,
    munges: bool,
    options: ScriptHookOptions,
    limit: Duration,
    faults: FaultLog,
}

impl ScriptHooks {
    fn load(script: &HookScript, config: &Config, log: ConsoleSink) -> Result<Self, String> {
        let path: &Path = &script.path;
        let source = Source::file(path).map_err(|error| error.to_string())?;
        let start = |threads| {
            Threads::start(&source, Limits::default(), threads, &log).map_err(
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
        let asked = selects || munges;
        let (questions, finished) = match (asked, finishes) {
            (true, true) => (Some(start(script.threads)?), Some(first)),
            (true, false) if script.threads == 1 => (Some(first), None),
            (true, false) => (Some(start(script.threads)?), None),
            (false, _) => (None, Some(first)),
        };
        let faults = FaultLog { log, told: Mutex::default() };
        let limit = script.limit;
        Ok(Self { questions, finished, selects, munges, options, limit, faults })
    }

    fn ask(&self, function: &'static str, arguments: Vec<Value>) -> Result<Value, HookError> {
        let Some(threads) = &self.questions else { return Ok(Value::Null) };
        self.faults.watch(function, threads.call(function, arguments, self.limit))
    }

    /// A fault of what a function returned.
    fn wrong(&self, function: &str, wrong: String) -> HookError {
        self.faults.tell(&format!("{function} {}", foreign::line(&wrong)));
        wrong.into()
    }
}

impl Hooks for ScriptHooks {
    fn selects(&self) -> bool {
        self.selects
    }

    fn select(&self, request: &HookRequestHead) -> Result<Selection, HookError> {
        let said = self.ask(SELECT, vec![message::head(request)])?;
        message::selection(said).map_err(|wrong| self.wrong(SELECT, wrong))
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
        let said = self.ask(MUNGE, arguments)?;
        message::change(request, said, self.options.request_body)
            .map_err(|wrong| self.wrong(MUNGE, wrong))
    }

    fn finishes(&self) -> bool {
        self.finished.is_some()
    }

    fn finished(&self, exchange: &MirroredExchange) -> Result<(), HookError> {
        let Some(threads) = &self.finished else { return Ok(()) };
        let told = vec![message::exchange(exchange, &self.options)];
        self.faults.watch(FINISHED, threads.call(FINISHED, told, FINISHED_LIMIT)).map(drop)
    }
}

/// Logs the faults of a script, each once: the counts are in the ledger.
struct FaultLog {
    log: ConsoleSink,
    told: Mutex<HashSet<String>>,
}

impl FaultLog {
    fn watch<T>(&self, function: &str, result: Result<T, ScriptError>) -> Result<T, HookError> {
        result.map_err(|error| match error {
            ScriptError::Late { .. } => {
                self.tell(&error.to_string());
                HookTimeout.into()
            }
            // The threads are busy with what took too long.
            ScriptError::Busy(_) => HookTimeout.into(),
            ScriptError::Thrown(exception) => {
                // What was thrown may be what a client sent.
                let thrown = exception.to_string();
                let mut told = format!("{function} threw: {}", foreign::line(&thrown));
                // The innermost call is the place that is told already.
                for call in exception.stack.lines().skip(1) {
                    told = told + "\n" + &foreign::line(call);
                }
                self.tell(&told);
                exception.into()
            }
            error => {
                self.tell(&foreign::line(&error.to_string()));
                error.into()
            }
        })
    }

    fn tell(&self, fault: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < FAULTS_LOGGED_MAX && told.insert(fault.to_owned()) {
            (self.log)(Level::Warn, fault);
            if told.len() == FAULTS_LOGGED_MAX {
                (self.log)(Level::Warn, "the script has more faults; they are only counted");
            }
        }
    }
}
