//! A runtime with one script, on the thread that created it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Function, Module, Object, Persistent, Promise, Runtime};

use crate::console::{self, ConsoleSink};
use crate::error::{Exception, ScriptError};
use crate::imports::Imports;
use crate::source::ScriptSource;
use crate::value::{self, Arguments, Value, ValueError};

/// Limits of a runtime.
#[derive(Debug, Clone, Copy)]
pub struct ScriptLimits {
    /// Heap in bytes.
    pub memory: usize,
    /// Stack in bytes.
    pub stack: usize,
    /// Time to load the script, imports included.
    pub load: Duration,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self { memory: 64 << 20, stack: 256 << 10, load: Duration::from_secs(5) }
    }
}

/// An export of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Export {
    /// A function.
    Function,
    /// A value, as of the end of loading.
    Value(Value),
    /// A value that cannot be converted.
    Other,
}

pub(crate) struct LoadedScript {
    /// Dropped before the runtime.
    exports: Persistent<Object<'static>>,
    context: Context,
    _runtime: Runtime,
    deadline: Rc<Deadline>,
}

/// The deadline of a call, and whether it has passed.
#[derive(Default)]
struct Deadline {
    at: Cell<Option<Instant>>,
    passed: Cell<bool>,
}

impl Deadline {
    fn set(&self, at: Instant) {
        self.at.set(Some(at));
        self.passed.set(false);
    }

    fn is_passed(&self) -> bool {
        if !self.passed.get() {
            self.passed.set(self.at.get().is_some_and(|at| Instant::now() >= at));
        }
        self.passed.get()
    }
}

impl LoadedScript {
    /// Evaluates a script and returns its exports.
    pub(crate) fn load(
        source: &ScriptSource,
        limits: ScriptLimits,
        sink: &ConsoleSink,
    ) -> Result<(Self, Vec<(String, Export)>), ScriptError> {
        let memory = |_| ScriptError::Thread(std::io::ErrorKind::OutOfMemory.into());
        let runtime = Runtime::new().map_err(memory)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        let imports = Imports::below(source.folder.clone());
        runtime.set_loader(imports.clone(), imports);
        let deadline = Rc::new(Deadline::default());
        let interrupt = Rc::clone(&deadline);
        runtime.set_interrupt_handler(Some(Box::new(move || interrupt.is_passed())));
        let context = Context::full(&runtime).map_err(memory)?;
        deadline.set(Instant::now() + limits.load);
        let call = ScriptCall { what: &source.name, limit: limits.load, deadline: &deadline };
        let (exports, found) = context.with(|ctx| {
            console::install(&ctx, sink).map_err(|error| call.failed(&ctx, error))?;
            let exports = call.load(&ctx, source)?;
            let found = exported(&ctx, &exports).map_err(|error| call.failed(&ctx, error))?;
            Ok::<_, ScriptError>((Persistent::save(&ctx, exports), found))
        })?;
        Ok((Self { exports, context, _runtime: runtime, deadline }, found))
    }

    /// Calls an exported function and awaits a promise, until the deadline.
    pub(crate) fn call(
        &self,
        function: &str,
        arguments: Vec<Value>,
        limit: Duration,
        until: Instant,
    ) -> Result<Value, ScriptError> {
        self.deadline.set(until);
        let call = ScriptCall { what: function, limit, deadline: &self.deadline };
        self.context.with(|ctx| call.run(&ctx, self.exports.clone(), arguments))
    }

    /// Runs pending jobs of promises, until the deadline of the last call.
    pub(crate) fn finish_jobs(&self) {
        self.context.with(|ctx| while !self.deadline.is_passed() && ctx.execute_pending_job() {});
    }
}

/// A call of the script, with its name for messages.
struct ScriptCall<'a> {
    what: &'a str,
    limit: Duration,
    deadline: &'a Deadline,
}

impl ScriptCall<'_> {
    fn load<'js>(&self, ctx: &Ctx<'js>, source: &ScriptSource) -> Result<Object<'js>, ScriptError> {
        let evaluated = Module::declare(ctx.clone(), source.name.as_str(), source.text.as_str())
            .and_then(Module::eval);
        let (module, promise) = evaluated.map_err(|error| self.failed(ctx, error))?;
        self.settled(ctx, &promise)?;
        module.namespace().map_err(|error| self.failed(ctx, error))
    }

    fn run(
        &self,
        ctx: &Ctx<'_>,
        exports: Persistent<Object<'static>>,
        arguments: Vec<Value>,
    ) -> Result<Value, ScriptError> {
        let returned = exports
            .restore(ctx)
            .and_then(|exports| exports.get::<_, Function<'_>>(self.what))
            .and_then(|function| function.call::<_, rquickjs::Value<'_>>(Arguments(arguments)));
        let mut returned = returned.map_err(|error| self.failed(ctx, error))?;
        if let Some(promise) = returned.as_promise() {
            returned = self.settled(ctx, promise)?;
        }
        value::take(&returned).map_err(|error| match error {
            ValueError::Thrown(error) => self.failed(ctx, error),
            ValueError::Foreign(reason) => {
                ScriptError::Value { what: self.what.to_owned(), reason }
            }
        })
    }

    /// Awaits a promise, which only jobs of the script can settle.
    fn settled<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: &Promise<'js>,
    ) -> Result<rquickjs::Value<'js>, ScriptError> {
        while promise.state() == PromiseState::Pending {
            if self.deadline.is_passed() {
                return Err(self.late());
            }
            if !ctx.execute_pending_job() {
                let reason = "a promise that never settles";
                return Err(ScriptError::Value { what: self.what.to_owned(), reason });
            }
        }
        match promise.result::<rquickjs::Value<'js>>() {
            Some(result) => result.map_err(|error| self.failed(ctx, error)),
            None => Err(self.late()),
        }
    }

    fn failed(&self, ctx: &Ctx<'_>, error: rquickjs::Error) -> ScriptError {
        // Clear the exception for the next call, even if it is not reported.
        let exception = if error.is_exception() {
            Exception::caught(ctx)
        } else {
            let _ = ctx.catch();
            Exception {
                message: error.to_string(),
                place: String::new(),
                stack: String::new(),
                is_error: false,
            }
        };
        if self.deadline.passed.get() { self.late() } else { ScriptError::Thrown(exception) }
    }

    fn late(&self) -> ScriptError {
        ScriptError::Late { what: self.what.to_owned(), limit: self.limit }
    }
}

fn exported(ctx: &Ctx<'_>, exports: &Object<'_>) -> rquickjs::Result<Vec<(String, Export)>> {
    let mut found = Vec::new();
    for property in exports.props::<String, rquickjs::Value<'_>>() {
        let (name, value) = property?;
        let export = if value.is_function() {
            Export::Function
        } else {
            value::take(&value).map_or_else(
                |_| {
                    let _ = ctx.catch();
                    Export::Other
                },
                Export::Value,
            )
        };
        found.push((name, export));
    }
    Ok(found)
}
