//! The module `k6/html`, and what responses have of it.
//!
//! Selections and elements are JavaScript (`selection.js`, `element.js`) on the numbers of nodes;
//! what they ask of a page is in `native`.

mod native;

use std::rc::Rc;

use rquickjs::object::Property;
use rquickjs::{Ctx, Function, Object, Value};

use super::value::evaluate;

/// Makes `parseHTML`, `submitForm` and `clickLink` of what is native.
const SELECTION: &str = include_str!("selection.js");

/// Makes the class of elements.
const ELEMENT: &str = include_str!("element.js");

/// Where the globals keep what was made.
const KEPT: &str = "__html";

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("parseHTML", kit(ctx)?.get::<_, Value<'js>>("parseHTML")?)?;
    Ok(module)
}

/// The functions for HTML, made once in each user.
pub(in crate::modules) fn kit<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    if let Some(kit) = ctx.globals().get::<_, Option<Object<'js>>>(KEPT)? {
        return Ok(kit);
    }
    let element: Function<'js> = evaluate(ctx, ELEMENT)?;
    let selection: Function<'js> = evaluate(ctx, SELECTION)?;
    let kit: Object<'js> = selection.call((native::make(ctx)?, element))?;
    ctx.globals().prop(KEPT, Property::from(kit.clone()))?;
    Ok(kit)
}

/// A page that scripts and selections share.
type SharedPage = Rc<gake_html::Page>;
