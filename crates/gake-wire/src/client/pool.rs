//! Places on connections: who takes one, where, and who waits for it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::client::transport::Transport;

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Open, or being opened.
    pub(crate) open: usize,
    /// Idle, over all origins.
    pub(crate) idle: usize,
    /// Idle, to one origin.
    pub(crate) idle_per_origin: usize,
}

/// Connections, by the room that they have for further exchanges.
///
/// One pool serves all lanes of a worker in an open loop; in a closed one each user has its own.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    /// Connections with room, those without any exchange too; the one that had room first is
    /// first. The last one used is used first.
    #[allow(clippy::type_complexity, reason = "the origin stands beside it to be found fast")]
    with_room: RefCell<Vec<(u32, Rc<Connection<T>>)>>,
    /// Connections without any exchange whose peer allows none at the moment.
    without_room: RefCell<Vec<Rc<Connection<T>>>>,
    bounds: Bounds,
    /// Connections being opened, and how many exchanges each is expected to carry.
    dialing: Cell<usize>,
    streams: Cell<usize>,
    queue: Rc<Queue>,
}

/// A connection and its exchanges.
#[derive(Debug)]
pub(crate) struct Connection<T> {
    transport: T,
    origin: u32,
    /// Exchanges under way.
    live: Cell<usize>,
    /// Whether the pool has it among those with room.
    is_listed: Cell<bool>,
    /// Given back when the connection begins to end, so that another can take its turn.
    permit: RefCell<Option<Permit>>,
}

/// A connection being opened; dropped when it is open, or cannot be.
#[derive(Debug)]
pub(crate) struct Dialing<'a> {
    count: &'a Cell<usize>,
}

/// How many connections are open or being opened, and who waits for one.
#[derive(Debug, Default)]
struct Queue {
    open: Cell<usize>,
    /// Those who wait, in the order of their tickets.
    waiting: RefCell<VecDeque<Waiter>>,
    next_ticket: Cell<u64>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    origin: u32,
    waker: Waker,
}

/// The right to have a connection.
#[derive(Debug)]
pub(crate) struct Permit {
    queue: Rc<Queue>,
}

/// Room for one exchange on a connection.
#[derive(Debug)]
pub(crate) struct Place<'a, T: Transport> {
    pool: &'a Pool<T>,
    connection: Rc<Connection<T>>,
}

impl<T: Transport> Pool<T> {
    /// `streams`: how many exchanges a new connection is expected to carry at once.
    pub(crate) fn new(bounds: Bounds, streams: usize) -> Self {
        Self {
            with_room: RefCell::default(),
            without_room: RefCell::default(),
            bounds,
            dialing: Cell::new(0),
            streams: Cell::new(streams),
            queue: Rc::default(),
        }
    }

    /// A pool of other connections, which this one counts.
    pub(crate) fn beside(&self, bounds: Bounds) -> Self {
        let queue = Rc::clone(&self.queue);
        Self { queue, ..Self::new(bounds, self.streams.get()) }
    }

    /// Takes a place on a connection to `origin` that has room.
    #[inline]
    pub(crate) fn take(&self, origin: u32) -> Option<Place<'_, T>> {
        let mut with_room = self.with_room.borrow_mut();
        loop {
            let at = with_room.iter().rposition(|(to, _)| *to == origin)?;
            let connection = &with_room[at].1;
            let live = connection.live.get() + 1;
            let capacity = connection.transport.capacity();
            let has_more = live < capacity;
            let connection = if has_more {
                Rc::clone(connection)
            } else {
                let (_, connection) = with_room.remove(at);
                connection.is_listed.set(false);
                connection
            };
            if live <= capacity {
                connection.live.set(live);
                if has_more || self.queue.open.get() < self.bounds.open {
                    self.queue.wake(origin, false);
                }
                return Some(Place { pool: self, connection });
            }
            self.park(connection);
        }
    }

    /// The right to open a connection to `origin`, unless there are too many. A connection that is
    /// idle to another origin is closed for it.
    ///
    /// None is given while those being opened are expected to have room for all who wait.
    pub(crate) fn permit(&self, origin: u32) -> Option<Permit> {
        let dialing = self.dialing.get();
        if dialing > 0 && self.queue.waiters(origin) + dialing < dialing * self.streams.get() {
            return None;
        }
        if self.queue.open.get() >= self.bounds.open {
            // Closed at the end of this block, when the list is no longer borrowed.
            let _idle = self.remove_idle(origin)?;
        }
        self.queue.open.set(self.queue.open.get() + 1);
        if self.streams.get() == 1 && self.queue.open.get() < self.bounds.open {
            // Whoever waited for room on the one that was being opened can open another, too.
            self.queue.wake(origin, false);
        }
        Some(Permit { queue: Rc::clone(&self.queue) })
    }

    /// Notes that a connection is being opened.
    pub(crate) fn dialing(&self) -> Dialing<'_> {
        self.dialing.set(self.dialing.get() + 1);
        Dialing { count: &self.dialing }
    }

    /// Takes a place on a connection that was just opened to `origin`.
    pub(crate) fn admit<'a>(
        self: &'a Rc<Self>,
        transport: T,
        origin: u32,
        permit: Permit,
    ) -> Place<'a, T>
    where
        T: 'static,
    {
        if transport.capacity() == 1 {
            self.streams.set(1);
        }
        let (live, is_listed) = (Cell::new(1), Cell::new(false));
        let permit = RefCell::new(Some(permit));
        let connection = Rc::new(Connection { transport, origin, live, is_listed, permit });
        let (pool, itself) = (Rc::downgrade(self), Rc::downgrade(&connection));
        connection.transport.watch_room(move || {
            if let (Some(pool), Some(connection)) = (pool.upgrade(), itself.upgrade()) {
                pool.room_changed(&connection);
            }
        });
        self.offer(&connection);
        if connection.transport.capacity() <= 1 {
            self.queue.wake(origin, false);
        }
        Place { pool: self, connection }
    }

    /// The peer of a connection allows more than before, or less, or ends it.
    fn room_changed(&self, connection: &Rc<Connection<T>>) {
        let is_other = |one: &Rc<Connection<T>>| !Rc::ptr_eq(one, connection);
        self.without_room.borrow_mut().retain(is_other);
        if !connection.transport.is_ending() {
            self.offer(connection);
            return;
        }
        if connection.is_listed.replace(false) {
            self.with_room.borrow_mut().retain(|(_, one)| is_other(one));
        }
        let permit = connection.permit.take();
        drop(permit);
    }

    /// Keeps a connection that has no exchange and no room, but may have room again.
    fn park(&self, connection: Rc<Connection<T>>) {
        if connection.is_idle() && !connection.transport.is_ending() {
            self.without_room.borrow_mut().push(connection);
        }
    }

    /// Whether somebody else waits for a place to `origin` already.
    #[inline]
    pub(crate) fn has_waiters(&self, origin: u32) -> bool {
        let waiting = self.queue.waiting.borrow();
        !waiting.is_empty() && waiting.iter().any(|waiter| waiter.origin == origin)
    }

    /// Whether no further connection may be opened.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.open.get() >= self.bounds.open
    }

    /// Waits until there may be a place for `origin`, or a permit to open one; whoever has waited
    /// longest is first. Keep `ticket` to wait again in the same turn.
    pub(crate) async fn wait(&self, origin: u32, ticket: &mut Option<u64>) {
        let ticket = *ticket.get_or_insert_with(|| self.queue.ticket());
        let waiting = Waiting { queue: &self.queue, ticket, origin, state: Cell::default() };
        poll_fn(|cx| waiting.poll(cx.waker())).await;
    }

    /// Lists a connection that has room, and tells who waits for it.
    #[inline]
    fn offer(&self, connection: &Rc<Connection<T>>) {
        let live = connection.live.get();
        if live >= connection.transport.capacity() {
            self.park(Rc::clone(connection));
            return;
        }
        if !connection.is_listed.get() {
            if live == 0 && !self.has_room_for_idle(connection.origin) {
                return;
            }
            connection.is_listed.set(true);
            let listed = (connection.origin, Rc::clone(connection));
            self.with_room.borrow_mut().push(listed);
        }
        self.queue.wake(connection.origin, live == 0);
    }

    /// Whether one more idle connection to `origin` is kept, perhaps instead of another.
    #[inline]
    fn has_room_for_idle(&self, origin: u32) -> bool {
        let Bounds { idle, idle_per_origin, .. } = self.bounds;
        let mut with_room = self.with_room.borrow_mut();
        if with_room.len() >= idle_per_origin {
            let to_same = with_room.iter().filter(|(to, c)| *to == origin && c.is_idle());
            if to_same.count() >= idle_per_origin {
                return false;
            }
        }
        if with_room.len() >= idle
            && let Some(first) = with_room.iter().position(|(_, c)| c.is_idle())
        {
            let first = with_room.remove(first);
            drop(with_room);
            drop(first);
        }
        true
    }

    /// Takes the connection out that is idle the longest, of the origin that has the most, unless
    /// that is `origin` itself.
    fn remove_idle(&self, origin: u32) -> Option<Rc<Connection<T>>> {
        let mut with_room = self.with_room.borrow_mut();
        let idle = with_room.iter().filter(|(_, connection)| connection.is_idle());
        let mut counts: Vec<(u32, usize)> = Vec::new();
        for (to, _) in idle.filter(|(to, _)| *to != origin) {
            match counts.iter_mut().find(|(counted, _)| counted == to) {
                Some((_, count)) => *count += 1,
                None => counts.push((*to, 1)),
            }
        }
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let at = with_room.iter().position(|(to, c)| *to == most && c.is_idle())?;
        Some(with_room.remove(at).1)
    }
}

impl<T> Connection<T> {
    fn is_idle(&self) -> bool {
        self.live.get() == 0
    }
}

impl<T: Transport> Deref for Place<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.connection.transport
    }
}

impl<T: Transport> Drop for Place<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.connection.live.set(self.connection.live.get() - 1);
        self.pool.offer(&self.connection);
    }
}

impl Drop for Dialing<'_> {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

impl Queue {
    fn waiters(&self, origin: u32) -> usize {
        self.waiting.borrow().iter().filter(|waiter| waiter.origin == origin).count()
    }

    fn ticket(&self) -> u64 {
        self.next_ticket.replace(self.next_ticket.get() + 1)
    }

    /// Wakes the first who waits for a place to `origin`; or whoever is first, when the connection
    /// may make room for one to another origin.
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

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.open.set(self.queue.open.get() - 1);
        let first = self.queue.waiting.borrow_mut().pop_front();
        if let Some(first) = first {
            first.waker.wake();
        }
    }
}

/// One who waits.
struct Waiting<'a> {
    queue: &'a Queue,
    ticket: u64,
    origin: u32,
    state: Cell<WaitState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum WaitState {
    #[default]
    New,
    Queued,
    /// Woken, and about to take what there is.
    Done,
}

impl Waiting<'_> {
    fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut waiting = self.queue.waiting.borrow_mut();
        match waiting.binary_search_by_key(&self.ticket, |waiter| waiter.ticket) {
            Ok(at) => waiting[at].waker.clone_from(waker),
            // Who has been woken is no longer in the queue.
            Err(_) if self.state.get() == WaitState::Queued => {
                self.state.set(WaitState::Done);
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

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.state.get() != WaitState::Queued {
            return;
        }
        let mut waiting = self.queue.waiting.borrow_mut();
        match waiting.binary_search_by_key(&self.ticket, |waiter| waiter.ticket) {
            Ok(at) => drop(waiting.remove(at)),
            Err(_) => {
                // It was woken and gives up: the next one has its turn.
                drop(waiting);
                self.queue.wake(self.origin, true);
            }
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
