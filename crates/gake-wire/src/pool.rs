//! Idle connections that any lane of a worker may use.

use std::cell::{Cell, RefCell};

use crate::conn::Conn;

/// The idle connections of one worker, by origin. The last one used is used first.
///
/// A lane under way has or will have one connection, so that busy lanes and idle connections
/// together are what the bound is about; nobody has to count connections that are being opened.
#[derive(Debug)]
pub(crate) struct Pool {
    #[allow(clippy::vec_box, reason = "what goes in and out for every request is a pointer")]
    by_origin: RefCell<Vec<Vec<Box<Conn>>>>,
    idle: Cell<usize>,
    busy: Cell<usize>,
    bound: usize,
    /// Idle connections kept to an origin.
    max_idle: usize,
}

impl Pool {
    /// `bound` is how many connections of the load may be open, `max_idle` how many idle ones an
    /// origin may have.
    pub(crate) fn new(bound: usize, max_idle: usize) -> Self {
        let (idle, busy) = (Cell::new(0), Cell::new(0));
        Self { by_origin: RefCell::default(), idle, busy, bound, max_idle }
    }

    /// Counts a lane as busy for as long as the guard lives.
    #[inline]
    pub(crate) fn enter(&self) -> Busy<'_> {
        self.busy.set(self.busy.get() + 1);
        Busy(&self.busy)
    }

    /// Takes an idle connection to an origin.
    #[inline]
    pub(crate) fn take(&self, origin: u32) -> Option<Box<Conn>> {
        let conn = self.by_origin.borrow_mut().get_mut(origin as usize)?.pop()?;
        self.idle.set(self.idle.get() - 1);
        Some(conn)
    }

    /// Gives a connection back for others to use; it is closed when there are enough.
    #[inline]
    pub(crate) fn put(&self, conn: Box<Conn>) {
        let mut by_origin = self.by_origin.borrow_mut();
        let origin = conn.origin as usize;
        if origin >= by_origin.len() {
            by_origin.resize_with(origin + 1, Vec::new);
        }
        if by_origin[origin].len() >= self.max_idle {
            return;
        }
        by_origin[origin].push(conn);
        self.idle.set(self.idle.get() + 1);
    }

    /// Closes idle connections to other origins until the bound allows one that a busy lane is
    /// about to open: each time the one longest idle of the origin that has the most.
    pub(crate) fn make_room(&self) {
        while self.idle.get() > 0 && self.busy.get() + self.idle.get() > self.bound {
            let mut by_origin = self.by_origin.borrow_mut();
            if let Some(most) = by_origin.iter_mut().max_by_key(|idle| idle.len()) {
                most.remove(0);
            }
            self.idle.set(self.idle.get() - 1);
        }
    }
}

/// A lane under way, for the count.
#[derive(Debug)]
pub(crate) struct Busy<'a>(&'a Cell<usize>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
