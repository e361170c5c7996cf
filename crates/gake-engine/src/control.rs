//! Control of a run from outside: ending it early, changing its users.

use tokio::sync::watch;

/// How a run is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// It continues.
    Go,
    /// No new arrival; those in flight may finish within the drain.
    Drain,
    /// It stops at once.
    Now,
}

/// Tells every worker to stop, from any thread.
#[derive(Debug, Clone)]
pub struct StopHandle {
    sender: std::sync::Arc<watch::Sender<Stop>>,
}

impl StopHandle {
    pub(crate) fn new() -> (Self, watch::Receiver<Stop>) {
        let (sender, receiver) = watch::channel(Stop::Go);
        (Self { sender: std::sync::Arc::new(sender) }, receiver)
    }

    /// Asks for `stop`; never weakens an earlier request.
    pub fn stop(&self, stop: Stop) {
        self.sender.send_modify(|current| *current = (*current).max(stop));
    }

    /// The strongest stop asked for so far.
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
    /// A load that begins with `users` and has never more than `max`.
    #[must_use]
    pub fn new(users: usize, max: usize) -> Self {
        let sender = watch::Sender::new(users.min(max));
        Self { sender: std::sync::Arc::new(sender), max }
    }

    /// The numbers asked for from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<usize> {
        self.sender.subscribe()
    }

    /// Asks for `users`, capped at the load's maximum. Returns the capped number.
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

    /// The number asked for last.
    #[must_use]
    pub fn asked(&self) -> usize {
        *self.sender.borrow()
    }
}

/// Waits until at least `least` is asked for.
pub(crate) async fn stopped(receiver: &mut watch::Receiver<Stop>, least: Stop) {
    // The sender lives as long as the run; when it is gone nobody can ask for anything.
    if receiver.wait_for(|stop| *stop >= least).await.is_err() {
        std::future::pending::<()>().await;
    }
}
