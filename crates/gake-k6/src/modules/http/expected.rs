//! The statuses that a script expects.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime"
)]

use gake_js::errors::go_error;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{Class, Ctx, JsLifetime, Value};

use crate::user::vu::StatusExpectation;

/// The result of `http.expectedStatuses`.
pub(crate) struct ExpectedStatuses(StatusExpectation);

impl<'js> Trace<'js> for ExpectedStatuses {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for ExpectedStatuses {
    type Changed<'to> = Self;
}

impl<'js> JsClass<'js> for ExpectedStatuses {
    const NAME: &'static str = "ExpectedStatuses";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> rquickjs::Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// `http.expectedStatuses(200, { min: 300, max: 399 })`.
pub(super) fn make<'js>(
    ctx: &Ctx<'js>,
    arguments: &[Value<'js>],
) -> rquickjs::Result<Class<'js, ExpectedStatuses>> {
    if arguments.is_empty() {
        return Err(go_error(ctx, "no arguments"));
    }
    let mut ranges = Vec::with_capacity(arguments.len());
    for (number, argument) in (1..).zip(arguments) {
        let range = match (argument.as_number(), argument.as_object()) {
            (Some(status), _) => Some((status as u16, status as u16)),
            (None, Some(range)) => {
                range.get::<_, u16>("min").ok().zip(range.get::<_, u16>("max").ok())
            }
            _ => None,
        };
        ranges.push(range.ok_or_else(|| {
            let message = format!(
                "argument number {number} to expectedStatuses was neither an integer nor an object \
                 like {{min:100, max:329}}"
            );
            go_error(ctx, &message)
        })?);
    }
    Class::instance(ctx.clone(), ExpectedStatuses(StatusExpectation::Ranges(ranges)))
}

/// The expectation of a `responseCallback`, none if it is `null`; other values are `refused`.
pub(super) fn of<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    refused: &str,
) -> rquickjs::Result<StatusExpectation> {
    if value.is_null() || value.is_undefined() {
        return Ok(StatusExpectation::Nothing);
    }
    let class = value.as_object().and_then(Class::<ExpectedStatuses>::from_object);
    let class = class.ok_or_else(|| go_error(ctx, refused))?;
    let expected = class.borrow().0.clone();
    Ok(expected)
}
