//! The module `k6`: check, fail, group, sleep, randomSeed.

use gake_js::native::named;
use std::ffi::CStr;
use std::rc::Rc;
use std::time::Duration;

use gake_core::clock::nanos;
use gake_core::random::SplitMix64;
use gake_js::errors::{go_error, go_error_of, through_native};
use gake_js::value::{self, given, truthy};
use gake_script::user::{LazyList, lazily};
use rquickjs::atom::PredefinedAtom;
use rquickjs::function::Opt;
use rquickjs::{Ctx, Exception, Function, Object, Value};

use crate::metrics::BuiltinMetric;
use crate::user::metric_context::MetricContext;
use crate::user::vu::{SampleTags, Vu, VuStage};

/// k6's error for a check that returns a promise.
const ASYNC_CHECK: &str = "the built-in check() does not support async functions as arguments. Use the JavaScript utils \
     library as a replacement. Refer to \
     https://grafana.com/docs/k6/latest/javascript-api/jslib/utils/check/ for more info";

/// k6's error for a group that is an async function.
const ASYNC_GROUP: &str = "group() does not support async functions as arguments, please see \
     https://grafana.com/docs/k6/latest/javascript-api/k6/group/ for more info";

/// The native functions in k6's stacks.
const CHECK: &str = "go.k6.io/k6/v2/internal/js/modules/k6.(*K6).Check-fm";
const GROUP: &str = "go.k6.io/k6/v2/internal/js/modules/k6.(*K6).Group-fm";

/// Separates the names of a group's path.
const SEPARATOR: &str = "::";

pub(super) static LIST: LazyList =
    LazyList::new(&[c"check", c"group", c"sleep", c"fail", c"randomSeed"], make_property);

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    lazily(&module, &LIST)?;
    Ok(module)
}

fn make_property<'js>(module: &Object<'js>, name: &'static CStr) -> rquickjs::Result<()> {
    let vu = Vu::of(module.ctx())?;
    let name = name.to_str()?;
    match name {
        "check" => {
            let check = move |ctx: Ctx<'js>,
                              value: Opt<Value<'js>>,
                              sets: Opt<Value<'js>>,
                              tags: Opt<Value<'js>>| {
                let value = value.0.unwrap_or_else(|| Value::new_undefined(ctx.clone()));
                through_native(&ctx, CHECK, check(&ctx, &vu, value, sets.0, tags.0))
            };
            module.set(name, named("k6", name, check))
        }
        "group" => {
            let group = move |ctx: Ctx<'js>, name: Opt<Value<'js>>, function: Opt<Value<'js>>| {
                let name = value::text_argument(&ctx, name.0)?;
                through_native(&ctx, GROUP, group(&ctx, &vu, &name, function.0))
            };
            module.set(name, named("k6", name, group))
        }
        "sleep" => {
            let sleep = move |ctx: Ctx<'js>, seconds: Opt<Value<'js>>| {
                sleep(&ctx, &vu, value::number_argument(&ctx, seconds.0)?)
            };
            module.set(name, named("k6", name, sleep))
        }
        "fail" => {
            let fail = |ctx: Ctx<'js>, reason: Opt<Value<'js>>| -> rquickjs::Result<()> {
                let reason = reason.0.map(|reason| value::text(&ctx, &reason)).transpose()?;
                let native = "go.k6.io/k6/v2/internal/js/modules/k6.(*K6).Fail-fm";
                Err(go_error_of(&ctx, native, &reason.unwrap_or_default()))
            };
            module.set(name, named("k6", name, fail))
        }
        _ => {
            let seed = |ctx: Ctx<'js>, seed: Opt<Value<'js>>| {
                let seed = value::number_argument(&ctx, seed.0)?;
                seed_random(&ctx, seed as i64 as u64)
            };
            module.set(name, named("k6", name, seed))
        }
    }
}

fn checked_name(ctx: &Ctx<'_>, name: &str) -> rquickjs::Result<()> {
    if name.contains(SEPARATOR) {
        return Err(go_error(ctx, "group and check names may not contain '::'"));
    }
    Ok(())
}

/// Runs checks and records each, until one throws. Returns whether all pass.
fn check<'js>(
    ctx: &Ctx<'js>,
    vu: &Vu,
    value: Value<'js>,
    sets: Option<Value<'js>>,
    tags: Option<Value<'js>>,
) -> rquickjs::Result<bool> {
    vu.not_in_init(ctx, "Using check()")?;
    let Some(sets) = sets else {
        return Err(go_error(ctx, "no checks provided to `check`"));
    };
    if given(Some(sets.clone())).is_none() {
        return Err(Exception::throw_type(ctx, "Cannot convert undefined or null to object"));
    }
    let Some(sets) = sets.as_object() else { return Ok(true) };
    let mut tags = value::tags(ctx, tags)?.map_err(|why| go_error(ctx, &why))?;
    let is_tagged = vu.test.has_system_tag("check");
    if is_tagged {
        tags.push(("check".to_owned(), String::new()));
    }
    let mut all = true;
    for property in sets.props::<String, Value<'js>>() {
        let (name, check) = property?;
        checked_name(ctx, &name)?;
        let result = match check.as_function() {
            Some(function) => {
                let result = function.call::<_, Value<'js>>((value.clone(),));
                // A promise of another function is a value.
                if result.as_ref().is_ok_and(Value::is_promise) && is_async(function)? {
                    return Err(go_error(ctx, ASYNC_CHECK));
                }
                result
            }
            None => Ok(check.clone()),
        };
        let passed = match &result {
            Ok(result) => truthy(ctx, result.clone())?,
            Err(_) => false,
        };
        if let Some(tag) = tags.last_mut().filter(|_| is_tagged) {
            tag.1 = name;
        }
        let set = vu.series_index.tag_set(&SampleTags { vu, tags: &tags });
        vu.record(BuiltinMetric::Checks, &set, f64::from(passed));
        result?;
        all &= passed;
    }
    Ok(all)
}

/// Calls a function within a group.
fn group<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    name: &str,
    function: Option<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    vu.not_in_init(ctx, "Using group()")?;
    let function = function.and_then(Value::into_function);
    let Some(function) = function else {
        return Err(go_error(ctx, "group() requires a callback as a second argument"));
    };
    let is_carried = vu.test.settings().features.async_metric_context;
    if !is_carried && is_async(&function)? {
        return Err(go_error(ctx, ASYNC_GROUP));
    }
    checked_name(ctx, name)?;
    let outer = Rc::clone(&vu.group.borrow());
    let context = is_carried.then(|| MetricContext::of(vu));
    // As in k6, only at the top a group without a name is its outer group.
    if !name.is_empty() || !outer.is_empty() {
        *vu.group.borrow_mut() = format!("{outer}{SEPARATOR}{name}").into();
    }
    let start = vu.now();
    let entered = is_carried.then(|| vu.series_index.tag_set(&**vu));
    let result = function.call::<_, Value<'js>>(());
    let set = entered.unwrap_or_else(|| vu.series_index.tag_set(&**vu));
    *vu.group.borrow_mut() = outer;
    context.iter().for_each(|context| context.restore(vu));
    let user = Rc::clone(vu);
    let end = move || {
        let took = user.now().saturating_sub(start) as f64;
        user.record(BuiltinMetric::GroupDuration, &set, took);
    };
    match result {
        Ok(promised) if is_carried && is_thenable(&promised)? => {
            let then: Function<'js> = value::evaluate(ctx, SETTLED)?;
            then.call((promised, named("k6", "endOfGroup", end)))
        }
        result => {
            end();
            result
        }
    }
}

/// What an async group returns: `end` is called when it has ended.
const SETTLED: &str = "(promised, end) => Promise.resolve(promised).then(
    (value) => { end(); return value; },
    (why) => { end(); throw why; },
)";

fn is_thenable(value: &Value<'_>) -> rquickjs::Result<bool> {
    let then = value.as_object().map(|object| object.get::<_, Value<'_>>("then")).transpose()?;
    Ok(then.is_some_and(|then| then.is_function()))
}

fn is_async(function: &Function<'_>) -> rquickjs::Result<bool> {
    let tag: Option<String> = function.get(PredefinedAtom::SymbolToStringTag)?;
    Ok(tag.as_deref() == Some("AsyncFunction"))
}

fn sleep(ctx: &Ctx<'_>, vu: &Vu, seconds: f64) -> rquickjs::Result<()> {
    let pause = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::ZERO);
    if vu.stage.get() == VuStage::Init {
        // Loading is blocking anyway.
        std::thread::sleep(pause);
        return Ok(());
    }
    let until = vu.now().saturating_add(nanos(pause));
    vu.pause(ctx, until)
}

/// Replaces `Math.random` by a seeded generator.
pub(crate) fn seed_random(ctx: &Ctx<'_>, seed: u64) -> rquickjs::Result<()> {
    let math: Object<'_> = ctx.globals().get("Math")?;
    let sequence = std::cell::RefCell::new(SplitMix64::new(seed));
    math.set("random", named("Math", "random", move || sequence.borrow_mut().unit()))
}
