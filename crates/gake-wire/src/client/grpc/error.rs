//! Why a call of gRPC cannot be made, or its answer not be read.

use gake_core::record::Fault;

/// Why a call of gRPC cannot be made, or its answer not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrpcError {
    /// A file of definitions that cannot be used.
    #[error("{0}")]
    Definitions(String),
    /// A path that is not `Service/Method`.
    #[error("{0:?} is no method: write package.Service/Method")]
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
    #[error("it is no {message}: {why}")]
    Json {
        /// The type of the message.
        message: String,
        /// What is wrong.
        why: String,
    },
    /// Messages that wait for a script which does not take them.
    #[error("the script takes messages more slowly than they come: {0} bytes wait")]
    Unread(usize),
    /// Bytes that are no message of the type.
    #[error("the server's message is no {message}: {why}")]
    Message {
        /// The type of the message.
        message: String,
        /// What is wrong.
        why: String,
    },
    /// A compressed message, which nobody asked for.
    #[error("the server's message is compressed")]
    Compressed,
    /// A body that ends within a message.
    #[error("the server's answer ends within a message")]
    CutShort,
    /// The server does not tell its definitions.
    #[error("the server has no reflection: name its definitions with --proto FILE")]
    NoReflection,
    /// The reflection failed.
    #[error("the server's reflection: {0}")]
    Reflection(String),
    /// A call of the reflection failed.
    #[error("the server's reflection: {0}")]
    Call(Fault),
}
