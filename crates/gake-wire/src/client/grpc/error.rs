//! Errors of gRPC calls.

use gake_core::record::Fault;

/// Why a gRPC call cannot be made, or its response not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrpcError {
    /// A file of definitions that cannot be used.
    #[error("{0}")]
    Definitions(String),
    /// A path that is not `Service/Method`.
    #[error("{0:?} is not a method: write package.Service/Method")]
    Path(String),
    /// A service that the definitions do not have.
    #[error("there is no service {name:?}; there are {}", known.join(", "))]
    Service {
        /// Its name.
        name: String,
        /// The services that there are.
        known: Vec<String>,
    },
    /// A method that the service does not have.
    #[error("{service} has no method {name:?}; it has {}", known.join(", "))]
    Method {
        /// The service.
        service: String,
        /// The name of the method.
        name: String,
        /// The methods that it has.
        known: Vec<String>,
    },
    /// JSON that does not fit the message's type.
    #[error("it is not a {message}: {why}")]
    Json {
        /// The type of the message.
        message: String,
        /// The parser's message.
        why: String,
    },
    /// A backlog of messages that a script does not consume.
    #[error("the script takes messages more slowly than they come: {0} bytes wait")]
    Unread(usize),
    /// Bytes that are not a message of the type.
    #[error("the server's message is not a {message}: {why}")]
    Message {
        /// The type of the message.
        message: String,
        /// The decoder's message.
        why: String,
    },
    /// A compressed message, although no compression was accepted.
    #[error("the server's message is compressed")]
    Compressed,
    /// A body that ends within a message.
    #[error("the server's response ends within a message")]
    CutShort,
    /// The server has no reflection service.
    #[error("the server has no reflection: name its definitions with --proto FILE")]
    NoReflection,
    /// The reflection failed.
    #[error("the server's reflection: {0}")]
    Reflection(String),
    /// A reflection call failed.
    #[error("the server's reflection: {0}")]
    Call(Fault),
}
