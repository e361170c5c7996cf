//! Errors that scripts see from k6's own functions.

use gake_script::user::{frames, set_frames};
use rquickjs::object::Property;
use rquickjs::{Ctx, Error, Exception, Function, Object, Value};

use crate::native::named;

/// The name of errors that come from k6 itself; scripts test it.
const NAME: &str = "GoError";

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
        // On failure the stack only lacks a line.
        let _ = set_frames(object, Some(&format!("{}\n{}", native_frame(native), frames(object))));
    }
    ctx.throw(thrown)
}

/// An error of Go as scripts see it: `error()` and its text are the message. It is no `Error` for
/// scripts, and has no stack.
pub fn go_value<'js>(ctx: &Ctx<'js>, message: &str) -> rquickjs::Result<Value<'js>> {
    // The log shows the text of an object that QuickJS has made as an error.
    let error = Exception::from_message(ctx.clone(), message)?.into_object();
    error.remove("message")?;
    set_frames(&error, None)?;
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

/// The frame of a native function.
fn native_frame(native: &str) -> String {
    format!("    at {native} (native)")
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
        let here = Exception::from_message(ctx.clone(), "");
        let outer = here.map_or(0, |here| frames(here.as_object()).lines().count());
        let stack = frames(object);
        let mut lines: Vec<&str> = stack.lines().collect();
        let own = native_frame(native);
        if let Some(place) = lines.len().checked_sub(outer) {
            lines.insert(place, &own);
            // On failure the stack only lacks a line.
            let _ = set_frames(object, Some(&(lines.join("\n") + "\n")));
        }
    }
    Err(ctx.throw(thrown))
}
