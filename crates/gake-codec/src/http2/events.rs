//! Events of a connection's streams.

use gake_core::record::{ErrorCode, GrpcStatus};

use super::message_error::MessageError;

/// Names and values of header fields, in order.
pub type HeaderFields = Vec<(Vec<u8>, Vec<u8>)>;

/// Receives the events of a connection's streams, by the owners that started them.
pub trait StreamEvents {
    /// The first frame of the answer has come.
    fn began(&mut self, owner: u32);

    /// The final head of a shown stream has come, with its header fields.
    fn head(&mut self, owner: u32, status: u16, fields: HeaderFields);

    /// More of the body of a shown stream has come.
    fn body(&mut self, owner: u32, bytes: &[u8]);

    /// The trailers of a shown stream have come, which is about to end.
    fn trailers(&mut self, owner: u32, fields: HeaderFields);

    /// The stream has ended.
    fn ended(&mut self, owner: u32, end: StreamEnd);
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEnd {
    /// How it ended.
    pub ending: StreamEnding,
    /// Bytes of its frames that came.
    pub bytes_in: u64,
    /// Bytes of its frames that were written.
    pub bytes_out: u64,
    /// Whether the whole request was written.
    pub is_written: bool,
    /// The status of a gRPC call, if the server gave one.
    pub grpc_status: Option<GrpcStatus>,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnding {
    /// A whole response came.
    Answered {
        /// Its status.
        status: u16,
        /// Bytes of its body.
        body_bytes: u64,
    },
    /// The server reset it.
    Reset(ErrorCode),
    /// The server did not handle it and never will (REFUSED_STREAM): it may be sent again.
    Refused,
    /// GOAWAY says that the server did not handle it and never will: it may be sent again on
    /// another connection, unless the code asks for less load.
    GoneAway(ErrorCode),
    /// What came is not a response.
    Malformed(MessageError),
    /// This side ended it.
    Cancelled,
}
