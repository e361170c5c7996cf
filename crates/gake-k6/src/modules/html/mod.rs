//! The module `k6/html`, also used by responses.
//!
//! Selections and elements are JavaScript (`selection.js`, `element.js`) on node numbers; the
//! functions of pages are native.

mod page_functions;

use std::rc::Rc;

use rquickjs::object::Property;
use rquickjs::{Ctx, Function, Object, Value};

use super::value::evaluate;

/// Creates `parseHTML`, `submitForm` and `clickLink` from native functions.
const SELECTION: &str = include_str!("selection.js");

/// Creates the class of elements.
const ELEMENT: &str = include_str!("element.js");

/// The hidden global that caches these functions.
const CACHE: &str = "__html";

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("parseHTML", kit(ctx)?.get::<_, Value<'js>>("parseHTML")?)?;
    Ok(module)
}

/// The functions for HTML, created once in each user.
pub(in crate::modules) fn kit<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    if let Some(kit) = ctx.globals().get::<_, Option<Object<'js>>>(CACHE)? {
        return Ok(kit);
    }
    let element: Function<'js> = evaluate(ctx, ELEMENT)?;
    let selection: Function<'js> = evaluate(ctx, SELECTION)?;
    let kit: Object<'js> = selection.call((page_functions::make(ctx)?, element))?;
    ctx.globals().prop(CACHE, Property::from(kit.clone()))?;
    Ok(kit)
}

type SharedPage = Rc<gake_html::Page>;
