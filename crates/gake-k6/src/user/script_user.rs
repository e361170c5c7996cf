//! A user with its script: loads it and calls its functions.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::Clock;
use gake_js::value::{bytes, evaluate, truthy};
use gake_script::user::{
    Fiber, LazyList, Stacks, User, WaitError, explain_json, is_late, share_lists, show_stacks,
    within,
};
use gake_script::{Exception, ScriptError};
use gake_wire::Client;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Module, Object, Persistent, Promise, Value};

use super::loader::Modules;
use super::options_json::options_json;
use super::vu::{Vu, VuContext, VuStage};
use super::{console, globals, metric_context, thrown};
use crate::metrics::BuiltinMetric;
use crate::modules::{LISTS, type_name};
use gake_go::json::parse_error;

/// Shifts the samples of a profile from iteration to iteration: an odd number of random bits.
const SHIFT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The property of `handleSummary`'s argument with the groups, in the older of k6's two forms.
const ROOT_GROUP_KEY: &str = "root_group";

/// The property, in that form, with the value that `setup` returned.
const SETUP_DATA_KEY: &str = "setup_data";

/// Serialises the value that `setup` returned.
const SETUP_DATA: &str = include_str!("setup_data.js");

/// A user whose script is loaded.
pub struct ScriptUser {
    /// The user's state for its modules.
    pub vu: Rc<Vu>,
    exports: Option<Persistent<Object<'static>>>,
    /// This user's copy of the value that `setup` returned.
    data: Option<Persistent<Value<'static>>>,
    modules: Modules,
    user: User,
}

/// How a function of a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEnd {
    /// It returned; with its value as JSON if requested.
    Returned(Option<String>),
    /// It threw.
    Thrown(Exception),
    /// It returned a promise that was rejected.
    Rejected(Exception),
    /// `setup` returned a value that has no JSON; with k6's error.
    NoData(String),
    /// It was interrupted, or ended the test.
    Ended,
}

/// The results of `handleSummary`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SummaryOutputs {
    /// Its argument after the call, as JSON.
    pub data: String,
    /// Its return value.
    pub outputs: SummaryReturn,
}

/// The return value of `handleSummary`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SummaryReturn {
    /// A falsy value.
    Nothing,
    /// A value that is not a map of outputs.
    Wrong,
    /// Contents by path; an error is the type of an unsupported content, in k6's words.
    Outputs(Vec<(String, Result<Vec<u8>, String>)>),
}

/// Why a script cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is not valid JavaScript, or imports a module that does not exist.
    #[error("{0}")]
    Syntax(Exception),
    /// An import cannot be resolved.
    #[error("{0}")]
    Unresolved(String),
    /// It threw while it was loaded.
    #[error("{0}")]
    Thrown(Exception),
    /// Its options have a value that JSON has not.
    #[error("error parsing script options: json: unsupported value: {0}")]
    Options(&'static str),
    /// A promise that nothing awaits was rejected while it was loaded.
    #[error("{0}")]
    Rejected(Exception),
    /// It ended the test while it was loaded.
    #[error("{0}")]
    Aborted(String),
    /// Its init code took too long.
    #[error("its init code took too long")]
    Late,
    /// Out of memory.
    #[error("{0}")]
    NoMemory(String),
}

impl ScriptUser {
    /// Loads a script.
    ///
    /// # Errors
    /// When the script cannot be loaded, or not before the deadline of its test or of [`within`].
    pub fn load(stacks: &Rc<Stacks>, parts: VuContext) -> Result<Self, LoadError> {
        match parts.test.load_until.get().copied() {
            Some(until) => within(until, || Self::load_in_time(stacks, parts)),
            None => Self::load_in_time(stacks, parts),
        }
    }

    fn load_in_time(stacks: &Rc<Stacks>, parts: VuContext) -> Result<Self, LoadError> {
        if is_late() {
            return Err(LoadError::Late);
        }
        share_lists(|| {
            let variables = globals::variables(&parts.test.settings().environment);
            let own: [&'static LazyList; 3] = [&globals::LIST, &console::LIST, variables];
            own.into_iter().chain(LISTS)
        });
        explain_json(parse_error);
        show_stacks(thrown::stack);
        let vu = Vu::new(parts);
        let modules = Modules::new(&vu);
        let memory = vu.test.settings().memory;
        let user = User::new(stacks, memory, modules.clone(), modules.clone());
        let user = user.map_err(|error: ScriptError| LoadError::NoMemory(error.to_string()))?;
        let mut loaded = Self { vu, exports: None, data: None, modules, user };
        let exports = loaded.user.with(|ctx| loaded.evaluate(ctx))?;
        loaded.exports = Some(exports);
        Ok(loaded)
    }

    fn evaluate(&self, ctx: &Ctx<'_>) -> Result<Persistent<Object<'static>>, LoadError> {
        let thrown = |error| match self.vu.test.aborted().filter(|_| self.vu.aborts.get()) {
            _ if is_late() => {
                let _ = ctx.catch();
                LoadError::Late
            }
            Some(abort) => {
                let _ = ctx.catch();
                LoadError::Aborted(abort.reason)
            }
            None => {
                let caught = thrown::rejected(ctx, error);
                let unresolved = self.modules.unresolved(&caught);
                unresolved.map_or(LoadError::Thrown(caught), LoadError::Unresolved)
            }
        };
        self.globals(ctx).map_err(thrown)?;
        let main = self.vu.test.main.clone();
        let module = self.modules.main(ctx, &main);
        let module = module.map_err(|error| {
            let caught = thrown::caught(ctx, error);
            let unresolved = self.modules.unresolved(&caught);
            unresolved.map_or(LoadError::Syntax(caught), LoadError::Unresolved)
        })?;
        let (module, promise) = Module::eval(module).map_err(thrown)?;
        // Also jobs that the script does not await: they may call functions of init code.
        while !is_late() && ctx.execute_pending_job() {}
        if is_late() {
            return Err(LoadError::Late);
        }
        if let Some(result) = promise.result::<Value<'_>>() {
            result.map_err(thrown)?;
        }
        if let Some(reason) = self.user.rejections().first(ctx) {
            return Err(LoadError::Rejected(thrown::rejected(ctx, ctx.throw(reason))));
        }
        let exports = module.namespace().map_err(thrown)?;
        Ok(Persistent::save(ctx, exports))
    }

    fn globals<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<()> {
        self.vu.store_in(ctx);
        self.modules.store_in(ctx);
        metric_context::install(ctx, &self.vu);
        globals::install(ctx, &self.vu)
    }

    /// Runs the garbage collector, which QuickJS also does by itself as the heap grows.
    pub fn collect_garbage(&self) {
        self.user.with(|ctx| ctx.run_gc());
    }

    /// The names of the functions that the script exports.
    #[must_use]
    pub fn functions(&self) -> Vec<String> {
        let functions = self.with_exports(|_, exports| {
            let properties = exports.props::<String, Value<'_>>().flatten();
            properties.filter(|(_, value)| value.is_function()).map(|(name, _)| name).collect()
        });
        functions.unwrap_or_default()
    }

    /// The script's `options` as JSON.
    ///
    /// # Errors
    /// When they have no JSON.
    pub fn options(&self) -> Result<Option<String>, LoadError> {
        let unsupported = Rc::new(Cell::new(None));
        let json = self.with_exports(|ctx, exports| options_json(ctx, &exports, &unsupported));
        match (json, unsupported.get()) {
            (_, Some(number)) => Err(LoadError::Options(number)),
            (None, _) => Ok(None),
            (Some(json), None) => json.map_err(|_| {
                let message = "the options cannot be written as JSON".to_owned();
                let (place, stack, is_error) = Default::default();
                LoadError::Thrown(Exception { message, place, stack, is_error })
            }),
        }
    }

    fn with_exports<T>(
        &self,
        read: impl for<'js> FnOnce(&Ctx<'js>, Object<'js>) -> T,
    ) -> Option<T> {
        let exports = self.exports.clone()?;
        self.user.with(|ctx| Some(read(ctx, exports.restore(ctx).ok()?)))
    }

    /// Gives the user the value that `setup` returned, as JSON.
    pub fn give_data(&mut self, json: &str) {
        self.data = self.user.with(|ctx| {
            let value = ctx.json_parse(json).ok()?;
            Some(Persistent::save(ctx, value))
        });
    }

    /// Samples the running lines for the test's profile, if it has one.
    pub(crate) fn profile(&self) {
        if let Some(profile) = &self.vu.test.settings().profile {
            let profile = Arc::clone(profile);
            self.user.sample(move |stack| profile.count(stack));
        }
    }

    /// Calls an exported function. Awaits a returned promise and all tasks started meanwhile.
    ///
    /// # Errors
    /// When no stack can be allocated.
    pub fn call<'a>(
        &'a self,
        stage: VuStage,
        function: &'a str,
        argument: Option<&'a str>,
    ) -> std::io::Result<Fiber<'a, CallEnd>> {
        self.vu.stage.set(stage);
        self.user.run(move |ctx| {
            // Rejections of init code do not belong to this call.
            self.user.rejections().clear();
            let result = self.called(ctx, stage, function, argument);
            self.vu.tasks.clear();
            self.vu.timers.stop(&self.vu.test);
            self.user.rejections().clear();
            self.vu.close_open();
            *self.vu.group.borrow_mut() = "".into();
            result
        })
    }

    fn called(
        &self,
        ctx: &Ctx<'_>,
        stage: VuStage,
        function: &str,
        argument: Option<&str>,
    ) -> CallEnd {
        let is_rejected = Cell::new(false);
        let argument = self.argument(ctx, stage, argument);
        let result = argument.and_then(|argument| {
            let returned = self.returned(ctx, function, argument.clone(), &is_rejected)?;
            Ok((argument, returned))
        });
        let result = result.and_then(|(argument, returned)| match stage {
            VuStage::Setup => setup_data(ctx, returned),
            VuStage::Summary => summary_outputs(ctx, &argument, &returned).map(CallEnd::Returned),
            VuStage::Init | VuStage::Iteration | VuStage::Teardown => Ok(CallEnd::Returned(None)),
        });
        match result {
            Ok(end) => end,
            Err(error) => {
                let thrown = error.is_exception().then(|| ctx.catch());
                if thrown.as_ref().is_some_and(Value::is_uncatchable_error) {
                    return CallEnd::Ended;
                }
                let exception = match thrown {
                    Some(value) if is_rejected.get() => thrown::rejected(ctx, ctx.throw(value)),
                    Some(value) => thrown::caught(ctx, ctx.throw(value)),
                    None => thrown::caught(ctx, error),
                };
                match is_rejected.get() {
                    true => CallEnd::Rejected(exception),
                    false => CallEnd::Thrown(exception),
                }
            }
        }
    }

    /// The argument of a call: this JSON, or the value that `setup` returned.
    fn argument<'js>(
        &self,
        ctx: &Ctx<'js>,
        stage: VuStage,
        json: Option<&str>,
    ) -> rquickjs::Result<Value<'js>> {
        let argument = match (json, &self.data) {
            (Some(json), _) => ctx.json_parse(json)?,
            (None, Some(data)) => data.clone().restore(ctx)?,
            (None, None) => Value::new_undefined(ctx.clone()),
        };
        if let (VuStage::Summary, Some(data)) = (stage, argument.as_object()) {
            // Present and undefined in a script without `setup`.
            let has_place = data.contains_key(ROOT_GROUP_KEY)?;
            if has_place && !data.contains_key(SETUP_DATA_KEY)? {
                data.set(SETUP_DATA_KEY, Value::new_undefined(ctx.clone()))?;
            }
        }
        Ok(argument)
    }

    fn returned<'js>(
        &self,
        ctx: &Ctx<'js>,
        function: &str,
        argument: Value<'js>,
        is_rejected: &Cell<bool>,
    ) -> rquickjs::Result<Value<'js>> {
        let exports = match &self.exports {
            Some(exports) => exports.clone().restore(ctx)?,
            None => Object::new(ctx.clone())?,
        };
        let function: Function<'js> = exports.get(function)?;
        let returned: Value<'js> = function.call((argument,))?;
        let promise = returned.as_promise().cloned();
        let thrown = Cell::new(None);
        // An exception ends the iteration, even with tasks in progress.
        let has_thrown = Cell::new(false);
        let rejections = self.user.rejections();
        let driven = self.vu.tasks.drive(
            ctx,
            || has_thrown.get() || !rejections.is_empty(),
            |error| {
                if !has_thrown.replace(true) {
                    thrown.set(Some(error));
                }
            },
        );
        driven.map_err(|why: WaitError| gake_script::user::throw_wait_error(ctx, why))?;
        if let Some(error) = thrown.take() {
            return Err(error);
        }
        // A rejection ends the iteration, awaited or not.
        if let Some(reason) = rejections.first(ctx) {
            is_rejected.set(true);
            return Err(ctx.throw(reason));
        }
        match promise {
            Some(promise) => {
                is_rejected.set(promise.state() == PromiseState::Rejected);
                settled(ctx, &promise)
            }
            None => Ok(returned),
        }
    }

    /// Runs an iteration: calls the function with the data of `setup` and records its samples.
    pub async fn iterate(&self, function: &str, iteration: u64) -> CallEnd {
        let vu = &self.vu;
        vu.iteration.set(iteration);
        self.user.with(|ctx| {
            // A script may have made it read-only.
            if ctx.globals().set("__ITER", iteration as f64).is_err() {
                let _ = ctx.catch();
            }
        });
        if !vu.test.settings().no_cookies_reset {
            vu.jar.take();
        }
        if vu.test.settings().no_vu_connection_reuse {
            let mut client = vu.client.borrow_mut();
            *client = client.as_ref().map(Client::with_own_connections);
        }
        if vu.test.settings().profile.is_some() {
            self.user.shift_samples(iteration.wrapping_mul(SHIFT).wrapping_add(vu.number));
        }
        let start = vu.now();
        let end = match self.call(VuStage::Iteration, function, None) {
            Ok(fiber) => fiber.await,
            Err(error) => CallEnd::Thrown(Exception {
                message: format!("no stack for the iteration: {error}"),
                place: String::new(),
                stack: String::new(),
                is_error: false,
            }),
        };
        vu.record_traffic();
        let set = vu.series_index.tag_set(&**vu);
        if end != CallEnd::Ended || vu.aborts.get() {
            let took = vu.clock.now().saturating_sub(start);
            vu.record(BuiltinMetric::IterationDuration, &set, took as f64);
            vu.record(BuiltinMetric::Iterations, &set, 1.0);
        }
        end
    }
}

impl Drop for ScriptUser {
    fn drop(&mut self) {
        // Values of the runtime are dropped before it.
        self.vu.tasks.clear();
        self.user.rejections().clear();
        self.modules.forget();
        self.exports = None;
        self.data = None;
    }
}

impl std::fmt::Debug for ScriptUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptUser").field("vu", &self.vu).finish_non_exhaustive()
    }
}

/// The [`SummaryOutputs`] of a call, as JSON.
fn summary_outputs<'js>(
    ctx: &Ctx<'js>,
    argument: &Value<'js>,
    returned: &Value<'js>,
) -> rquickjs::Result<Option<String>> {
    let data = ctx.json_stringify(argument.clone())?;
    let data = data.map(|json| json.to_string()).transpose()?.unwrap_or_default();
    let outputs = match returned.as_object().filter(|object| !object.is_function()) {
        // As in k6: falsy values are nothing, arrays are not maps.
        None if !truthy(ctx, returned.clone())? => SummaryReturn::Nothing,
        Some(object) if !object.is_array() => {
            let mut outputs = Vec::new();
            for property in object.props::<String, Value<'js>>() {
                let (path, value) = property?;
                let content = match bytes(ctx, &value)? {
                    Some(bytes) => Ok(bytes),
                    None => Err(type_name(ctx, &value).to_owned()),
                };
                outputs.push((path, content));
            }
            SummaryReturn::Outputs(outputs)
        }
        _ => SummaryReturn::Wrong,
    };
    Ok(serde_json::to_string(&SummaryOutputs { data, outputs }).ok())
}

/// The JSON of the value that `setup` returned; none if it is undefined.
fn setup_data<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<CallEnd> {
    if value.is_undefined() {
        return Ok(CallEnd::Returned(None));
    }
    let read: Function<'js> = evaluate(ctx, SETUP_DATA)?;
    let data: Object<'js> = read.call((value,))?;
    let wrong: Option<String> = data.get("wrong")?;
    match wrong {
        Some(wrong) => Ok(CallEnd::NoData(wrong)),
        None => data.get("json").map(CallEnd::Returned),
    }
}

/// The result of a promise; `undefined` if nothing is left that could settle it.
fn settled<'js>(ctx: &Ctx<'js>, promise: &Promise<'js>) -> rquickjs::Result<Value<'js>> {
    match promise.result::<Value<'js>>() {
        Some(result) => result,
        None => Ok(Value::new_undefined(ctx.clone())),
    }
}
