//! The published QuickJS: every property from the start.

use rquickjs::Object;

use super::LazyList;

#[derive(Debug)]
pub(super) struct HostList;

impl HostList {
    pub(super) const fn new() -> Self {
        Self
    }
}

pub(super) fn register(_: impl IntoIterator<Item = &'static LazyList>) {}

pub(super) fn define(object: &Object<'_>, list: &'static LazyList) -> rquickjs::Result<()> {
    list.names.iter().try_for_each(|name| (list.make)(object, name))
}
