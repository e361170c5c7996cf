//! Events of a connection's streams.

use gake_core::record::{ErrorCode, GrpcStatus};

use super::message_error::MessageError;

/// Names and values of header fields, in order.
pub type HeaderFields = Vec<(Vec<u8>, Vec<u8>)>;

/// Receives the events of a connection's streams. `owner` is the argument of
/// [`start`](super::ClientConnection::start).
pub trait StreamEvents {
    /// The first frame of the response has come.
    fn began(&mut self, owner: u32);

    /// The final head of a shown stream has come, with its header fields.
    fn head(&mut self, owner: u32, status: u16, fields: HeaderFields);

    /// More of the body of a shown stream has come.
    fn body(&mut self, owner: u32, bytes: &[u8]);

    /// The trailers of a shown stream have come; it is about to end.
    fn trailers(&mut self, owner: u32, fields: HeaderFields);

    /// The stream has ended.
    fn ended(&mut self, owner: u32, end: StreamEnd);
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEnd {
    /// How it ended.
    pub ending: StreamEnding,
    /// Bytes of its frames received.
    pub bytes_in: u64,
    /// Bytes of its frames written.
    pub bytes_out: u64,
    /// Whether the whole request was written.
    pub is_written: bool,
    /// The status of a gRPC call, if the server sent one.
    pub grpc_status: Option<GrpcStatus>,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnding {
    /// A complete response came.
    Response {
        /// The status code.
        status: u16,
        /// Bytes of the body.
        body_bytes: u64,
    },
    /// The server reset the stream.
    Reset(ErrorCode),
    /// REFUSED_STREAM: the server did not process the request, which may be retried.
    Refused,
    /// By its GOAWAY, the server did not process the request, which may be retried on another
    /// connection, unless the code demands less load.
    GoneAway(ErrorCode),
    /// The response is malformed.
    Malformed(MessageError),
    /// This side reset the stream.
    Cancelled,
}
