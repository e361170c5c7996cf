//! The module `k6/html`, also used by responses.
//!
//! Selections and elements are JavaScript (`selection.js`, `element.js`) on node numbers; the
//! functions of pages are native.

mod page_functions;

use std::ops::Deref;
use std::rc::Rc;

use gake_html::{Page, ParseError};
use gake_script::user::{HeapCharge, WaitError, give_way, throw_out_of_memory, throw_wait_error};
use rquickjs::object::Property;
use rquickjs::{Ctx, Function, Object, Value};

use crate::errors::go_error;
use crate::value::evaluate;

/// Creates `parseHTML`, `submitForm` and `clickLink` from native functions.
const SELECTION: &str = include_str!("selection.js");

/// Creates the class of elements.
const ELEMENT: &str = include_str!("element.js");

/// Go's error for a page whose elements are nested too deeply.
const TOO_DEEP: &str = "html: open stack of elements exceeds 512 nodes";

/// The hidden global that caches these functions.
const CACHE: &str = "__html";

/// The exports of `k6/html`.
pub fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("parseHTML", kit(ctx)?.get::<_, Value<'js>>("parseHTML")?)?;
    Ok(module)
}

/// The functions for HTML, created once in each user.
pub fn kit<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    if let Some(kit) = ctx.globals().get::<_, Option<Object<'js>>>(CACHE)? {
        return Ok(kit);
    }
    let element: Function<'js> = evaluate(ctx, ELEMENT)?;
    let selection: Function<'js> = evaluate(ctx, SELECTION)?;
    let kit: Object<'js> = selection.call((page_functions::make(ctx)?, element))?;
    ctx.globals().prop(CACHE, Property::from(kit.clone()))?;
    Ok(kit)
}

type SharedPage = Rc<HeldPage>;

/// A page of a script, counted within the bound on its heap.
struct HeldPage {
    page: Page,
    _held: HeapCharge,
}

impl HeldPage {
    fn parse(ctx: &Ctx<'_>, text: &str) -> rquickjs::Result<Self> {
        let mut held = HeapCharge::new(ctx, 0)?;
        let page = Page::parse(text, give_way, |bytes| held.grow(bytes));
        let page = page.map_err(|why| match why {
            ParseError::TooDeep => go_error(ctx, TOO_DEEP),
            ParseError::TooLarge => throw_out_of_memory(ctx),
            ParseError::Ended => throw_wait_error(ctx, WaitError::Ended),
        })?;
        Ok(Self { page, _held: held })
    }

    /// What a search found, unless the script had to end meanwhile.
    fn found<T>(&self, ctx: &Ctx<'_>, found: T) -> rquickjs::Result<T> {
        match self.page.take_cut() {
            true => Err(throw_wait_error(ctx, WaitError::Ended)),
            false => Ok(found),
        }
    }
}

impl Deref for HeldPage {
    type Target = Page;

    fn deref(&self) -> &Page {
        &self.page
    }
}
