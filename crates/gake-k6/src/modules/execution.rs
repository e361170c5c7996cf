//! The module `k6/execution`: what a script can know of the test, and end.

use std::rc::Rc;

use gake_core::clock::Nanos;
use rquickjs::function::{Func, Opt};
use rquickjs::object::Accessor;
use rquickjs::{Ctx, Exception, IntoJs, Object, Value};

use super::value::{self, given};
use crate::test::LogLevel;
use crate::user::vu::Vu;

/// Nanoseconds in a millisecond.
const MILLISECOND: f64 = 1e6;

pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("scenario", scenario(ctx, vu)?)?;
    module.set("instance", instance(ctx, vu)?)?;
    module.set("test", test(ctx, vu)?)?;
    module.set("vu", user(ctx, vu)?)?;
    Ok(module)
}

/// Gives an object a property that is read anew each time.
fn getter<'js, T: IntoJs<'js> + 'js>(
    object: &Object<'js>,
    vu: &Rc<Vu>,
    name: &str,
    read: impl Fn(&Vu) -> T + 'js,
) -> rquickjs::Result<()> {
    let vu = Rc::clone(vu);
    object.prop(name, Accessor::new_get(move || read(&vu)).enumerable().configurable())
}

fn milliseconds(span: Nanos) -> f64 {
    span as f64 / MILLISECOND
}

fn scenario<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let scenario = Object::new(ctx.clone())?;
    getter(&scenario, vu, "name", |vu| vu.scenario.name.clone())?;
    getter(&scenario, vu, "executor", |vu| vu.scenario.executor.clone())?;
    getter(&scenario, vu, "startTime", |vu| {
        let ago = vu.now().saturating_sub(vu.scenario_start.get());
        vu.test.unix_ms() - milliseconds(ago).floor()
    })?;
    getter(&scenario, vu, "progress", |vu| vu.progress())?;
    getter(&scenario, vu, "iterationInInstance", |vu| vu.scenario_iteration.get() as f64)?;
    getter(&scenario, vu, "iterationInTest", |vu| vu.scenario_iteration.get() as f64)?;
    Ok(scenario)
}

fn instance<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let instance = Object::new(ctx.clone())?;
    getter(&instance, vu, "vusActive", |vu| vu.test.levels.active() as f64)?;
    getter(&instance, vu, "vusInitialized", |vu| vu.test.levels.ready() as f64)?;
    getter(&instance, vu, "iterationsCompleted", |vu| vu.test.levels.completed() as f64)?;
    getter(&instance, vu, "iterationsInterrupted", |vu| vu.test.levels.interrupted() as f64)?;
    getter(&instance, vu, "currentTestRunDuration", |vu| {
        vu.test.began.elapsed().as_secs_f64() * 1e3
    })?;
    Ok(instance)
}

fn test<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let test = Object::new(ctx.clone())?;
    let user = Rc::clone(vu);
    let abort = move |ctx: Ctx<'js>, reason: Opt<Value<'js>>| -> rquickjs::Result<()> {
        let reason = given(reason.0).map(|reason| value::text(&ctx, &reason)).transpose()?;
        let reason = reason
            .map_or_else(|| "test aborted".to_owned(), |reason| format!("test aborted: {reason}"));
        user.test.abort(reason);
        Err(user.end(&ctx))
    };
    test.set("abort", Func::from(abort))?;
    let user = Rc::clone(vu);
    let fail = move |ctx: Ctx<'js>, reason: Opt<Value<'js>>| -> rquickjs::Result<()> {
        let reason = given(reason.0).map(|reason| value::text(&ctx, &reason)).transpose()?;
        user.test.fail();
        let reason = reason.unwrap_or_default();
        user.test.log(LogLevel::Error, &format!("test failed: {reason}"), &[]);
        Ok(())
    };
    test.set("fail", Func::from(fail))?;
    let user = Rc::clone(vu);
    let options = move |ctx: Ctx<'js>| -> rquickjs::Result<Value<'js>> {
        let json = user.test.options.get().map_or("{}", String::as_str);
        ctx.json_parse(json)
    };
    test.prop("options", Accessor::new_get(options).enumerable().configurable())?;
    Ok(test)
}

fn user<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    getter(&object, vu, "iterationInInstance", |vu| vu.iteration.get() as f64)?;
    getter(&object, vu, "iterationInScenario", |vu| vu.own_iteration.get() as f64)?;
    getter(&object, vu, "idInInstance", |vu| vu.number as f64)?;
    getter(&object, vu, "idInTest", |vu| vu.number as f64)?;
    let tags = tags(ctx, vu)?;
    object.set("tags", tags.clone())?;
    let metrics = Object::new(ctx.clone())?;
    metrics.set("tags", tags)?;
    metrics.set("metadata", Object::new(ctx.clone())?)?;
    object.set("metrics", metrics)?;
    Ok(object)
}

/// An object whose properties are the user's tags.
fn tags<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let make: rquickjs::Function<'js> = ctx.eval(
        "(get, set, remove, names) => new Proxy({}, {
            get: (_, name) => (typeof name === 'string' ? get(name) : undefined),
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
    let get = move |name: String| user.own_tag(&name);
    let user = Rc::clone(vu);
    let set = move |ctx: Ctx<'js>, name: String, given: Value<'js>| -> rquickjs::Result<bool> {
        if given.is_object() || given.is_undefined() || given.is_null() {
            let message = format!(
                "the tag {name:?} cannot be set: only String, Boolean and Number types are \
                 accepted as a metric tag value"
            );
            return Err(Exception::throw_type(&ctx, &message));
        }
        let text = value::text(&ctx, &given)?;
        let mut tags = user.tags.borrow_mut();
        tags.retain(|(known, _)| *known != name);
        tags.push((name, text));
        Ok(true)
    };
    let user = Rc::clone(vu);
    let remove = move |name: String| {
        user.tags.borrow_mut().retain(|(known, _)| *known != name);
        true
    };
    let user = Rc::clone(vu);
    let names = move || user.tag_names();
    make.call((Func::from(get), Func::from(set), Func::from(remove), Func::from(names)))
}
