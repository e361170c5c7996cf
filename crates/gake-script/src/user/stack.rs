//! Stacks of coroutines, in lazily committed memory.

#![expect(
    unsafe_code,
    reason = "stacks in one mapping without guard pages, because a process may run out of mappings"
)]

use std::cell::RefCell;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

use corosensei::stack::{Stack, StackPointer};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;

/// Bytes of one stack. Untouched pages cost nothing.
pub(crate) const STACK_BYTES: usize = 512 << 10;

/// Stack of scripts. The rest is for host functions: a TLS handshake takes tens of kilobytes.
pub(crate) const SCRIPT_STACK_BYTES: usize = STACK_BYTES - (160 << 10);

/// Stacks of a mapping.
const STACKS_PER_SLAB: usize = 64;

/// Bytes at the end of a stack that must stay zero.
const CANARY_BYTES: usize = 64;

/// Memory of a stack that is kept between uses.
const KEPT_BYTES: usize = 64 << 10;

/// Stack used by the call that frees memory.
const OWN_BYTES: usize = 2 << 10;

/// A pool of stacks for one thread.
#[derive(Debug, Default)]
pub struct Stacks {
    slabs: RefCell<Vec<Slab>>,
    free: RefCell<Vec<NonNull<u8>>>,
}

/// Adjacent stacks without guard pages, which would exhaust the 65,530 mappings of a process.
#[derive(Debug)]
struct Slab {
    base: NonNull<u8>,
}

impl Slab {
    const BYTES: usize = STACKS_PER_SLAB * STACK_BYTES;

    fn new() -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping does not affect existing ones.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                Self::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )?
        };
        // SAFETY: the range is the new mapping. Huge pages would waste 2 MB for a few kilobytes; a
        // kernel without them fails, which is fine.
        let _ = unsafe { madvise(base, Self::BYTES, Advice::LinuxNoHugepage) };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: the slab owns the mapping, and leases keep the `Stacks` alive, so no stack is in
        // use.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), Self::BYTES) };
    }
}

impl Stacks {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Leases a stack.
    ///
    /// # Errors
    /// When no address space is left.
    pub(crate) fn lease(self: &Rc<Self>) -> io::Result<StackLease> {
        let mut free = self.free.borrow_mut();
        if free.is_empty() {
            let slab = Slab::new()?;
            // SAFETY: each offset lies within the slab.
            free.extend((0..STACKS_PER_SLAB).map(|n| unsafe { slab.base.add(n * STACK_BYTES) }));
            self.slabs.borrow_mut().push(slab);
        }
        let low = free.pop().ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(StackLease { low, stacks: Rc::clone(self) })
    }
}

/// A stack. Dropping it returns it to the pool.
#[derive(Debug)]
pub(crate) struct StackLease {
    low: NonNull<u8>,
    stacks: Rc<Stacks>,
}

/// The range of a leased stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackRange {
    low: NonNull<u8>,
}

impl StackRange {
    /// Frees memory below the current frame. Does nothing if called on another stack.
    pub(crate) fn trim(self) {
        let here = (&raw const self).addr();
        let low = self.low.addr().get();
        if !(low..low + STACK_BYTES).contains(&here) {
            return;
        }
        let unused = (here - low).saturating_sub(OWN_BYTES) / page_size() * page_size();
        // SAFETY: this runs on the stack, so it is leased; nothing that far below this frame is in
        // use.
        let _ = unsafe { madvise(self.low.as_ptr().cast(), unused, Advice::LinuxDontNeed) };
    }
}

impl StackLease {
    pub(crate) fn range(&self) -> StackRange {
        StackRange { low: self.low }
    }

    /// Whether `bytes` bytes from `offset` on are zero, as mapped.
    fn is_untouched(&self, offset: usize, bytes: usize) -> bool {
        // SAFETY: both callers pass a range within the stack, which is not running.
        let range = unsafe { std::slice::from_raw_parts(self.low.as_ptr().add(offset), bytes) };
        // Without an early exit it vectorises.
        range.iter().fold(0, |all, byte| all | byte) == 0
    }
}

impl Drop for StackLease {
    fn drop(&mut self) {
        if !self.is_untouched(0, CANARY_BYTES) {
            // Stack overflow: the adjacent stack may be corrupted.
            std::process::abort();
        }
        let kept = STACK_BYTES - KEPT_BYTES;
        if !self.is_untouched(kept - 512, 512) {
            // SAFETY: the stack is not running; freed pages read as zero.
            let _ = unsafe { madvise(self.low.as_ptr().cast(), kept, Advice::LinuxDontNeed) };
        }
        self.stacks.free.borrow_mut().push(self.low);
    }
}

// SAFETY: the range is mapped, readable and writable while the lease lives, used by one coroutine
// at a time, and page-aligned at both ends.
unsafe impl Stack for StackLease {
    fn base(&self) -> StackPointer {
        let high = self.low.as_ptr() as usize + STACK_BYTES;
        StackPointer::new(high).unwrap_or(StackPointer::MAX)
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new(self.low.as_ptr() as usize).unwrap_or(StackPointer::MIN)
    }
}
