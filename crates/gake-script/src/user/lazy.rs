//! Lazy properties of host objects, created on first lookup.
//!
//! A script uses few of them, and a function takes some 250 bytes for each user. The vendored
//! QuickJS does the same for its built-in objects.

#![expect(
    unsafe_code,
    reason = "calls of and from QuickJS for properties that are made when they are looked up: rquickjs does not know them"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use rquickjs::{Ctx, Object, Value, qjs};

/// Names of lazy properties, and the function that creates one.
#[derive(Debug)]
pub struct LazyList {
    names: &'static [&'static CStr],
    make: fn(&Object<'_>, &'static CStr) -> rquickjs::Result<()>,
    host: OnceLock<HostList>,
}

/// `JSHostList` of quickjs.h.
#[repr(C)]
#[derive(Debug)]
struct HostList {
    names: *const *const c_char,
    len: c_int,
    make: unsafe extern "C" fn(*mut qjs::JSContext, qjs::JSValue, c_int, *mut c_void) -> c_int,
    opaque: *mut c_void,
}

// SAFETY: it points to immutable data with a static lifetime.
unsafe impl Send for HostList {}
// SAFETY: as above.
unsafe impl Sync for HostList {}

unsafe extern "C" {
    fn JS_SetHostLists(lists: *const *const HostList);
    fn JS_DeferProperties(
        ctx: *mut qjs::JSContext,
        object: qjs::JSValue,
        list: *const HostList,
    ) -> c_int;
    fn JS_OpenModule(
        ctx: *mut qjs::JSContext,
        name: *const c_char,
        object: qjs::JSValue,
        lacks_null: bool,
    ) -> c_int;
}

impl LazyList {
    /// A list. `make` defines the property with a name on an object.
    #[must_use]
    pub const fn new(
        names: &'static [&'static CStr],
        make: fn(&Object<'_>, &'static CStr) -> rquickjs::Result<()>,
    ) -> Self {
        Self { names, make, host: OnceLock::new() }
    }

    /// A list of names known only at run time. Leaked.
    #[must_use]
    pub fn leaked(
        names: Vec<CString>,
        make: fn(&Object<'_>, &'static CStr) -> rquickjs::Result<()>,
    ) -> &'static Self {
        let names: Vec<&'static CStr> =
            names.into_iter().map(|name| &*Box::leak(name.into_boxed_c_str())).collect();
        Box::leak(Box::new(Self::new(names.leak(), make)))
    }

    /// The names of the properties.
    #[must_use]
    pub fn names(&self) -> &'static [&'static CStr] {
        self.names
    }

    fn host(&'static self) -> &'static HostList {
        self.host.get_or_init(|| {
            let names: Vec<*const c_char> = self.names.iter().map(|name| name.as_ptr()).collect();
            HostList {
                names: names.leak().as_ptr(),
                len: self.names.len() as c_int,
                make: make_one,
                opaque: ptr::from_ref(self).cast_mut().cast(),
            }
        })
    }
}

/// Registers lists, once for the process and before its first user. Objects with unregistered lists
/// have all properties from the start.
pub fn share_lists<L>(lists: impl FnOnce() -> L)
where
    L: IntoIterator<Item = &'static LazyList>,
{
    static SHARED: OnceLock<()> = OnceLock::new();
    SHARED.get_or_init(|| {
        let hosts = lists().into_iter().map(|list| ptr::from_ref(list.host()));
        let hosts: Vec<*const HostList> = hosts.chain([ptr::null()]).collect();
        // SAFETY: a null-terminated array with a static lifetime.
        unsafe { JS_SetHostLists(hosts.leak().as_ptr()) };
    });
}

/// Defines the properties of a list on an object that has none of them.
///
/// # Errors
/// When a property that is created immediately throws.
pub fn lazily(object: &Object<'_>, list: &'static LazyList) -> rquickjs::Result<()> {
    let ctx = object.ctx().as_raw().as_ptr();
    // SAFETY: the object is one of this context, which is alive.
    match unsafe { JS_DeferProperties(ctx, object.as_raw(), list.host()) } {
        0 => Ok(()),
        _ => Err(rquickjs::Error::Exception),
    }
}

/// Lets the declared module `name` also export the properties of an object.
///
/// # Errors
/// When there is no such module, or no memory.
pub fn open_module(
    ctx: &Ctx<'_>,
    name: &str,
    object: &Object<'_>,
    lacks_null: bool,
) -> rquickjs::Result<()> {
    let name = CString::new(name)?;
    let context = ctx.as_raw().as_ptr();
    // SAFETY: the object is one of this context, which is alive.
    match unsafe { JS_OpenModule(context, name.as_ptr(), object.as_raw(), lacks_null) } {
        0 => Ok(()),
        _ => Err(rquickjs::Error::Unknown),
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
    // SAFETY: QuickJS calls this with a list of `LazyList::host`, which is never freed.
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rquickjs::{Context, Runtime};

    use super::*;

    thread_local! {
        static MADE: Cell<usize> = const { Cell::new(0) };
    }

    static LIST: LazyList = LazyList::new(&[c"one", c"two", c"three"], |object, name| {
        MADE.set(MADE.get() + 1);
        let name = name.to_string_lossy();
        object.set(&*name, name.len())
    });

    static OTHER: LazyList = LazyList::new(&[c"five", c"six"], |object, name| {
        MADE.set(MADE.get() + 1);
        object.set(&*name.to_string_lossy(), 0)
    });

    /// The result of a script with such an object, and the number of properties created.
    fn of(script: &str) -> (String, usize) {
        share_lists(|| [&LIST, &OTHER]);
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        MADE.set(0);
        let text = context.with(|ctx| {
            let object = Object::new(ctx.clone()).unwrap();
            lazily(&object, &LIST).unwrap();
            ctx.globals().set("it", object).unwrap();
            ctx.eval::<String, _>(format!("String({script})")).unwrap()
        });
        (text, MADE.get())
    }

    #[test]
    fn a_property_is_created_on_lookup() {
        assert_eq!(of("1"), ("1".to_owned(), 0));
        assert_eq!(of("it.two + it.two"), ("6".to_owned(), 1));
        assert_eq!(of("it.four"), ("undefined".to_owned(), 0));
        assert_eq!(of("(it.one = 9, it.one)"), ("9".to_owned(), 1));
    }

    #[test]
    fn an_object_can_have_two_lists() {
        share_lists(|| [&LIST, &OTHER]);
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| {
            let object = Object::new(ctx.clone()).unwrap();
            lazily(&object, &LIST).unwrap();
            lazily(&object, &OTHER).unwrap();
            ctx.globals().set("it", object).unwrap();
            MADE.set(0);
            assert_eq!(ctx.eval::<i32, _>("it.six + it.three + it.six").unwrap(), 5);
            assert_eq!(MADE.get(), 2);
            let all = "six,three,one,two,five";
            assert_eq!(ctx.eval::<String, _>("Object.keys(it).join()").unwrap(), all);
            assert_eq!(MADE.get(), 5);
        });
    }

    #[test]
    fn enumeration_includes_lazy_properties() {
        let all = r#"{"one":3,"two":3,"three":5}"#.to_owned();
        assert_eq!(of("JSON.stringify(it)"), (all.clone(), 3));
        assert_eq!(of("JSON.stringify({ ...it })"), (all.clone(), 3));
        assert_eq!(of("JSON.stringify(Object.freeze(it))"), (all, 3));
        assert_eq!(of("(delete it.two, Object.keys(it))"), ("one,three".to_owned(), 3));
        assert_eq!(of("(() => { let s = ''; for (const n in it) s += n; return s })()").1, 3);
    }
}
