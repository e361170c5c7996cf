//! Errors of the users service's database.

/// Why a statement could not be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// From the model, in MySQL's words.
    #[error("Error 1040: Too many connections")]
    TooManyConnections,
    /// From the connection pool.
    #[error("timed out waiting for a connection of the pool")]
    AcquireTimeout,
    /// From a real database, in its own words.
    #[error("{0}")]
    Server(String),
}
