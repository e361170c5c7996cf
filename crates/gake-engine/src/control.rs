//! Control of a run: stopping it, changing its users.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::sync::watch;

/// How a run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// No stop.
    Go,
    /// No new arrivals; those in flight may finish within the drain.
    Drain,
    /// Immediate stop.
    Now,
}

/// Stops all workers, from any thread.
#[derive(Debug, Clone)]
pub struct StopHandle {
    sender: std::sync::Arc<watch::Sender<Stop>>,
    is_urgent: std::sync::Arc<AtomicBool>,
}

impl StopHandle {
    pub(crate) fn new() -> (Self, watch::Receiver<Stop>) {
        let (sender, receiver) = watch::channel(Stop::Go);
        let (sender, is_urgent) = (std::sync::Arc::new(sender), std::sync::Arc::default());
        (Self { sender, is_urgent }, receiver)
    }

    /// Requests a stop; never weakens an earlier request.
    pub fn stop(&self, stop: Stop) {
        self.sender.send_modify(|current| *current = (*current).max(stop));
    }

    /// Stops now, and abandons workers that do not end within a second.
    pub fn insist(&self) {
        self.is_urgent.store(true, Relaxed);
        self.stop(Stop::Now);
    }

    /// Whether [`insist`](Self::insist) was called.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent.load(Relaxed)
    }

    /// The strongest stop requested so far.
    #[must_use]
    pub fn asked(&self) -> Stop {
        *self.sender.borrow()
    }
}

/// Sets the number of users of an externally controlled load, from any thread.
#[derive(Debug, Clone)]
pub struct UsersHandle {
    sender: std::sync::Arc<watch::Sender<usize>>,
    max: usize,
}

impl UsersHandle {
    /// For a load that begins with `users` and never exceeds `max`.
    #[must_use]
    pub fn new(users: usize, max: usize) -> Self {
        let sender = watch::Sender::new(users.min(max));
        Self { sender: std::sync::Arc::new(sender), max }
    }

    /// A receiver of the number of users.
    pub(crate) fn subscribe(&self) -> watch::Receiver<usize> {
        self.sender.subscribe()
    }

    /// Requests a number of users, capped at the maximum. Returns the capped number.
    pub fn set(&self, users: usize) -> usize {
        let users = users.min(self.max);
        self.sender.send_replace(users);
        users
    }

    /// The load's maximum.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// The number requested last.
    #[must_use]
    pub fn asked(&self) -> usize {
        *self.sender.borrow()
    }
}

/// Waits for a request of at least `least`.
pub(crate) async fn stopped(receiver: &mut watch::Receiver<Stop>, least: Stop) {
    // Without a sender, there are no further requests.
    if receiver.wait_for(|stop| *stop >= least).await.is_err() {
        std::future::pending::<()>().await;
    }
}
