//! State of the host that a script's asynchronous code carries: what runs after an `await` or in a
//! handler of a promise has the state that was in force when it was written down.

#![expect(unsafe_code, reason = "hooks of QuickJS's promises: rquickjs does not know them")]

use std::any::Any;
use std::ptr::NonNull;
use std::rc::Rc;

use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{Class, Ctx, Function, JsLifetime, Value, qjs};

/// Whether [`carry`] has an effect: the published QuickJS has no such hooks.
pub const CARRIES_STATE: bool = true;

/// A state of the host.
pub trait CarriedState {
    /// The state that is in force.
    fn now(&self) -> Rc<dyn Any>;
    /// Puts a state in force that [`CarriedState::now`] returned.
    fn set(&self, state: &Rc<dyn Any>);
}

unsafe extern "C" {
    fn JS_SetReactionHooks(
        rt: *mut qjs::JSRuntime,
        capture: unsafe extern "C" fn(*mut qjs::JSContext) -> qjs::JSValue,
        swap: unsafe extern "C" fn(*mut qjs::JSContext, qjs::JSValue) -> qjs::JSValue,
    );
}

/// The user data of a context: whose state is carried.
struct Carrier(Rc<dyn CarriedState>);

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for Carrier {
    type Changed<'to> = Self;
}

/// A state as a value of the script, which sees nothing of it.
struct Held(Rc<dyn Any>);

impl<'js> Trace<'js> for Held {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for Held {
    type Changed<'to> = Self;
}

impl<'js> JsClass<'js> for Held {
    const NAME: &'static str = "State";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> rquickjs::Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// Carries a state from now on through all promises of a context's runtime.
pub fn carry(ctx: &Ctx<'_>, state: Rc<dyn CarriedState>) {
    // Fails only if the data is borrowed; it does not exist yet.
    let _ = ctx.store_userdata(Carrier(state));
    // SAFETY: the runtime of a context that is alive; it may call both as long as it lives.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
        JS_SetReactionHooks(runtime, capture, swap);
    }
}

/// A function that calls `function` under the state of now; `function` itself without a carrier.
///
/// # Errors
/// When there is no memory.
pub fn bound<'js>(ctx: &Ctx<'js>, function: Function<'js>) -> rquickjs::Result<Function<'js>> {
    let Some(carrier) = carrier(ctx) else { return Ok(function) };
    let state = Class::instance(ctx.clone(), Held(carrier.now()))?;
    let swap = |ctx: Ctx<'js>, state: Class<'js, Held>| swapped(&ctx, &state);
    let bind: Function<'js> = ctx.eval(
        "((swap, state, call) => function (...args) {
            const outer = swap(state);
            try { return Reflect.apply(call, this, args); } finally { swap(outer); }
        })",
    )?;
    bind.call((Function::new(ctx.clone(), swap)?, state, function))
}

fn carrier(ctx: &Ctx<'_>) -> Option<Rc<dyn CarriedState>> {
    ctx.userdata::<Carrier>().map(|carrier| Rc::clone(&carrier.0))
}

/// Puts a state in force, and returns the one before.
fn swapped<'js>(ctx: &Ctx<'js>, state: &Class<'js, Held>) -> rquickjs::Result<Class<'js, Held>> {
    let carrier = carrier(ctx).ok_or(rquickjs::Error::Unknown)?;
    let before = carrier.now();
    carrier.set(&state.borrow().0);
    Class::instance(ctx.clone(), Held(before))
}

/// A reference of QuickJS's to a state.
fn given(ctx: &Ctx<'_>, held: rquickjs::Result<Class<'_, Held>>) -> qjs::JSValue {
    match held {
        // SAFETY: a value of this context; the caller owns the new reference.
        Ok(held) => unsafe { qjs::JS_DupValue(ctx.as_raw().as_ptr(), held.as_value().as_raw()) },
        Err(_) => qjs::JS_EXCEPTION,
    }
}

/// QuickJS adds a reaction to a promise.
unsafe extern "C" fn capture(raw: *mut qjs::JSContext) -> qjs::JSValue {
    let Some(raw) = NonNull::new(raw) else { return qjs::JS_UNDEFINED };
    // SAFETY: the context that adds it, whose runtime is locked by the caller.
    let ctx = unsafe { Ctx::from_raw(raw) };
    let Some(carrier) = carrier(&ctx) else { return qjs::JS_UNDEFINED };
    given(&ctx, Class::instance(ctx.clone(), Held(carrier.now())))
}

/// QuickJS begins or ends a reaction.
unsafe extern "C" fn swap(raw: *mut qjs::JSContext, state: qjs::JSValue) -> qjs::JSValue {
    let Some(raw) = NonNull::new(raw) else { return qjs::JS_UNDEFINED };
    // SAFETY: the context of the reaction, whose runtime is locked by the caller.
    let ctx = unsafe { Ctx::from_raw(raw) };
    // SAFETY: a value of this context; the new one owns a reference to it.
    let state = unsafe { Value::from_raw(ctx.clone(), qjs::JS_DupValue(raw.as_ptr(), state)) };
    match Class::<Held>::from_value(&state) {
        Ok(state) => match swapped(&ctx, &state) {
            Ok(before) => given(&ctx, Ok(before)),
            // Without memory for the state before, this one stays.
            Err(_) => qjs::JS_UNDEFINED,
        },
        Err(_) => qjs::JS_UNDEFINED,
    }
}
