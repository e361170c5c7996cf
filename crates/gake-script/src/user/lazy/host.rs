//! The patched QuickJS: it calls back when a property is looked up.

#![expect(
    unsafe_code,
    reason = "calls of and from QuickJS for properties that are made when they are looked up: rquickjs does not know them"
)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use rquickjs::{Ctx, Object, Value, qjs};

use super::LazyList;

/// What QuickJS knows of a list, made on first use.
#[derive(Debug)]
pub(super) struct HostList(OnceLock<RawList>);

/// `JSHostList` of quickjs.h.
#[repr(C)]
#[derive(Debug)]
struct RawList {
    names: *const *const c_char,
    len: c_int,
    make: unsafe extern "C" fn(*mut qjs::JSContext, qjs::JSValue, c_int, *mut c_void) -> c_int,
    opaque: *mut c_void,
}

// SAFETY: it points to immutable data with a static lifetime.
unsafe impl Send for RawList {}
// SAFETY: as above.
unsafe impl Sync for RawList {}

unsafe extern "C" {
    fn JS_SetHostLists(lists: *const *const RawList);
    fn JS_DeferProperties(
        ctx: *mut qjs::JSContext,
        object: qjs::JSValue,
        list: *const RawList,
    ) -> c_int;
}

impl HostList {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
}

fn raw(list: &'static LazyList) -> &'static RawList {
    list.host.0.get_or_init(|| {
        let names: Vec<*const c_char> = list.names.iter().map(|name| name.as_ptr()).collect();
        RawList {
            names: names.leak().as_ptr(),
            len: list.names.len() as c_int,
            make: make_one,
            opaque: ptr::from_ref(list).cast_mut().cast(),
        }
    })
}

pub(super) fn register(lists: impl IntoIterator<Item = &'static LazyList>) {
    let lists = lists.into_iter().map(|list| ptr::from_ref(raw(list)));
    let lists: Vec<*const RawList> = lists.chain([ptr::null()]).collect();
    // SAFETY: a null-terminated array with a static lifetime.
    unsafe { JS_SetHostLists(lists.leak().as_ptr()) };
}

pub(super) fn define(object: &Object<'_>, list: &'static LazyList) -> rquickjs::Result<()> {
    let ctx = object.ctx().as_raw().as_ptr();
    // SAFETY: the object is one of this context, which is alive.
    match unsafe { JS_DeferProperties(ctx, object.as_raw(), raw(list)) } {
        0 => Ok(()),
        _ => Err(rquickjs::Error::Exception),
    }
}

/// Creates property `index` of the list `opaque`. Returns a negative number on an exception.
unsafe extern "C" fn make_one(
    ctx: *mut qjs::JSContext,
    object: qjs::JSValue,
    index: c_int,
    opaque: *mut c_void,
) -> c_int {
    let Some(raw) = NonNull::new(ctx) else { return -1 };
    // SAFETY: QuickJS calls this with a list of `raw`, which is never freed.
    let list = unsafe { &*opaque.cast::<LazyList>() };
    // SAFETY: the context of the lookup, whose runtime is locked by the caller.
    let ctx = unsafe { Ctx::from_raw(raw) };
    // SAFETY: an object of this context; the value owns a reference to it.
    let value = unsafe { Value::from_raw(ctx, qjs::JS_DupValue(raw.as_ptr(), object)) };
    let name = usize::try_from(index).ok().and_then(|index| list.names.get(index));
    match (value.into_object(), name) {
        (Some(object), Some(name)) if (list.make)(&object, name).is_ok() => 0,
        _ => -1,
    }
}
