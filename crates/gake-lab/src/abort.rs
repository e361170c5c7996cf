//! How a response is aborted.

/// How a connection or stream ends without a complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Abort {
    /// With a FIN, as after a complete response.
    #[error("closed on request")]
    Close,
    /// With a RST.
    #[error("reset on request")]
    Reset,
    /// The client has disconnected, or the lab stops.
    #[error("the client is gone")]
    Gone,
}
