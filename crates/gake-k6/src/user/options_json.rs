//! The `options` of a script as JSON.

use std::cell::Cell;
use std::rc::Rc;

use gake_js::native::named;
use rquickjs::{Ctx, Object, Value};

/// The options as JSON. Stores the first number that JSON has not.
pub(super) fn options_json<'js>(
    ctx: &Ctx<'js>,
    exports: &Object<'js>,
    unsupported: &Rc<Cell<Option<&'static str>>>,
) -> rquickjs::Result<Option<String>> {
    let options: Value<'js> = exports.get("options")?;
    let first = Rc::clone(unsupported);
    let look = move |_key: Value<'js>, value: Value<'js>| {
        if let Some(number) = value.as_float().filter(|number| !number.is_finite()) {
            first.set(first.get().or(Some(go_number(number))));
        }
        value
    };
    let json = ctx.json_stringify_replacer(options, named("", "options", look))?;
    json.map(|json| json.to_string()).transpose()
}

/// A number that is not finite, as Go writes it.
fn go_number(number: f64) -> &'static str {
    match number {
        _ if number.is_nan() => "NaN",
        _ if number > 0.0 => "+Inf",
        _ => "-Inf",
    }
}
