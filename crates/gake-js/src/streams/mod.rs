//! The module `k6/experimental/streams`: readable and writable streams.

use rquickjs::{Ctx, Function, Object, Value};

use crate::value::evaluate;

const READABLE: &str = include_str!("readable.js");
const WRITABLE: &str = include_str!("writable.js");

/// The exports of `k6/experimental/streams`.
pub fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module: Object<'js> = evaluate::<Function<'js>>(ctx, READABLE)?.call(())?;
    let writable: Object<'js> = evaluate::<Function<'js>>(ctx, WRITABLE)?.call(())?;
    for property in writable.props::<String, Value<'js>>() {
        let (name, class) = property?;
        module.set(name, class)?;
    }
    Ok(module)
}
