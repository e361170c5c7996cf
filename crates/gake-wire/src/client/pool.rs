//! The connection pool. A slot carries one exchange at a time; requests without one wait in a queue.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::client::transport::Transport;

#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolBounds {
    /// Open, or being opened.
    pub(crate) open: usize,
    /// Idle, over all origins.
    pub(crate) idle: usize,
    /// Idle, per origin.
    pub(crate) idle_per_origin: usize,
}

/// A worker in an open loop has one pool for all lanes; in a closed loop each user has its own.
#[derive(Debug)]
pub(crate) struct ConnectionPool<T> {
    /// Connections with a free slot, and their origins, ordered by the time the slot became free. Used
    /// LIFO.
    #[allow(clippy::type_complexity, reason = "the origin is next to it for a fast search")]
    available: RefCell<Vec<(u32, Rc<PooledConnection<T>>)>>,
    /// Idle connections whose peer allows no exchange at present.
    parked: RefCell<Vec<Rc<PooledConnection<T>>>>,
    bounds: PoolBounds,
    /// Connections being opened, and the slots expected of each.
    dialing: Cell<u32>,
    streams: Cell<usize>,
    /// Changes of addresses that its idle connections have followed.
    changes: Cell<u32>,
    queue: Rc<WaitQueue>,
}

#[derive(Debug)]
pub(crate) struct PooledConnection<T> {
    transport: T,
    origin: u32,
    /// Slots in use.
    live: Cell<usize>,
    /// Whether it is in the pool's list of available connections.
    is_listed: Cell<bool>,
    /// Released when the connection begins to end, so that another can be opened.
    permit: RefCell<Option<DialPermit>>,
}

/// Counts a connection being opened until it is dropped.
#[derive(Debug)]
pub(crate) struct DialGuard<'a> {
    count: &'a Cell<u32>,
}

/// The number of connections open or being opened, and the queue of waiters.
#[derive(Debug, Default)]
struct WaitQueue {
    open: Cell<usize>,
    /// Sorted by ticket.
    waiting: RefCell<VecDeque<Waiter>>,
    next_ticket: Cell<u64>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    origin: u32,
    waker: Waker,
}

#[derive(Debug)]
pub(crate) struct DialPermit {
    queue: Rc<WaitQueue>,
}

/// Capacity for one exchange on a connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot<'a, T: Transport> {
    pool: &'a ConnectionPool<T>,
    connection: Rc<PooledConnection<T>>,
}

impl<T: Transport> ConnectionPool<T> {
    /// `streams`: the slots expected of a new connection.
    pub(crate) fn new(bounds: PoolBounds, streams: usize) -> Self {
        Self {
            available: RefCell::default(),
            parked: RefCell::default(),
            bounds,
            dialing: Cell::new(0),
            streams: Cell::new(streams),
            changes: Cell::new(0),
            queue: Rc::default(),
        }
    }

    /// An empty pool that shares the count and the queue of this one.
    pub(crate) fn with_same_queue(&self, bounds: PoolBounds) -> Self {
        let queue = Rc::clone(&self.queue);
        Self { queue, ..Self::new(bounds, self.streams.get()) }
    }

    /// Takes a slot on an open connection to `origin`.
    #[inline]
    pub(crate) fn take(&self, origin: u32) -> Option<ConnectionSlot<'_, T>> {
        let mut available = self.available.borrow_mut();
        loop {
            let at = available.iter().rposition(|(to, _)| *to == origin)?;
            let connection = &available[at].1;
            let live = connection.live.get() + 1;
            let capacity = connection.transport.capacity();
            let has_more = live < capacity;
            let connection = if has_more {
                Rc::clone(connection)
            } else {
                let (_, connection) = available.remove(at);
                connection.is_listed.set(false);
                connection
            };
            if live <= capacity {
                connection.live.set(live);
                if has_more || self.queue.open.get() < self.bounds.open {
                    self.queue.wake(origin, false);
                }
                return Some(ConnectionSlot { pool: self, connection });
            }
            self.park(connection);
        }
    }

    /// The connection to `origin` that became idle last.
    pub(crate) fn idle(&self, origin: u32) -> Option<Rc<PooledConnection<T>>> {
        let available = self.available.borrow();
        let (_, connection) = available.iter().rfind(|(to, _)| *to == origin)?;
        connection.is_idle().then(|| Rc::clone(connection))
    }

    /// Ends the idle connections that `is_left` selects, once for each number of changes.
    pub(crate) fn evict_idle(&self, changes: u32, is_left: impl Fn(u32, &T) -> bool) {
        if self.changes.replace(changes) == changes {
            return;
        }
        let is_left = |(to, one): &mut (u32, Rc<PooledConnection<T>>)| {
            one.is_idle() && is_left(*to, &one.transport)
        };
        let left: Vec<_> = self.available.borrow_mut().extract_if(.., is_left).collect();
        // Dropped after the borrow of the list.
        drop(left);
    }

    /// Permission to open a connection to `origin`, unless the limit is reached. An idle connection
    /// to another origin is evicted for it. `None`, too, while the connections being opened are
    /// expected to have enough slots for all waiters.
    pub(crate) fn permit(&self, origin: u32) -> Option<DialPermit> {
        let dialing = self.dialing.get() as usize;
        if dialing > 0 && self.queue.waiters(origin) + dialing < dialing * self.streams.get() {
            return None;
        }
        if self.queue.open.get() >= self.bounds.open {
            // Dropped after the borrow of the list.
            let _idle = self.remove_idle(origin)?;
        }
        self.queue.open.set(self.queue.open.get() + 1);
        if self.streams.get() == 1 && self.queue.open.get() < self.bounds.open {
            // A waiter that counted on the connection being opened can open another.
            self.queue.wake(origin, false);
        }
        Some(DialPermit { queue: Rc::clone(&self.queue) })
    }

    /// Counts a connection as being opened while the guard lives.
    pub(crate) fn dialing(&self) -> DialGuard<'_> {
        self.dialing.set(self.dialing.get() + 1);
        DialGuard { count: &self.dialing }
    }

    /// Adds a new connection to `origin` and takes a slot on it.
    pub(crate) fn admit<'a>(
        self: &'a Rc<Self>,
        transport: T,
        origin: u32,
        permit: DialPermit,
    ) -> ConnectionSlot<'a, T>
    where
        T: 'static,
    {
        if transport.capacity() == 1 {
            self.streams.set(1);
        }
        let (live, is_listed) = (Cell::new(1), Cell::new(false));
        let permit = RefCell::new(Some(permit));
        let connection = Rc::new(PooledConnection { transport, origin, live, is_listed, permit });
        let (pool, itself) = (Rc::downgrade(self), Rc::downgrade(&connection));
        connection.transport.watch_capacity(move || {
            if let (Some(pool), Some(connection)) = (pool.upgrade(), itself.upgrade()) {
                pool.capacity_changed(&connection);
            }
        });
        self.offer(&connection);
        if connection.transport.capacity() <= 1 {
            self.queue.wake(origin, false);
        }
        ConnectionSlot { pool: self, connection }
    }

    /// The peer of a connection has changed its limit, or ends the connection.
    fn capacity_changed(&self, connection: &Rc<PooledConnection<T>>) {
        let is_other = |one: &Rc<PooledConnection<T>>| !Rc::ptr_eq(one, connection);
        self.parked.borrow_mut().retain(is_other);
        if !connection.transport.is_ending() {
            self.offer(connection);
            return;
        }
        if connection.is_listed.replace(false) {
            self.available.borrow_mut().retain(|(_, one)| is_other(one));
        }
        drop(connection.permit.take());
    }

    /// Keeps an idle connection without capacity that may get some again.
    fn park(&self, connection: Rc<PooledConnection<T>>) {
        if connection.is_idle() && !connection.transport.is_ending() {
            self.parked.borrow_mut().push(connection);
        }
    }

    /// Whether a request waits for a slot to `origin`.
    #[inline]
    pub(crate) fn has_waiters(&self, origin: u32) -> bool {
        let waiting = self.queue.waiting.borrow();
        !waiting.is_empty() && waiting.iter().any(|waiter| waiter.origin == origin)
    }

    /// Whether no further connection may be opened.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.open.get() >= self.bounds.open
    }

    /// Waits, FIFO, until there may be a slot to `origin` or a permit. Reuse `ticket` to wait again at
    /// the same position.
    pub(crate) async fn wait(&self, origin: u32, ticket: &mut Option<u64>) {
        let ticket = *ticket.get_or_insert_with(|| self.queue.ticket());
        let wait = SlotWait { queue: &self.queue, ticket, origin, state: Cell::default() };
        poll_fn(|cx| wait.poll(cx.waker())).await;
    }

    /// Lists a connection with a free slot, and wakes a waiter.
    #[inline]
    fn offer(&self, connection: &Rc<PooledConnection<T>>) {
        let live = connection.live.get();
        if live >= connection.transport.capacity() {
            self.park(Rc::clone(connection));
            return;
        }
        if !connection.is_listed.get() {
            if live == 0 && !self.may_keep_idle(connection.origin) {
                return;
            }
            connection.is_listed.set(true);
            let listed = (connection.origin, Rc::clone(connection));
            self.available.borrow_mut().push(listed);
        }
        self.queue.wake(connection.origin, live == 0);
    }

    /// Whether to keep one more idle connection to `origin`; may evict another.
    #[inline]
    fn may_keep_idle(&self, origin: u32) -> bool {
        let PoolBounds { idle, idle_per_origin, .. } = self.bounds;
        let mut available = self.available.borrow_mut();
        if available.len() >= idle_per_origin {
            let to_same = available.iter().filter(|(to, c)| *to == origin && c.is_idle());
            if to_same.count() >= idle_per_origin {
                return false;
            }
        }
        if available.len() >= idle
            && let Some(first) = available.iter().position(|(_, c)| c.is_idle())
        {
            let first = available.remove(first);
            drop(available);
            drop(first);
        }
        true
    }

    /// Evicts the connection idle the longest, of the origin with the most idle ones other than
    /// `origin`.
    fn remove_idle(&self, origin: u32) -> Option<Rc<PooledConnection<T>>> {
        let mut available = self.available.borrow_mut();
        let idle = available.iter().filter(|(_, connection)| connection.is_idle());
        let mut counts: Vec<(u32, usize)> = Vec::new();
        for (to, _) in idle.filter(|(to, _)| *to != origin) {
            match counts.iter_mut().find(|(counted, _)| counted == to) {
                Some((_, count)) => *count += 1,
                None => counts.push((*to, 1)),
            }
        }
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let at = available.iter().position(|(to, c)| *to == most && c.is_idle())?;
        Some(available.remove(at).1)
    }
}

impl<T> PooledConnection<T> {
    pub(crate) fn transport(&self) -> &T {
        &self.transport
    }

    fn is_idle(&self) -> bool {
        self.live.get() == 0
    }
}

impl<T: Transport> Deref for ConnectionSlot<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.connection.transport
    }
}

impl<T: Transport> Drop for ConnectionSlot<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.connection.live.set(self.connection.live.get() - 1);
        self.pool.offer(&self.connection);
    }
}

impl Drop for DialGuard<'_> {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

impl WaitQueue {
    fn waiters(&self, origin: u32) -> usize {
        self.waiting.borrow().iter().filter(|waiter| waiter.origin == origin).count()
    }

    fn ticket(&self) -> u64 {
        self.next_ticket.replace(self.next_ticket.get() + 1)
    }

    /// Wakes the first waiter for `origin`; without one, the first of all if the connection `is_idle`
    /// and can be evicted for another origin.
    #[inline]
    fn wake(&self, origin: u32, is_idle: bool) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() {
            return;
        }
        let same = waiting.iter().position(|waiter| waiter.origin == origin);
        let woken = same.or(is_idle.then_some(0)).and_then(|at| waiting.remove(at));
        if let Some(woken) = woken {
            woken.waker.wake();
        }
    }
}

impl Drop for DialPermit {
    fn drop(&mut self) {
        self.queue.open.set(self.queue.open.get() - 1);
        let first = self.queue.waiting.borrow_mut().pop_front();
        if let Some(first) = first {
            first.waker.wake();
        }
    }
}

struct SlotWait<'a> {
    queue: &'a WaitQueue,
    ticket: u64,
    origin: u32,
    state: Cell<WaitState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum WaitState {
    #[default]
    New,
    Queued,
    Woken,
}

impl SlotWait<'_> {
    fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut waiting = self.queue.waiting.borrow_mut();
        match waiting.binary_search_by_key(&self.ticket, |waiter| waiter.ticket) {
            Ok(at) => waiting[at].waker.clone_from(waker),
            // Waking removed it from the queue.
            Err(_) if self.state.get() == WaitState::Queued => {
                self.state.set(WaitState::Woken);
                return Poll::Ready(());
            }
            Err(at) => {
                let (ticket, origin) = (self.ticket, self.origin);
                waiting.insert(at, Waiter { ticket, origin, waker: waker.clone() });
                self.state.set(WaitState::Queued);
            }
        }
        Poll::Pending
    }
}

impl Drop for SlotWait<'_> {
    fn drop(&mut self) {
        if self.state.get() != WaitState::Queued {
            return;
        }
        let mut waiting = self.queue.waiting.borrow_mut();
        match waiting.binary_search_by_key(&self.ticket, |waiter| waiter.ticket) {
            Ok(at) => drop(waiting.remove(at)),
            Err(_) => {
                // It was woken and gives up: wake the next one.
                drop(waiting);
                self.queue.wake(self.origin, true);
            }
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
