//! Memory of the host that belongs to a script's heap.

#![expect(
    unsafe_code,
    reason = "JS_ChargeHeap of the vendored QuickJS, which rquickjs does not have"
)]

use std::ptr::NonNull;

use rquickjs::{Ctx, qjs};

unsafe extern "C" {
    fn JS_ChargeHeap(runtime: *mut qjs::JSRuntime, bytes: i64) -> bool;
}

/// Bytes that the host holds for a script, counted within the bound on its heap until this is
/// dropped. Must not outlive the script's runtime: keep it in a value of the script, or on the
/// stack.
#[derive(Debug)]
pub struct HeapCharge {
    runtime: NonNull<qjs::JSRuntime>,
    bytes: i64,
}

impl HeapCharge {
    /// A charge of `bytes` on the heap of `ctx`.
    ///
    /// # Errors
    /// The exception of a full heap.
    pub fn new(ctx: &Ctx<'_>, bytes: usize) -> rquickjs::Result<Self> {
        // SAFETY: the context is alive.
        let runtime = NonNull::new(unsafe { qjs::JS_GetRuntime(ctx.as_raw().as_ptr()) });
        let mut charge = Self { runtime: runtime.ok_or(rquickjs::Error::Allocation)?, bytes: 0 };
        match charge.grow(bytes) {
            true => Ok(charge),
            false => Err(throw_out_of_memory(ctx)),
        }
    }

    /// Adds bytes. Returns whether they fit; if they do not, nothing changes.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let Ok(bytes) = i64::try_from(bytes) else { return false };
        // SAFETY: the runtime is alive, and used by this thread only.
        let fits = unsafe { JS_ChargeHeap(self.runtime.as_ptr(), bytes) };
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

impl Drop for HeapCharge {
    fn drop(&mut self) {
        // SAFETY: the runtime is alive: a charge does not outlive it.
        unsafe { JS_ChargeHeap(self.runtime.as_ptr(), -self.bytes) };
    }
}

/// Throws the exception of a full heap.
#[must_use]
pub fn throw_out_of_memory(ctx: &Ctx<'_>) -> rquickjs::Error {
    // SAFETY: the context is alive; the value returned marks the exception.
    unsafe { qjs::JS_ThrowOutOfMemory(ctx.as_raw().as_ptr()) };
    rquickjs::Error::Exception
}
