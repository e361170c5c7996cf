//! The lab: a target server with known behaviour, against which a client's figures can be checked.
//!
//! It serves a fixed set of routes (fast, slow, broken in every way that a client must
//! distinguish), can behave as a thread-per-request server (a worker pool, a connection limit, a
//! kernel backlog), draws the service time of every request from a seeded distribution, can stall
//! as a whole, and counts exactly what it served.
//!
//! ```
//! use gake_lab::{Lab, LabConfig};
//! let lab = Lab::start(LabConfig::default())?;
//! let url = format!("http://{}/fast", lab.addr());
//! // ... load it ...
//! let stats = lab.shutdown();
//! assert_eq!(stats.requests, 0);
//! # let _ = url;
//! # Ok::<(), gake_lab::LabError>(())
//! ```
//!
//! # Design
//!
//! One OS thread per core, each with a tokio current-thread runtime; a connection stays on one of
//! them. There is **one** listener, not one per thread with `SO_REUSEPORT`: reuse-port hashes
//! connections over the threads, which with few connections leaves some threads idle and others
//! doubly loaded, and it splits the backlog, so that the accept count would mean nothing. Instead
//! the first thread accepts and hands each connection to the thread that has the fewest, which
//! costs one wake-up per connection and nothing per request.
//!
//! The path of a request: `accept` → `serve` (hyper) → `handler` → `routes` (the plan) → `pool` (a
//! worker slot and the service time) → `body` (the response) → `stats`.
//!
//! The library prints nothing, reads no arguments and never exits the process.

mod abort;
mod accept;
mod accepted;
mod arrivals;
mod body;
mod command;
mod config;
mod connection;
mod database;
mod draws;
mod duration;
mod flight;
mod grpc;
mod handler;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod io;
mod lab;
mod listen;
mod metastable;
mod partial_head;
mod pool;
mod readable;
mod routes;
mod serve;
mod service_time;
mod shared;
mod stats;
mod thread;
mod timer;
mod tls;
mod websocket;
mod worker;

pub use config::{LabConfig, LabError, Stall};
pub use database::{
    DatabaseConfig, DatabaseKind, DatabaseModel, DatabaseModelError, RealDatabase, UserConnection,
    UserDatabase, UserReply, UserRow, UserStatement,
};
pub use duration::{BadDuration, parse_duration};
pub use lab::Lab;
pub use metastable::Metastable;
pub use routes::HELP;
pub use service_time::{ServiceTime, ServiceTimeError};
pub use stats::{ConnectionStats, ServiceStats, Stats};
pub use tls::LabCertificate;
