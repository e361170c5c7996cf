//! The bodies of responses that scripts hold: bounded over all users of a process.
//!
//! QuickJS bounds the heap of each user, and knows nothing of what lies outside of it.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rquickjs::Ctx;

/// What is held at most in all when nothing says so and memory is short.
const LEAST_BOUND: u64 = 1 << 30;

/// Bytes of each user that are not counted, so that users with small bodies share nothing.
const UNCOUNTED: u64 = 64 << 10;

/// Bytes that a user holds before its garbage is collected for them: in time of plenty, and once
/// half of the bound is taken.
const COLLECTED_FROM: u64 = 8 << 20;
const COLLECTED_EARLY_FROM: u64 = 1 << 20;

/// A body that is shorter doubles its room when it grows.
const AHEAD_MAX: usize = 1 << 20;

/// The bytes of bodies that the scripts of a test hold when nothing says how many: a quarter of the
/// memory of the machine or its container, and at least 1 GiB.
pub(crate) fn default_bound() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    let memory: Option<u64> = machine.into_iter().chain(container).min();
    memory.map_or(LEAST_BOUND, |bytes| (bytes / 4).max(LEAST_BOUND))
}

/// The bytes after `MemTotal:`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// The bytes of bodies that all users of a test hold.
#[derive(Debug, Default)]
pub(crate) struct HeldBodies(AtomicU64);

impl HeldBodies {
    /// Adds to them, up to the bound. Returns whether there was room.
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

/// The bodies of one user.
pub(crate) struct UserBodies {
    all: Arc<HeldBodies>,
    /// Bytes that all users may hold.
    bound: u64,
    /// Bytes.
    held: Cell<u64>,
    /// Bytes at which its garbage is collected.
    collected_at: Cell<u64>,
}

impl UserBodies {
    /// Those of a user among all of its process, who may hold `bound` bytes.
    pub(crate) fn new(all: &Arc<HeldBodies>, bound: u64) -> Rc<Self> {
        let (held, collected_at) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { all: Arc::clone(all), bound, held, collected_at })
    }

    /// Collects the user's garbage if it may hold many bytes of bodies: QuickJS sees only a small
    /// object for each.
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

    /// Counts more bytes. Returns whether there was room.
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

/// What of a user's bytes is counted with those of others.
fn counted(held: u64) -> u64 {
    held.saturating_sub(UNCOUNTED)
}

impl fmt::Debug for UserBodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserBodies").field("held", &self.held).finish_non_exhaustive()
    }
}

/// The body of a response, or nothing where it had no room.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    bytes: Vec<u8>,
    /// Bytes that are counted for it: its own, and those of its copies.
    held: Cell<u64>,
    is_refused: bool,
    user: Rc<UserBodies>,
}

impl ResponseBody {
    /// An empty one.
    pub(crate) fn new(user: &Rc<UserBodies>) -> Self {
        Self { bytes: Vec::new(), held: Cell::new(0), is_refused: false, user: Rc::clone(user) }
    }

    /// Adds bytes to it; once there is no room, it lets go of all.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        if self.is_refused {
            return;
        }
        if self.has_room_for(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.clear();
            self.is_refused = true;
        }
    }

    /// Makes room for more bytes. Returns whether there is any.
    fn has_room_for(&mut self, more: usize) -> bool {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        let missing = (length + more).saturating_sub(capacity);
        if missing == 0 {
            return true;
        }
        // What is reserved ahead is held too, so that a large body reserves little.
        let ahead = if capacity < AHEAD_MAX { capacity } else { capacity / 4 };
        let Some(room) = [missing.max(ahead), missing].into_iter().find(|room| self.count(*room))
        else {
            return false;
        };
        self.bytes.reserve_exact(capacity + room - length);
        true
    }

    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.bytes = Vec::new();
        self.is_refused = false;
        self.user.give_back(self.held.take());
    }

    /// Takes its bytes out.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.bytes);
        self.clear();
        bytes
    }

    /// Puts other bytes in the place of its own.
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        self.clear();
        self.is_refused = !self.count(bytes.capacity());
        if !self.is_refused {
            self.bytes = bytes;
        }
    }

    /// Counts a copy that lives as long as it. Returns whether there was room.
    pub(crate) fn count_copy(&self) -> bool {
        self.count(self.bytes.len())
    }

    /// Whether there was no room for it.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Why there was no room, for the script.
    pub(crate) fn refusal(&self) -> String {
        let bound = self.user.bound;
        format!(
            "no memory for the response body: the bodies that all users hold may take {bound} \
             bytes (--body-memory)"
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
    fn what_is_let_go_makes_room() {
        let all = Arc::default();
        let (one, other) = (user(&all, 10 * MIB), user(&all, 10 * MIB));
        let (mut kept, mut late) = (ResponseBody::new(&one), ResponseBody::new(&other));
        kept.extend(&vec![1; 6 * MIB]);
        late.extend(&vec![2; 3 * MIB]);
        assert!(!late.is_refused() && !kept.count_copy());
        late.extend(&vec![2; 2 * MIB]);
        assert!(late.is_refused() && late.is_empty());
        assert_eq!(all.bytes(), 6 * MIB as u64 - UNCOUNTED);
        // It takes part no more, whatever else comes of it.
        late.extend(b"more");
        assert!(late.is_empty());
        drop(kept);
        late.put(vec![3; 9 * MIB]);
        assert_eq!((late.is_refused(), late.len()), (false, 9 * MIB));
        drop(late);
        assert_eq!(all.bytes(), 0);
    }

    #[test]
    fn a_body_in_pieces_is_held_for_what_is_reserved() {
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
    fn small_bodies_are_each_users_own() {
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

    #[test]
    fn the_memory_of_a_machine_is_read() {
        assert_eq!(total("MemTotal:       24646180 kB\nMemFree: 1 kB\n"), Some(24_646_180 << 10));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(default_bound() >= LEAST_BOUND);
    }
}
