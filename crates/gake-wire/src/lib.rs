//! The client: HTTP/1.1 and HTTP/2 over TCP, TLS and Unix sockets, HTTP/3 over QUIC, with time-outs
//! and faults.
//!
//! A [`Network`] is what is known before a run (resolved addresses, TLS, settings), a [`Client`] is
//! one thread's way to send requests over it, many at once: [`Client::send`] gives the exchange and
//! what was kept of the response. Transports are behind an interface (`client/transport/`);
//! gake-codec has their protocols.
//!
//! A [`Wire`] is a load's requests; an [`HttpFactory`] makes one worker's share of it, and an
//! [`HttpWork`] is what one lane fires.
//!
//! This crate knows nothing of schedules: it is told when to fire, and given a clock.

#![cfg_attr(
    not(feature = "http3"),
    allow(dead_code, reason = "what QUIC alone needs of the other modules stays where it belongs")
)]

mod client;
mod load;
mod net;
#[cfg_attr(not(feature = "http3"), path = "without_quic.rs")]
mod quic;
mod tls;

pub use client::Client;
pub use client::error::WireError;
pub use client::grpc::{
    GrpcError, GrpcMessages, GrpcMethod, GrpcReflection, GrpcSchema, grpc_call, grpc_frame,
};
pub use client::network::Network;
pub use client::origin::Origin;
pub use client::request::{HttpRequest, PreparedRequest};
pub use client::session::{WebSocketEvent, WebSocketSession};
pub use client::settings::{Keep, MessageAnswer, Settings};
pub use client::visitor::ExchangeVisitor;
pub use load::check::{BodyCheck, BodyCheckError};
pub use load::factory::HttpFactory;
pub use load::feed::{Feed, NextRequest, WeightedRequest};
pub use load::inspect::Inspection;
pub use load::parts::stream_metrics;
pub use load::trace::{Span, Spans, Tracer};
pub use load::wire::Wire;
pub use load::work::HttpWork;
pub use net::address::{Address, ConnectTo, ResolveError, Resolver};
pub use net::deadline::Deadline;
pub use net::fault;
pub use net::location::{Location, LocationError, Scheme};
pub use net::location::{basic_authorization, basic_authorization_as_given};
pub use net::percent::percent_decoded;
pub use net::permit::ConnectionPermit;
pub use net::ports::{LOOPBACK_MAX, has_socket_port_ranges};
pub use net::proxy::{HttpProxy, ProxyError};
pub use net::source::{SourceAddressError, Sources};
pub use tls::facts::{ConnectionFacts, TlsFacts, TlsVersion};
pub use tls::handshakes::handshake_metrics;
pub use tls::key_log::TlsKeyLog;
pub use tls::protocol::Protocol;
pub use tls::{TlsError, TlsIdentity, TlsOptions, tls_suites, tls12_suites};
