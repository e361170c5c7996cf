//! Errors that scripts see from k6's own functions.

use rquickjs::{Ctx, Error, Exception, Object};

/// The name of errors that come from k6 itself: scripts look at it.
const NAME: &str = "GoError";

/// Throws an error of k6's own.
pub(crate) fn go_error(ctx: &Ctx<'_>, message: &str) -> Error {
    let error = match Exception::from_message(ctx.clone(), message) {
        Ok(error) => error,
        Err(error) => return error,
    };
    let object: &Object<'_> = error.as_object();
    match object.set("name", NAME) {
        Ok(()) => error.throw(),
        Err(error) => error,
    }
}
