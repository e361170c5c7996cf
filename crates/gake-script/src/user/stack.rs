//! Stacks of coroutines: address space that costs memory only where it was touched.

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

/// The part that scripts may fill. The rest is for the functions that they call: a TLS handshake
/// alone takes tens of kilobytes.
pub(crate) const SCRIPT_STACK_BYTES: usize = STACK_BYTES - (160 << 10);

/// Stacks that are mapped at once.
const STACKS_PER_SLAB: usize = 64;

/// Bytes at the far end of a stack that nobody must reach.
const CANARY_BYTES: usize = 64;

/// How much of a stack stays mapped between two uses.
const KEPT_BYTES: usize = 64 << 10;

/// What the call that gives memory back may itself use of the stack.
const OWN_BYTES: usize = 2 << 10;

/// The stacks of one thread. They are used again and again.
#[derive(Debug, Default)]
pub struct Stacks {
    slabs: RefCell<Vec<Slab>>,
    free: RefCell<Vec<NonNull<u8>>>,
}

/// Stacks side by side, without guard pages: each pair of those would be two of the 65,530
/// mappings that a process may have.
#[derive(Debug)]
struct Slab {
    base: NonNull<u8>,
}

impl Slab {
    const BYTES: usize = STACKS_PER_SLAB * STACK_BYTES;

    fn new() -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing
        // that exists.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                Self::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )?
        };
        // SAFETY: the range is the mapping just made. A huge page would cost 2 MB for a few
        // kilobytes of stack; a kernel without them refuses, which is as good.
        let _ = unsafe { madvise(base, Self::BYTES, Advice::LinuxNoHugepage) };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base })
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: the mapping is this slab's own. Every lease holds the `Stacks`, so that no stack
        // is in use.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), Self::BYTES) };
    }
}

impl Stacks {
    /// No stacks yet.
    #[must_use]
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    /// A stack, as long as the lease lasts.
    ///
    /// # Errors
    /// When there is no address space left.
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

/// One stack. It goes back when the lease is dropped.
#[derive(Debug)]
pub(crate) struct StackLease {
    low: NonNull<u8>,
    stacks: Rc<Stacks>,
}

/// Where a leased stack is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackRange {
    low: NonNull<u8>,
}

impl StackRange {
    /// Gives back the memory that deeper calls have left below the caller. Does nothing on another
    /// stack.
    pub(crate) fn trim(self) {
        let here = (&raw const self).addr();
        let low = self.low.addr().get();
        if !(low..low + STACK_BYTES).contains(&here) {
            return;
        }
        let unused = (here - low).saturating_sub(OWN_BYTES) / page_size() * page_size();
        // SAFETY: this runs on the stack itself, so that it is leased; nothing is in use as far
        // below the frame of this call.
        let _ = unsafe { madvise(self.low.as_ptr().cast(), unused, Advice::LinuxDontNeed) };
    }
}

impl StackLease {
    /// Where it is.
    pub(crate) fn range(&self) -> StackRange {
        StackRange { low: self.low }
    }

    /// Whether every byte from `offset` on, for `bytes` bytes, is as the kernel mapped it.
    fn is_untouched(&self, offset: usize, bytes: usize) -> bool {
        // SAFETY: both callers name bytes within the stack, which nobody runs on now; the kernel
        // has set to zero what nobody wrote.
        let part = unsafe { std::slice::from_raw_parts(self.low.as_ptr().add(offset), bytes) };
        // Looked at to the end: without a branch for each byte it is a few instructions.
        part.iter().fold(0, |all, byte| all | byte) == 0
    }
}

impl Drop for StackLease {
    fn drop(&mut self) {
        if !self.is_untouched(0, CANARY_BYTES) {
            // The stack beside it may have been written over: nothing can be believed any more.
            std::process::abort();
        }
        let kept = STACK_BYTES - KEPT_BYTES;
        if !self.is_untouched(kept - 512, 512) {
            // SAFETY: nobody runs on this stack; what is dropped reads as zero from then on.
            let _ = unsafe { madvise(self.low.as_ptr().cast(), kept, Advice::LinuxDontNeed) };
        }
        self.stacks.free.borrow_mut().push(self.low);
    }
}

// SAFETY: the range from `low` on is mapped, readable and writable for as long as the lease lives,
// is used by one coroutine at a time, and both ends are multiples of the page size.
unsafe impl Stack for StackLease {
    fn base(&self) -> StackPointer {
        let high = self.low.as_ptr() as usize + STACK_BYTES;
        StackPointer::new(high).unwrap_or(StackPointer::MAX)
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new(self.low.as_ptr() as usize).unwrap_or(StackPointer::MIN)
    }
}
