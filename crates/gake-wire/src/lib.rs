//! The client: HTTP/1.1 and HTTP/2 over TCP, TLS and Unix sockets, HTTP/3 over QUIC, with time-outs
//! and faults.
//!
//! A [`Network`] is what is known before a run (resolved addresses, TLS, settings), a [`Client`] is
//! one thread's way to send requests over it, many at once: [`Client::send`] gives the exchange and
//! what was kept of the response. Transports are behind an interface (`transport/`);
//! [`http1`], [`http2`] and [`http3`] are their codecs, without input and output.
//!
//! A [`Wire`] is a load's requests; an [`HttpFactory`] makes one worker's share of it, and an
//! [`HttpWork`] is what one lane fires.
//!
//! This crate knows nothing of schedules: it is told when to fire, and given a clock.

mod address;
mod alarm;
mod alternative;
mod authorization;
mod call;
mod check;
mod client;
mod deadline;
mod dial;
mod dial_quic;
mod early;
mod ech;
mod encode;
mod error;
mod factory;
mod facts;
pub mod fault;
mod feed;
mod grpc;
mod handshakes;
pub mod http1;
pub mod http2;
pub mod http3;
mod idle;
mod inspect;
mod kept;
mod key_log;
mod location;
mod meter;
mod network;
mod order;
mod origin;
mod parts;
mod percent;
mod permit;
mod pool;
mod ports;
mod proxy;
mod quic;
mod redirect;
mod request;
mod scratch;
mod session;
mod settings;
mod shared;
mod sockopt;
mod source;
mod stapling;
mod stream;
mod tls;
mod trace;
mod transport;
mod websocket;
mod wire;
mod work;

pub use address::{Address, ConnectTo, ResolveError, Resolver};
pub use authorization::basic_authorization;
pub use check::{BodyCheck, BodyCheckError};
pub use client::Client;
pub use deadline::Deadline;
pub use error::WireError;
pub use factory::HttpFactory;
pub use facts::{ConnectionFacts, TlsFacts, TlsVersion};
pub use feed::{Feed, NextRequest, WeightedRequest};
pub use grpc::{
    GrpcError, GrpcMessages, GrpcMethod, GrpcReflection, GrpcSchema, grpc_call, grpc_frame,
};
pub use handshakes::handshake_metrics;
pub use inspect::Inspection;
pub use key_log::TlsKeyLog;
pub use location::{Location, LocationError, Scheme};
pub use network::Network;
pub use origin::Origin;
pub use parts::stream_metrics;
pub use percent::percent_decoded;
pub use permit::ConnectionPermit;
pub use ports::{LOOPBACK_MAX, has_socket_port_ranges};
pub use proxy::{HttpProxy, ProxyError};
pub use request::{HttpRequest, PreparedRequest};
pub use session::{WebSocketEvent, WebSocketSession};
pub use settings::{Keep, MessageAnswer, Protocol, Settings};
pub use source::{SourceAddressError, Sources};
pub use tls::{TlsError, TlsIdentity, TlsOptions, tls_suites, tls12_suites};
pub use trace::{Span, Spans, Tracer};
pub use websocket::UpgradeResponse;
pub use wire::Wire;
pub use work::HttpWork;
