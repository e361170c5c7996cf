//! The module `k6/experimental/streams`: readable streams.

use rquickjs::{Ctx, Function, Object};

use super::value::evaluate;

const STREAMS: &str = include_str!("streams.js");

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    evaluate::<Function<'js>>(ctx, STREAMS)?.call(())
}
