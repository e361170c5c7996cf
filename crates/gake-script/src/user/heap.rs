//! Memory of the host that belongs to a script's heap.

#![expect(
    unsafe_code,
    reason = "blocks of QuickJS's allocator and its exception of a full heap, which rquickjs does not have"
)]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rquickjs::{Ctx, qjs};

/// Steps of large charges, in bytes.
const STEP: usize = 64 << 10;

/// Bytes that the host holds for a script, counted within the bound on its heap until this is
/// dropped. Must not outlive the script's runtime: keep it in a value of the script, or on the
/// stack.
///
/// They are counted as a block of that size of the script's heap, which is never written: beyond
/// some pages it takes no memory.
#[derive(Debug)]
pub struct HeapCharge {
    runtime: NonNull<qjs::JSRuntime>,
    block: *mut c_void,
    bytes: usize,
}

impl HeapCharge {
    /// A charge of `bytes` on the heap of `ctx`.
    ///
    /// # Errors
    /// The exception of a full heap.
    pub fn new(ctx: &Ctx<'_>, bytes: usize) -> rquickjs::Result<Self> {
        // SAFETY: the context is alive.
        let runtime = NonNull::new(unsafe { qjs::JS_GetRuntime(ctx.as_raw().as_ptr()) });
        let runtime = runtime.ok_or(rquickjs::Error::Allocation)?;
        let mut charge = Self { runtime, block: ptr::null_mut(), bytes: 0 };
        match charge.grow(bytes) {
            true => Ok(charge),
            false => Err(throw_out_of_memory(ctx)),
        }
    }

    /// Adds bytes. Returns whether they fit; if they do not, nothing changes.
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.bytes.checked_add(bytes).is_some_and(|bytes| self.resize(bytes))
    }

    /// Changes the number of bytes. Returns whether they fit; if they do not, nothing changes.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let Some(size) = block_size(bytes) else { return false };
        if Some(size) != block_size(self.bytes) {
            let runtime = self.runtime.as_ptr();
            // SAFETY: the runtime is alive, and used by this thread only; the block is its own, or
            // null.
            let block = unsafe { qjs::js_realloc_rt(runtime, self.block, size as qjs::size_t) };
            // No bytes have no block.
            if block.is_null() && size > 0 {
                return false;
            }
            self.block = block;
        }
        self.bytes = bytes;
        true
    }
}

/// Bytes of the block for a charge: large ones change in steps, as moving one takes long.
fn block_size(bytes: usize) -> Option<usize> {
    if bytes <= STEP { Some(bytes) } else { bytes.checked_next_multiple_of(STEP) }
}

impl Drop for HeapCharge {
    fn drop(&mut self) {
        // SAFETY: the runtime is alive: a charge does not outlive it. The block is its own, or null.
        unsafe { qjs::js_free_rt(self.runtime.as_ptr(), self.block) };
    }
}

/// Throws the exception of a full heap.
#[must_use]
pub fn throw_out_of_memory(ctx: &Ctx<'_>) -> rquickjs::Error {
    // SAFETY: the context is alive; the value returned marks the exception.
    unsafe { qjs::JS_ThrowOutOfMemory(ctx.as_raw().as_ptr()) };
    rquickjs::Error::Exception
}
