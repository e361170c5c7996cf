//! Idle connections that any lane of a worker may use.

use std::cell::{Cell, RefCell};

use crate::conn::Conn;

/// The idle connections of one worker, by origin. The last one used is used first.
#[derive(Debug)]
pub(crate) struct Pool {
    by_origin: RefCell<Vec<Vec<Box<Conn>>>>,
    idle: Cell<usize>,
}

impl Pool {
    pub(crate) fn new(origins: usize) -> Self {
        Self {
            by_origin: RefCell::new(std::iter::repeat_with(Vec::new).take(origins).collect()),
            idle: Cell::new(0),
        }
    }

    /// Takes an idle connection to an origin.
    pub(crate) fn take(&self, origin: u32) -> Option<Box<Conn>> {
        let conn = self.by_origin.borrow_mut()[origin as usize].pop()?;
        self.idle.set(self.idle.get() - 1);
        Some(conn)
    }

    /// Gives a connection back for others to use.
    pub(crate) fn put(&self, conn: Box<Conn>) {
        self.by_origin.borrow_mut()[conn.origin as usize].push(conn);
        self.idle.set(self.idle.get() + 1);
    }

    /// Closes the connection longest idle among those of the origin with the most, to make room
    /// for one to another origin.
    pub(crate) fn evict(&self) {
        let mut by_origin = self.by_origin.borrow_mut();
        if let Some(most) = by_origin.iter_mut().max_by_key(|idle| idle.len())
            && !most.is_empty()
        {
            most.remove(0);
            self.idle.set(self.idle.get() - 1);
        }
    }

    /// How many connections lie idle.
    pub(crate) fn idle(&self) -> usize {
        self.idle.get()
    }
}
