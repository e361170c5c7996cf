//! How an answer is broken off.

/// How a connection ends without an answer, or in the middle of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    /// With a FIN, as if all were well.
    #[error("closed on request")]
    Close,
    /// With a RST.
    #[error("reset on request")]
    Reset,
    /// The client is gone, or the lab stops: nobody is there to be told.
    #[error("the client is gone")]
    Gone,
}
