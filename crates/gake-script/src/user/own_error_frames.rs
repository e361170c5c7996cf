//! Stacks of errors by the published QuickJS: `stack` is the frames.

use rquickjs::{Ctx, Object};

/// What `error.stack` is, of an error and its frames.
pub type StackText = fn(&Object<'_>, &str) -> String;

/// Has no effect: the published QuickJS shows the frames.
pub fn show_stacks(_: StackText) {}

/// The frames of an error, one a line; empty without any.
#[must_use]
pub fn frames(error: &Object<'_>) -> String {
    error.get("stack").unwrap_or_default()
}

/// Empty: the published QuickJS does not tell which `throw` they are of.
#[must_use]
pub fn take_frames(_: &Ctx<'_>) -> String {
    String::new()
}

/// Replaces the frames of an error; `None`: it has no stack.
///
/// # Errors
/// When the user's memory is full.
pub fn set_frames(error: &Object<'_>, frames: Option<&str>) -> rquickjs::Result<()> {
    match frames {
        Some(frames) => error.set("stack", frames),
        None => error.remove("stack"),
    }
}
