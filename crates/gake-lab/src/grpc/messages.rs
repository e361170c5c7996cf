//! The messages of the lab's gRPC services.

use prost::Message;

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct EchoRequest {
    /// Returned by the reply.
    #[prost(string, tag = "1")]
    pub(super) text: String,
    /// Added to the service time of `Say`, in milliseconds.
    #[prost(uint32, tag = "2")]
    pub(super) delay_ms: u32,
    /// The gRPC status with which the call ends.
    #[prost(uint32, tag = "3")]
    pub(super) status: u32,
    /// The number of replies to `Repeat`.
    #[prost(uint32, tag = "4")]
    pub(super) count: u32,
    /// The time between replies, in milliseconds.
    #[prost(uint32, tag = "5")]
    pub(super) every_ms: u32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct EchoReply {
    #[prost(string, tag = "1")]
    pub(super) text: String,
    /// The number of this reply within the call, from 1; for `Collect`, of messages received.
    #[prost(uint32, tag = "2")]
    pub(super) number: u32,
}

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct HealthRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct HealthReply {
    /// 1 is SERVING.
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}

/// `ServerReflectionRequest`: exactly one query is set.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionRequest {
    #[prost(string, tag = "1")]
    pub(super) host: String,
    #[prost(string, optional, tag = "3")]
    pub(super) file_by_filename: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) file_containing_symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(super) list_services: Option<String>,
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ReflectionReply {
    #[prost(string, tag = "1")]
    pub(super) valid_host: String,
    #[prost(message, optional, tag = "2")]
    pub(super) original_request: Option<ReflectionRequest>,
    #[prost(message, optional, tag = "4")]
    pub(super) files: Option<ReflectionFiles>,
    #[prost(message, optional, tag = "6")]
    pub(super) services: Option<ReflectionServices>,
    #[prost(message, optional, tag = "7")]
    pub(super) error: Option<ReflectionError>,
}

/// `FileDescriptorResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionFiles {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) files: Vec<Vec<u8>>,
}

/// `ListServiceResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionServices {
    #[prost(message, repeated, tag = "1")]
    pub(super) services: Vec<ReflectionService>,
}

/// `ServiceResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionService {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

/// `ErrorResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionError {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}
