//! The module `k6/experimental/streams`: readable streams.

use rquickjs::{Ctx, Function, Object};

/// Makes the classes.
const STREAMS: &str = include_str!("streams.js");

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    ctx.eval::<Function<'js>, _>(STREAMS)?.call(())
}
