//! Why the database gives no answer.

/// Why a statement could not be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// The model's, in the words of MySQL.
    #[error("Error 1040: Too many connections")]
    TooManyConnections,
    /// The pool's.
    #[error("timed out waiting for a connection of the pool")]
    AcquireTimeout,
    /// A real database's, in its own words.
    #[error("{0}")]
    Said(String),
}
