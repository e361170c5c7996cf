//! The module `k6/execution`: information about test, scenario and user; `abort`, `fail`.

use gake_js::native::named;
use std::cell::RefCell;
use std::rc::Rc;

use gake_core::clock::Nanos;
use gake_js::errors::go_error;
use gake_js::value::{self, PAIR, given};
use gake_script::user::{HeapCharge, frames, throw_out_of_memory};
use rquickjs::function::{Opt, This};
use rquickjs::object::{Accessor, Property};
use rquickjs::{Ctx, Exception, IntoJs, Object, Value};

use crate::test::LogLevel;
use crate::user::vu::{Vu, VuStage};

/// Nanoseconds in a millisecond.
const MILLISECOND: f64 = 1e6;

/// A substring of stack frames of a script.
const FILE: &str = "file://";

pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("scenario", scenario(ctx, vu)?)?;
    module.set("instance", instance(ctx, vu)?)?;
    module.set("test", test(ctx, vu)?)?;
    module.set("vu", user(ctx, vu)?)?;
    Ok(module)
}

/// An object whose properties can be read in some stages only.
struct InfoObject<'js> {
    object: Object<'js>,
    vu: Rc<Vu>,
    /// k6's error in a stage.
    refuses: fn(VuStage) -> Option<&'static str>,
}

impl<'js> InfoObject<'js> {
    fn new(
        ctx: &Ctx<'js>,
        vu: &Rc<Vu>,
        refuses: fn(VuStage) -> Option<&'static str>,
    ) -> rquickjs::Result<Self> {
        Ok(Self { object: Object::new(ctx.clone())?, vu: Rc::clone(vu), refuses })
    }

    /// Adds a property that is evaluated on each read.
    fn getter<T: IntoJs<'js> + 'js>(
        &self,
        name: &str,
        read: impl Fn(&Vu) -> T + 'js,
    ) -> rquickjs::Result<()> {
        let (vu, refuses) = (Rc::clone(&self.vu), self.refuses);
        let get = move |ctx: Ctx<'js>| match refuses(vu.stage.get()) {
            Some(why) => Err(go_error(&ctx, why)),
            None => Ok(read(&vu)),
        };
        self.object.prop(name, Accessor::new_get(get).enumerable().configurable())
    }

    /// Adds a property that is always the same object.
    fn constant(&self, name: &str, object: Object<'js>) -> rquickjs::Result<()> {
        let (vu, refuses) = (Rc::clone(&self.vu), self.refuses);
        // Not captured by the host function: the garbage collector cannot see captured values.
        let hidden = format!("__{name}");
        self.object.prop(hidden.as_str(), Property::from(object))?;
        let get = move |ctx: Ctx<'js>, this: This<Object<'js>>| match refuses(vu.stage.get()) {
            Some(why) => Err(go_error(&ctx, why)),
            None => this.0.get::<_, Value<'js>>(hidden.as_str()),
        };
        self.object.prop(name, Accessor::new_get(get).enumerable().configurable())
    }
}

fn of_users(stage: VuStage) -> Option<&'static str> {
    (stage == VuStage::Init)
        .then_some("getting VU information in the init context is not supported")
}

fn of_scenarios(stage: VuStage) -> Option<&'static str> {
    (stage != VuStage::Iteration)
        .then_some("getting scenario information outside of the VU context is not supported")
}

fn of_instances(stage: VuStage) -> Option<&'static str> {
    (stage == VuStage::Init)
        .then_some("getting instance information in the init context is not supported")
}

fn milliseconds(span: Nanos) -> f64 {
    span as f64 / MILLISECOND
}

fn scenario<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let scenario = InfoObject::new(ctx, vu, of_scenarios)?;
    scenario.getter("name", |vu| vu.scenario.name.clone())?;
    scenario.getter("executor", |vu| vu.scenario.executor.clone())?;
    scenario.getter("startTime", |vu| {
        let ago = vu.now().saturating_sub(vu.scenario_start.get());
        vu.test.unix_ms() - milliseconds(ago).floor()
    })?;
    scenario.getter("progress", |vu| vu.progress())?;
    scenario.getter("iterationInInstance", |vu| vu.instance_iteration.get() as f64)?;
    scenario.getter("iterationInTest", |vu| vu.scenario_iteration.get() as f64)?;
    Ok(scenario.object)
}

fn instance<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let instance = InfoObject::new(ctx, vu, of_instances)?;
    instance.getter("vusActive", |vu| vu.test.active(vu.now()) as f64)?;
    instance.getter("vusInitialized", |vu| vu.test.initialized() as f64)?;
    instance.getter("iterationsCompleted", |vu| vu.test.counters.completed() as f64)?;
    instance.getter("iterationsInterrupted", |vu| vu.test.counters.interrupted() as f64)?;
    instance.getter("currentTestRunDuration", |vu| vu.test.running_for().as_secs_f64() * 1e3)?;
    Ok(instance.object)
}

fn test<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let test = Object::new(ctx.clone())?;
    let user = Rc::clone(vu);
    let abort = move |ctx: Ctx<'js>, reason: Opt<Value<'js>>| -> rquickjs::Result<()> {
        let reason = given(reason.0).map(|reason| value::text(&ctx, &reason)).transpose()?;
        let reason = reason
            .map_or_else(|| "test aborted".to_owned(), |reason| format!("test aborted: {reason}"));
        let location = match user.stage.get() {
            VuStage::Setup | VuStage::Teardown | VuStage::Summary => String::new(),
            VuStage::Init | VuStage::Iteration => location(&ctx),
        };
        user.aborts.set(true);
        user.tasks.end();
        user.test.abort(reason + &location);
        Err(user.end(&ctx))
    };
    test.set("abort", named("exec.test", "abort", abort))?;
    let user = Rc::clone(vu);
    let fail = move |ctx: Ctx<'js>, reason: Opt<Value<'js>>| -> rquickjs::Result<()> {
        let reason = given(reason.0).map(|reason| value::text(&ctx, &reason)).transpose()?;
        if user.stage.get() == VuStage::Init {
            return Err(go_error(&ctx, "execution.test.fail() called outside of VU context"));
        }
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        user.test.log(LogLevel::Error, &format!("test marked as failed{reason}"), &[]);
        user.test.fail();
        Ok(())
    };
    test.set("fail", named("exec.test", "fail", fail))?;
    let user = Rc::clone(vu);
    let options = move |ctx: Ctx<'js>| -> rquickjs::Result<Value<'js>> {
        if user.stage.get() == VuStage::Init {
            let why = "getting test options in the init context is not supported";
            return Err(go_error(&ctx, why));
        }
        let json = user.test.options.get().map_or("{}", String::as_str);
        ctx.json_parse(json)
    };
    test.prop("options", Accessor::new_get(options).enumerable().configurable())?;
    Ok(test)
}

/// The script's location as ` at function (file:line)`; empty if unknown.
fn location(ctx: &Ctx<'_>) -> String {
    let here = Exception::from_message(ctx.clone(), "");
    let stack = here.map_or_else(|_| String::new(), |here| frames(here.as_object()));
    let frame = stack.lines().find(|line| line.contains(FILE)).map(str::trim);
    // Outside of functions, k6 writes only the file.
    let outside = frame.and_then(|frame| frame.strip_prefix("at <anonymous> ("));
    match outside {
        Some(location) => format!(" at {}", location.trim_end_matches(')')),
        None => frame.map_or_else(String::new, |frame| format!(" {frame}")),
    }
}

fn user<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let object = InfoObject::new(ctx, vu, of_users)?;
    object.getter("iterationInInstance", |vu| vu.iteration.get() as f64)?;
    object.getter("iterationInScenario", |vu| vu.own_iteration.get() as f64)?;
    object.getter("idInInstance", |vu| vu.number as f64)?;
    object.getter("idInTest", |vu| vu.number_in_test as f64)?;
    let tags = pairs(ctx, vu, &TAGS)?;
    object.constant("tags", tags.clone())?;
    let metrics = Object::new(ctx.clone())?;
    metrics.set("tags", tags)?;
    metrics.set("metadata", pairs(ctx, vu, &METADATA)?)?;
    object.constant("metrics", metrics)?;
    Ok(object.object)
}

type OwnPairs = RefCell<Vec<(String, String)>>;

/// Access to a user's key-value pairs, for an object of the script.
struct PairAccess {
    /// In errors: a pair.
    kind: &'static str,
    /// In errors: a value.
    value: &'static str,
    own: fn(&Vu) -> &OwnPairs,
    get: fn(&Vu, &str) -> Option<String>,
    names: fn(&Vu) -> Vec<String>,
}

/// The tags of a user's samples.
const TAGS: PairAccess = PairAccess {
    kind: "tag",
    // k6's plural.
    value: "tag values",
    own: |vu| &vu.tags,
    get: |vu, name| vu.own_tag(name),
    names: |vu| vu.tag_names(),
};

/// The metadata of a user's samples.
const METADATA: PairAccess = PairAccess {
    kind: "metadata",
    value: "metadata value",
    own: |vu| &vu.metadata,
    get: |vu, name| {
        let all = vu.metadata.borrow();
        all.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone())
    },
    names: |vu| vu.metadata.borrow().iter().map(|(name, _)| name.clone()).collect(),
};

/// An object that reads and writes a user's pairs.
fn pairs<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    pairs: &'static PairAccess,
) -> rquickjs::Result<Object<'js>> {
    let make: rquickjs::Function<'js> = value::evaluate(
        ctx,
        "(get, set, remove, names) => new Proxy({}, {
            get: (target, name) =>
                (typeof name === 'string' ? get(name) : undefined) ?? target[name],
            set: (_, name, value) => set(name, value),
            has: (_, name) => names().includes(name),
            deleteProperty: (_, name) => remove(name),
            ownKeys: () => names(),
            getOwnPropertyDescriptor: (_, name) => names().includes(name)
                ? { value: get(name), enumerable: true, configurable: true, writable: true }
                : undefined,
        })",
    )?;
    let user = Rc::clone(vu);
    let get = move |name: String| (pairs.get)(&user, &name);
    let user = Rc::clone(vu);
    let held = RefCell::new(HeapCharge::new(ctx, 0)?);
    let set = move |ctx: Ctx<'js>, name: String, given: Value<'js>| -> rquickjs::Result<bool> {
        if given.is_object() || given.is_undefined() || given.is_null() {
            let message = format!(
                "invalid value for metric {} '{name}': only String, Boolean and Number types are \
                 accepted as a metric {}",
                pairs.kind, pairs.value
            );
            return Err(Exception::throw_type(&ctx, &message));
        }
        let text = value::text(&ctx, &given)?;
        let mut tags = (pairs.own)(&user).borrow_mut();
        tags.retain(|(known, _)| *known != name);
        tags.push((name, text));
        let bytes = tags.iter().map(|(name, value)| name.len() + value.len() + PAIR).sum();
        if !held.borrow_mut().resize(bytes) {
            tags.pop();
            return Err(throw_out_of_memory(&ctx));
        }
        Ok(true)
    };
    let user = Rc::clone(vu);
    let remove = move |name: String| {
        (pairs.own)(&user).borrow_mut().retain(|(known, _)| *known != name);
        true
    };
    let user = Rc::clone(vu);
    let names = move || (pairs.names)(&user);
    make.call((
        named("exec.vu", "tags", get),
        named("exec.vu", "tags", set),
        named("exec.vu", "tags", remove),
        named("exec.vu", "tags", names),
    ))
}
