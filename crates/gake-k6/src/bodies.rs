//! Response bodies that scripts hold, bounded over all users of a process: they lie outside of the
//! heaps that QuickJS bounds.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rquickjs::Ctx;

/// The smallest default bound.
const LEAST_BOUND: u64 = 1 << 30;

/// Bytes of each user that are not counted: users with small bodies never touch the shared counter.
const UNCOUNTED: u64 = 64 << 10;

/// A user with this many bytes collects its garbage.
const COLLECTED_FROM: u64 = 8 << 20;
/// The same once half of the bound is taken.
const COLLECTED_EARLY_FROM: u64 = 1 << 20;

/// Up to this capacity, a body doubles when it grows.
const DOUBLING_MAX: usize = 1 << 20;

/// The default bound on all bodies: a quarter of the memory of the machine or container, at least
/// 1 GiB.
pub(crate) fn default_bound() -> u64 {
    gake_files::memory().map_or(LEAST_BOUND, |bytes| (bytes / 4).max(LEAST_BOUND))
}

/// The bytes of bodies that all users of a test hold.
#[derive(Debug, Default)]
pub(crate) struct HeldBodies(AtomicU64);

impl HeldBodies {
    /// Takes bytes up to the bound. Returns whether they fit.
    fn take(&self, bytes: u64, bound: u64) -> bool {
        let add = |held: u64| held.checked_add(bytes).filter(|held| *held <= bound);
        self.0.fetch_update(Relaxed, Relaxed, add).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Relaxed);
    }

    fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The bytes of bodies that one user holds.
pub(crate) struct UserBodies {
    all: Arc<HeldBodies>,
    /// Of all users.
    bound: u64,
    held: Cell<u64>,
    /// The next threshold of garbage collection.
    collected_at: Cell<u64>,
}

impl UserBodies {
    pub(crate) fn new(all: &Arc<HeldBodies>, bound: u64) -> Rc<Self> {
        let (held, collected_at) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { all: Arc::clone(all), bound, held, collected_at })
    }

    /// Collects garbage if it may keep large bodies: QuickJS sees only a small object for each.
    pub(crate) fn collect(&self, ctx: &Ctx<'_>) {
        if self.held.get() < COLLECTED_EARLY_FROM.max(self.collected_at.get()) {
            return;
        }
        let is_scarce = self.all.bytes() > self.bound / 2;
        if is_scarce || self.held.get() >= COLLECTED_FROM {
            ctx.run_gc();
            self.collected_at.set(self.held.get().saturating_mul(2));
        }
    }

    /// Counts more bytes. Returns whether they fit.
    fn add(&self, bytes: u64) -> bool {
        let held = self.held.get();
        let more = counted(held.saturating_add(bytes)) - counted(held);
        if more > 0 && !self.all.take(more, self.bound) {
            return false;
        }
        self.held.set(held + bytes);
        true
    }

    fn give_back(&self, bytes: u64) {
        let held = self.held.get();
        let less = counted(held) - counted(held - bytes);
        if less > 0 {
            self.all.give_back(less);
        }
        self.held.set(held - bytes);
    }
}

/// A user's share of the shared counter.
fn counted(held: u64) -> u64 {
    held.saturating_sub(UNCOUNTED)
}

impl fmt::Debug for UserBodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserBodies").field("held", &self.held).finish_non_exhaustive()
    }
}

/// The body of a response; empty if it did not fit within the bound.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    bytes: Vec<u8>,
    /// Counted bytes, its copies included.
    held: Cell<u64>,
    is_refused: bool,
    user: Rc<UserBodies>,
}

impl ResponseBody {
    pub(crate) fn new(user: &Rc<UserBodies>) -> Self {
        Self { bytes: Vec::new(), held: Cell::new(0), is_refused: false, user: Rc::clone(user) }
    }

    /// Appends bytes; a body that does not fit drops all of them.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.is_refused {
            return;
        }
        if self.reserve(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.clear();
            self.is_refused = true;
        }
    }

    /// Reserves capacity for more bytes. Returns whether it fits.
    fn reserve(&mut self, more: usize) -> bool {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        let missing = (length + more).saturating_sub(capacity);
        if missing == 0 {
            return true;
        }
        // Reserved bytes count, too: a large body reserves little ahead.
        let ahead = if capacity < DOUBLING_MAX { capacity } else { capacity / 4 };
        let Some(room) = [missing.max(ahead), missing].into_iter().find(|room| self.count(*room))
        else {
            return false;
        };
        self.bytes.reserve_exact(capacity + room - length);
        true
    }

    pub(crate) fn clear(&mut self) {
        self.bytes = Vec::new();
        self.is_refused = false;
        self.user.give_back(self.held.take());
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.bytes);
        self.clear();
        bytes
    }

    /// Replaces its bytes.
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        self.clear();
        self.is_refused = !self.count(bytes.capacity());
        if !self.is_refused {
            self.bytes = bytes;
        }
    }

    /// Counts a copy that lives as long as the body. Returns whether it fits.
    pub(crate) fn count_copy(&self) -> bool {
        self.count(self.bytes.len())
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// The script's error for a body that did not fit.
    pub(crate) fn refusal(&self) -> String {
        let bound = self.user.bound;
        format!(
            "no memory for the response body: the bodies of all users may take {bound} bytes \
             (--body-memory)"
        )
    }

    fn count(&self, bytes: usize) -> bool {
        let has_room = self.user.add(bytes as u64);
        if has_room {
            self.held.set(self.held.get() + bytes as u64);
        }
        has_room
    }
}

impl Deref for ResponseBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.user.give_back(self.held.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn user(all: &Arc<HeldBodies>, bound: usize) -> Rc<UserBodies> {
        UserBodies::new(all, bound as u64)
    }

    #[test]
    fn dropped_bodies_free_their_bytes() {
        let all = Arc::default();
        let (one, other) = (user(&all, 10 * MIB), user(&all, 10 * MIB));
        let (mut kept, mut late) = (ResponseBody::new(&one), ResponseBody::new(&other));
        kept.extend(&vec![1; 6 * MIB]);
        late.extend(&vec![2; 3 * MIB]);
        assert!(!late.is_refused() && !kept.count_copy());
        late.extend(&vec![2; 2 * MIB]);
        assert!(late.is_refused() && late.is_empty());
        assert_eq!(all.bytes(), 6 * MIB as u64 - UNCOUNTED);
        // A refused body stays empty.
        late.extend(b"more");
        assert!(late.is_empty());
        drop(kept);
        late.put(vec![3; 9 * MIB]);
        assert_eq!((late.is_refused(), late.len()), (false, 9 * MIB));
        drop(late);
        assert_eq!(all.bytes(), 0);
    }

    #[test]
    fn a_growing_body_counts_its_capacity() {
        let all = Arc::default();
        let user = user(&all, 100 * MIB);
        let mut body = ResponseBody::new(&user);
        for _ in 0..20 * 16 {
            body.extend(&[7; 64 << 10]);
        }
        assert_eq!((body.len(), body.held.get()), (20 * MIB, body.bytes.capacity() as u64));
        assert!(body.bytes.capacity() <= 25 * MIB);
        assert_eq!(body.take().len(), 20 * MIB);
        assert_eq!((user.held.get(), all.bytes()), (0, 0));
    }

    #[test]
    fn small_bodies_need_no_shared_bytes() {
        let user = user(&Arc::default(), 0);
        let bodies: Vec<ResponseBody> = (0..64)
            .map(|_| {
                let mut body = ResponseBody::new(&user);
                body.extend(&[0; 1024]);
                body
            })
            .collect();
        assert!(bodies.iter().all(|body| body.len() == 1024));
        let mut one_more = ResponseBody::new(&user);
        one_more.extend(b"x");
        assert!(one_more.is_refused());
        assert!(one_more.refusal().contains("0 bytes"), "{}", one_more.refusal());
    }
}
