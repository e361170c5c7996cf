//! An allocator that counts: what is allocated now, the most there was, and how often.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The system's allocator, which counts. A test makes it its own:
/// `#[global_allocator] static ALLOCATOR: Counting = Counting;`
pub struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD_ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static THREAD_LIVE: Cell<i64> = const { Cell::new(0) };
}

fn allocated(size: usize) {
    let live = LIVE.fetch_add(size, Relaxed) + size;
    PEAK.fetch_max(live, Relaxed);
    ALLOCATIONS.fetch_add(1, Relaxed);
    THREAD_ALLOCATIONS.set(THREAD_ALLOCATIONS.get() + 1);
    THREAD_LIVE.set(THREAD_LIVE.get() + size as i64);
}

fn freed(size: usize) {
    LIVE.fetch_sub(size, Relaxed);
    THREAD_LIVE.set(THREAD_LIVE.get() - size as i64);
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there for a moment.
        allocated(size);
        freed(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Bytes that the process has allocated now.
pub fn live_bytes() -> usize {
    LIVE.load(Relaxed)
}

/// The most bytes that the process had allocated at once, since [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Relaxed)
}

/// The peak begins anew, with what is allocated now.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Relaxed);
}

/// How often the process has allocated.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

/// Of this thread: how often it allocated, and the bytes it allocated less those it freed.
pub fn thread_counts() -> (u64, i64) {
    (THREAD_ALLOCATIONS.get(), THREAD_LIVE.get())
}
