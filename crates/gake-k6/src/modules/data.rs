//! The module `k6/data`: arrays shared by all users of a process.

use gake_js::native::named;
use std::rc::Rc;
use std::sync::Arc;

use gake_js::errors::go_error;
use gake_js::value;
use rquickjs::{Array, Ctx, Function, Object, Value};

use crate::user::vu::{Vu, VuStage};

/// Creates an array proxy from a length and a function that returns an element.
const PROXY: &str = include_str!("shared_array.js");

/// Creates a constructor from a function.
const CONSTRUCTOR: &str = "(make) => function SharedArray(name, elements) {
    return make(name, elements);
}";

pub(super) fn make<'js>(ctx: &Ctx<'js>, vu: &Rc<Vu>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    let user = Rc::clone(vu);
    let make = move |ctx: Ctx<'js>, name: String, elements: Function<'js>| {
        shared_array(&ctx, &user, &name, &elements)
    };
    let constructor: Function<'js> = value::evaluate(ctx, CONSTRUCTOR)?;
    module.set(
        "SharedArray",
        constructor.call::<_, Function<'js>>((named("", "SharedArray", make),))?,
    )?;
    Ok(module)
}

fn shared_array<'js>(
    ctx: &Ctx<'js>,
    vu: &Vu,
    name: &str,
    elements: &Function<'js>,
) -> rquickjs::Result<Value<'js>> {
    if vu.stage.get() != VuStage::Init {
        let message = "new SharedArray must be called in the init context";
        return Err(go_error(ctx, message));
    }
    if name.is_empty() {
        let message = "empty name provided to SharedArray's constructor";
        return Err(go_error(ctx, message));
    }
    let shared = match vu.test.arrays.get(name) {
        Some(known) => known,
        None => {
            let (elements, bound) = (json_elements(ctx, elements)?, vu.test.settings().bodies);
            let kept = vu.test.arrays.keep(name, elements, bound);
            kept.map_err(|why| go_error(ctx, &why))?
        }
    };
    proxied(ctx, &shared)
}

/// A JavaScript array of shared elements.
pub(super) fn proxied<'js>(ctx: &Ctx<'js>, shared: &Arc<[String]>) -> rquickjs::Result<Value<'js>> {
    // Not captured by the host function: the garbage collector cannot see captured values.
    let proxy: Function<'js> = value::evaluate(ctx, PROXY)?;
    let shared = Arc::clone(shared);
    let len = shared.len();
    let element = move |ctx: Ctx<'js>, index: usize| match shared.get(index) {
        Some(json) => ctx.json_parse(json.as_str()),
        None => Ok(Value::new_undefined(ctx)),
    };
    proxy.call((len, named("", "SharedArray", element)))
}

/// The elements that a function returns, each as JSON.
fn json_elements<'js>(ctx: &Ctx<'js>, elements: &Function<'js>) -> rquickjs::Result<Vec<String>> {
    let returned: Value<'js> = elements.call(())?;
    let Some(array): Option<&Array<'js>> = returned.as_array() else {
        let message = "only arrays can be made into SharedArray";
        return Err(go_error(ctx, message));
    };
    let json = |element: rquickjs::Result<Value<'js>>| {
        let json = ctx.json_stringify(element?)?;
        json.map_or_else(|| Ok("null".to_owned()), |json| json.to_string())
    };
    value::elements(ctx, array)?.map(json).collect()
}
