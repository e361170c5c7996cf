//! Errors that scripts see from k6's own functions.

use rquickjs::object::Property;
use rquickjs::{Ctx, Error, Exception, Function, Object, Value};

use crate::native::named;

/// The name of errors that come from k6 itself; scripts test it.
const NAME: &str = "GoError";

/// A property of an error: the name of k6's function that threw it.
const NATIVE: &str = "__gake_native";

/// Throws an error of k6's own.
pub fn go_error(ctx: &Ctx<'_>, message: &str) -> Error {
    let error = match Exception::from_message(ctx.clone(), message) {
        Ok(error) => error,
        Err(error) => return error,
    };
    match make_go_error(ctx, error.as_object()) {
        Ok(()) => error.throw(),
        Err(error) => error,
    }
}

/// Names an error, and the class that it seems to be of.
fn make_go_error<'js>(ctx: &Ctx<'js>, error: &Object<'js>) -> rquickjs::Result<()> {
    error.set("name", NAME)?;
    let class: Function<'js> = ctx.eval("(function GoError() {})")?;
    error.prop("constructor", Property::from(class).writable().configurable())
}

/// Throws an error of k6's own whose stack begins with this native function.
pub fn go_error_of(ctx: &Ctx<'_>, native: &str, message: &str) -> Error {
    let error = go_error(ctx, message);
    if !error.is_exception() {
        return error;
    }
    let thrown = ctx.catch();
    if let Some(object) = thrown.as_object() {
        // Not enumerable. On failure the stack only lacks a line.
        let _ = object.prop(NATIVE, Property::from(native));
    }
    ctx.throw(thrown)
}

/// An error of Go as scripts see it: `error()` and its text are the message. It is no `Error` for
/// scripts, and has no stack.
pub fn go_value<'js>(ctx: &Ctx<'js>, message: &str) -> rquickjs::Result<Value<'js>> {
    // The log shows the text of an object that QuickJS has made as an error.
    let error = Exception::from_message(ctx.clone(), message)?.into_object();
    for name in ["message", "stack"] {
        error.remove(name)?;
    }
    error.set_prototype(Some(&Object::new(ctx.clone())?))?;
    let text = message.to_owned();
    error.set("error", named("error", "error", move || text.clone()))?;
    let text = message.to_owned();
    let shown = named("error", "toString", move || text.clone());
    error.prop("toString", Property::from(shown))?;
    Ok(error.into_value())
}

/// A native function that throws, for JavaScript of k6's modules.
pub fn fail(ctx: Ctx<'_>, message: String) -> rquickjs::Result<()> {
    Err(go_error(&ctx, &message))
}

/// The native function that threw an error, if known.
pub fn native_frame(thrown: &Value<'_>) -> Option<String> {
    thrown.as_object()?.get::<_, Option<String>>(NATIVE).ok()?
}

/// Inserts a native function into the stack of an error, between its callee and its caller.
pub fn through_native<T>(
    ctx: &Ctx<'_>,
    native: &str,
    result: rquickjs::Result<T>,
) -> rquickjs::Result<T> {
    let Err(error) = result else { return result };
    if !error.is_exception() {
        return Err(error);
    }
    let thrown = ctx.catch();
    if let Some(object) = thrown.as_object().filter(|object| object.is_error()) {
        let here = Exception::from_message(ctx.clone(), "").ok().and_then(|here| here.stack());
        let outer = here.unwrap_or_default().lines().count();
        let stack: String = object.get("stack").unwrap_or_default();
        let mut frames: Vec<&str> = stack.lines().collect();
        let own = format!("    at {native} (native)");
        if let Some(place) = frames.len().checked_sub(outer) {
            frames.insert(place, &own);
            // On failure the stack only lacks a line.
            let _ = object.set("stack", frames.join("\n") + "\n");
        }
    }
    Err(ctx.throw(thrown))
}
