//! Stacks of errors, by the patched QuickJS: their frames, and the text that scripts see.

#![expect(
    unsafe_code,
    reason = "QuickJS keeps the frames of an error and asks for the text of its `stack`: rquickjs knows neither"
)]

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::OnceLock;

use rquickjs::{Ctx, IntoJs, Object, Value, qjs};

/// What `error.stack` is, of an error and its frames.
pub type StackText = fn(&Object<'_>, &str) -> String;

static TEXT: OnceLock<StackText> = OnceLock::new();

type RawText =
    unsafe extern "C" fn(*mut qjs::JSContext, qjs::JSValue, qjs::JSValue) -> qjs::JSValue;

/// The command of `js_std_cmd` for the backtrace of the last exception.
const BACKTRACE: c_int = 2;

unsafe extern "C" {
    fn JS_SetStackText(text: RawText);
    fn JS_ErrorFrames(error: qjs::JSValue) -> *mut qjs::JSValue;
}

/// Sets the text of `error.stack`, for all scripts of the process. Only the first call has an
/// effect.
pub fn show_stacks(text: StackText) {
    TEXT.get_or_init(|| {
        // SAFETY: a function lives as long as the process.
        unsafe { JS_SetStackText(shown) };
        text
    });
}

/// The frames of an error as QuickJS writes them, one a line; empty without any.
#[must_use]
pub fn frames(error: &Object<'_>) -> String {
    // SAFETY: QuickJS returns where the frames are in the object, which is alive, or null.
    let frames = unsafe { JS_ErrorFrames(error.as_value().as_raw()).as_ref() };
    let frames = frames.map(|frames| value(error.ctx(), *frames));
    let frames = frames.and_then(|frames| frames.as_string()?.to_string().ok());
    frames.unwrap_or_default()
}

/// Replaces the frames of an error; `None`: it has no stack.
///
/// # Errors
/// When the user's memory is full.
pub fn set_frames(error: &Object<'_>, frames: Option<&str>) -> rquickjs::Result<()> {
    let ctx = error.ctx();
    // Without a text, QuickJS would add frames to what is `undefined`.
    let new = match frames {
        Some(frames) => frames.into_js(ctx)?,
        None => Value::new_null(ctx.clone()),
    };
    // SAFETY: as in `frames`.
    let Some(slot) = (unsafe { JS_ErrorFrames(error.as_value().as_raw()).as_mut() }) else {
        return Ok(());
    };
    // SAFETY: the slot owns a reference to the new value, and no longer one to the old.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        let old = std::mem::replace(slot, qjs::JS_DupValue(raw, new.as_raw()));
        qjs::JS_FreeValue(raw, old);
    }
    Ok(())
}

/// The frames of the last `throw` that no script caught, also of what is no error; forgets them.
#[must_use]
pub fn take_frames(ctx: &Ctx<'_>) -> String {
    let mut frames = qjs::JS_UNDEFINED;
    // SAFETY: the command takes a context and where it puts the reference.
    unsafe { qjs::js_std_cmd(BACKTRACE, ctx.as_raw().as_ptr(), &raw mut frames) };
    // SAFETY: a value of this context's runtime, whose reference is now owned here.
    let frames = unsafe { Value::from_raw(ctx.clone(), frames) };
    frames.as_string().and_then(|frames| frames.to_string().ok()).unwrap_or_default()
}

/// A new reference to a value of QuickJS's.
fn value<'js>(ctx: &Ctx<'js>, raw: qjs::JSValue) -> Value<'js> {
    // SAFETY: a value of this context's runtime; the result owns the new reference.
    unsafe { Value::from_raw(ctx.clone(), qjs::JS_DupValue(ctx.as_raw().as_ptr(), raw)) }
}

/// QuickJS asks for the `stack` of an error.
unsafe extern "C" fn shown(
    raw: *mut qjs::JSContext,
    error: qjs::JSValue,
    frames: qjs::JSValue,
) -> qjs::JSValue {
    let Some(raw) = NonNull::new(raw) else { return qjs::JS_UNDEFINED };
    // SAFETY: the context that asks, whose runtime is locked by the caller.
    let ctx = unsafe { Ctx::from_raw(raw) };
    let (error, frames) = (value(&ctx, error), value(&ctx, frames));
    let text = error
        .as_object()
        .zip(frames.as_string())
        .and_then(|(error, frames)| Some(TEXT.get()?(error, &frames.to_string().ok()?)));
    match text.into_js(&ctx) {
        // SAFETY: the caller owns the new reference.
        Ok(text) => unsafe { qjs::JS_DupValue(raw.as_ptr(), text.as_raw()) },
        Err(_) => qjs::JS_EXCEPTION,
    }
}
