//! Globals of a script: `__VU`, `__ITER`, `__ENV`, `crypto`, `console`, timers and others.

use gake_js::native::named;
use std::ffi::{CStr, CString};
use std::rc::Rc;
use std::sync::OnceLock;

use gake_core::clock::Clock;
use gake_js::crypto::{random, uuid};
use gake_js::errors::go_error;
use gake_js::value::{buffer, evaluate, given};
use gake_js::{crypto_subtle, text_codec};
use gake_script::user::{Completion, LazyList, bound, lazily};
use rquickjs::function::{Opt, Rest, This};
use rquickjs::object::{Accessor, Property};
use rquickjs::{Coerced, Ctx, Exception, FromJs, Function, IntoJs, Object, Persistent, Value};

use super::timers::INTERVAL;
use super::vu::Vu;
use super::{console, loader};
use crate::modules::seed_random;

/// Nanoseconds in a millisecond.
const MILLISECOND: f64 = 1e6;

const ENV: &str = "__ENV";

/// Difference between the seeds of two users: an odd number of random bits.
const USER_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Globals that are created on first use.
pub(crate) static LIST: LazyList = LazyList::new(
    &[
        c"__ENV",
        c"TextDecoder",
        c"TextEncoder",
        c"crypto",
        c"console",
        c"open",
        c"require",
        c"setTimeout",
        c"setInterval",
        c"clearTimeout",
        c"clearInterval",
    ],
    make_global,
);

pub(crate) fn install<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<()> {
    let globals = ctx.globals();
    lazily(&globals, &LIST)?;
    globals.set("global", globals.clone())?;
    globals.set("__VU", vu.number as f64)?;
    if let Some(seed) = vu.test.settings().seed {
        seed_random(ctx, seed.wrapping_add(vu.number_in_test.wrapping_mul(USER_STEP)))?;
    }
    Ok(())
}

fn make_global<'js>(globals: &Object<'js>, name: &'static CStr) -> rquickjs::Result<()> {
    let ctx = globals.ctx();
    let vu = Vu::of(ctx)?;
    let name = name.to_str()?;
    match name {
        ENV => {
            let environment = environment(ctx, &vu)?;
            globals.prop(name, Property::from(environment).writable().enumerable().configurable())
        }
        "crypto" => {
            let crypto = crypto(ctx)?;
            crypto.prop("subtle", Accessor::new_get(subtle_once).enumerable().configurable())?;
            globals.set(name, crypto)
        }
        "TextDecoder" | "TextEncoder" => {
            let class: Value<'js> = text_codec::make(ctx)?.get(name)?;
            globals.prop(name, Property::from(class).writable().configurable())
        }
        "console" => globals.set(name, console::make(ctx)?),
        "open" => globals.set(name, named("", name, loader::open::open)),
        "require" => globals.set(name, named("", name, loader::require)),
        "setTimeout" | INTERVAL => {
            let start = move |ctx: Ctx<'js>,
                              callback: Opt<Value<'js>>,
                              delay: Opt<Value<'js>>,
                              arguments: Rest<Value<'js>>| {
                start_timer(&ctx, &vu, name, callback.0, delay.0, arguments)
            };
            globals.set(name, named("", name, start))
        }
        _ => {
            let clear = move |number: Opt<Value<'js>>| {
                let number = number.0.and_then(|number| number.as_number());
                if let Some(number) = number {
                    vu.timers.clear(number as u32);
                }
            };
            globals.set(name, named("", name, clear))
        }
    }
}

/// Starts a timer: `setTimeout`, or `setInterval`, which repeats. Returns its number.
fn start_timer<'js>(
    ctx: &Ctx<'js>,
    vu: &Rc<Vu>,
    name: &str,
    callback: Option<Value<'js>>,
    delay: Option<Value<'js>>,
    arguments: Rest<Value<'js>>,
) -> rquickjs::Result<u32> {
    let callback = bound(ctx, callback_of(ctx, name, callback)?)?;
    vu.room_for_task(ctx)?;
    let delay = delay.map(|delay| Coerced::<f64>::from_js(ctx, delay)).transpose()?;
    let delay = delay.map_or(0.0, |delay| delay.0);
    let repeats = name == INTERVAL;
    let number = vu.timers.next(repeats);
    let arguments = arguments.0.into_js(ctx)?;
    let timer = ScriptTimer {
        number,
        delay: (delay.max(0.0) * MILLISECOND) as u64,
        repeats,
        callback: Persistent::save(ctx, callback),
        arguments: Persistent::save(ctx, arguments),
    };
    timer.start(vu);
    Ok(number)
}

/// The callback of a timer; throws k6's errors for other values.
fn callback_of<'js>(
    ctx: &Ctx<'js>,
    timer: &str,
    callback: Option<Value<'js>>,
) -> rquickjs::Result<Function<'js>> {
    let Some(callback) = given(callback) else {
        return Err(go_error(ctx, &format!("{timer}'s callback isn't a callable function")));
    };
    match callback.as_function() {
        Some(function) => Ok(function.clone()),
        None => {
            let text = Coerced::<String>::from_js(ctx, callback)?.0;
            let why = format!(
                "could not convert function call parameter 0: could not convert {text} to \
                 sobek.Callable"
            );
            Err(Exception::throw_type(ctx, &why))
        }
    }
}

/// The variables of the process's first test; other tests mostly have the same.
static VARIABLES: OnceLock<&LazyList> = OnceLock::new();

/// The environment's variables as a lazy list: a script reads few of them.
pub(crate) fn variables(environment: &[(String, String)]) -> &'static LazyList {
    VARIABLES.get_or_init(|| {
        // Names of variables contain no zero byte.
        let names = environment.iter().filter_map(|(name, _)| CString::new(name.as_str()).ok());
        LazyList::leaked(names.collect(), make_variable)
    })
}

fn make_variable<'js>(made: &Object<'js>, name: &'static CStr) -> rquickjs::Result<()> {
    let vu = Vu::of(made.ctx())?;
    let name = name.to_str()?;
    let mut variables = vu.test.settings().environment.iter();
    let value = variables.find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    made.set(name, value)
}

/// `__ENV`.
fn environment<'js>(ctx: &Ctx<'js>, vu: &Vu) -> rquickjs::Result<Object<'js>> {
    let made = Object::new(ctx.clone())?;
    let all = &vu.test.settings().environment;
    let list = variables(all);
    let is_this = |(name, _): &(String, String), known: &&CStr| name.as_bytes() == known.to_bytes();
    let freezes = vu.test.settings().features.freeze_env;
    if !freezes
        && all.len() == list.names().len()
        && all.iter().zip(list.names()).all(|(a, b)| is_this(a, b))
    {
        lazily(&made, list)?;
    } else {
        for (name, value) in all {
            made.set(name.as_str(), value.as_str())?;
        }
    }
    for (name, value) in &vu.scenario.environment {
        made.set(name.as_str(), value.as_str())?;
    }
    if freezes {
        let freeze: Function<'js> = ctx.globals().get::<_, Object<'js>>("Object")?.get("freeze")?;
        freeze.call::<_, ()>((made.clone(),))?;
    }
    Ok(made)
}

/// `crypto.subtle`, created on first use: most scripts have none.
fn subtle_once<'js>(ctx: Ctx<'js>, this: This<Object<'js>>) -> rquickjs::Result<Object<'js>> {
    let made = crypto_subtle::make(&ctx)?;
    this.0.prop("subtle", Property::from(made.clone()).enumerable().configurable())?;
    Ok(made)
}

/// WebCrypto without keys.
fn crypto<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let crypto = Object::new(ctx.clone())?;
    let fill = |ctx: Ctx<'js>, view: Object<'js>| -> rquickjs::Result<Object<'js>> {
        let takes: bool = evaluate::<Function<'js>>(
            &ctx,
            "(view) => ArrayBuffer.isView(view) && !(view instanceof Float32Array) &&
                !(view instanceof Float64Array) && !(view instanceof DataView)",
        )?
        .call((view.clone(),))?;
        if !takes {
            let message = "TypeMismatchError: typedArray parameter isn't a TypedArray instance";
            return Err(go_error(&ctx, message));
        }
        let length: usize = view.get("byteLength")?;
        let bytes = buffer(&ctx, random(&ctx, length)?)?;
        // As bytes, whatever the element type of the view.
        let write: Function<'js> = evaluate(
            &ctx,
            "(view, bytes) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
                .set(new Uint8Array(bytes))",
        )?;
        write.call::<_, ()>((view.clone(), bytes))?;
        Ok(view)
    };
    crypto.set("getRandomValues", named("", "getRandomValues", fill))?;
    let random_uuid = |ctx: Ctx<'js>| random(&ctx, 16).map(uuid);
    crypto.set("randomUUID", named("", "randomUUID", random_uuid))?;
    Ok(crypto)
}

#[derive(Clone)]
struct ScriptTimer {
    number: u32,
    delay: u64,
    repeats: bool,
    callback: Persistent<Function<'static>>,
    arguments: Persistent<Value<'static>>,
}

impl ScriptTimer {
    fn start(self, vu: &Rc<Vu>) {
        let user = Rc::clone(vu);
        vu.tasks.add(async move {
            let until = user.clock.now().saturating_add(self.delay);
            user.timers.sleep(self.number, user.clock.sleep_until(until)).await;
            Box::new(move |ctx: &Ctx<'_>| self.fire(ctx, &user)) as Completion
        });
    }

    fn fire(self, ctx: &Ctx<'_>, vu: &Rc<Vu>) -> rquickjs::Result<()> {
        if !vu.timers.fires(self.number) {
            return Ok(());
        }
        let callback = self.callback.clone().restore(ctx)?;
        let arguments: Vec<Value<'_>> = self.arguments.clone().restore(ctx)?.get()?;
        if self.repeats {
            self.start(vu);
        }
        callback.call::<_, ()>((Rest(arguments),))
    }
}
