//! The module `k6/timers`: re-exports the global timers.

use rquickjs::{Ctx, Object, Value};

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    for name in ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] {
        module.set(name, ctx.globals().get::<_, Value<'js>>(name)?)?;
    }
    Ok(module)
}
