//! The client: HTTP/1.1 and HTTP/2 over TCP, TLS and Unix sockets, HTTP/3 over QUIC, with time-outs
//! and faults.
//!
//! A [`Network`] is prepared before a run: addresses, TLS, settings. A [`Client`] sends one thread's
//! concurrent requests over it. Transports are behind one interface (`client/transport/`);
//! gake-codec has their protocols.
//!
//! A [`PreparedRequests`] holds a load's requests; an [`HttpFactory`] sends one worker's slice of
//! them, an [`HttpWork`] one lane's. This crate knows no schedules, and reads time only by the
//! clock that it is given.

#![cfg_attr(
    not(feature = "http3"),
    allow(dead_code, reason = "only QUIC needs some items of other modules")
)]

mod client;
pub mod coding;
mod load;
mod net;
#[cfg_attr(not(feature = "http3"), path = "without_quic.rs")]
mod quic;
mod tls;

pub use client::Client;
pub use client::address_load::address_metrics;
pub use client::byte_stream::{ByteStream, StreamTls};
pub use client::error::WireError;
pub use client::grpc::{
    GrpcError, GrpcMessages, GrpcMethod, GrpcReflection, GrpcSchema, grpc_call, grpc_frame,
};
pub use client::network::Network;
pub use client::origin::Origin;
pub use client::request::{HttpRequest, PreparedRequest};
pub use client::session::{WebSocketEvent, WebSocketSession};
pub use client::settings::{ClientSettings, KeepLimits, RedirectRules, ReplyRule};
pub use client::visitor::ExchangeVisitor;
pub use load::check::{BodyCheck, BodyCheckError};
pub use load::factory::HttpFactory;
pub use load::fast::HttpFastLane;
pub use load::feed::{NextRequest, RequestFeed, WeightedRequest};
pub use load::inspect::Inspection;
pub use load::prepared_requests::PreparedRequests;
pub use load::request_list::RequestList;
pub use load::stream::stream_metrics;
pub use load::trace::{SpanReceiver, TraceSpan, Tracer};
pub use load::work::HttpWork;
pub use net::address::{Address, ConnectTo, NameLookup, ResolveError, Resolver};
pub use net::deadline::Deadline;
pub use net::fault;
pub use net::ip_network::{IpNetwork, IpNetworkError};
pub use net::location::{Location, LocationError, LocationParser, Scheme};
pub use net::location::{basic_authorization, basic_authorization_as_given};
pub use net::lookup;
pub use net::percent::percent_decoded;
pub use net::permit::ConnectionPermit;
pub use net::ports::{LOOPBACK_MAX, has_socket_port_ranges};
pub use net::proxy::{ForwardProxy, ProxyError};
pub use net::proxy_rules::{ProxyExceptions, ProxyRules};
pub use net::source::{SourceAddressError, SourceAddresses};
pub use tls::facts::{ConnectionFacts, TlsFacts, TlsVersion};
pub use tls::handshakes::handshake_metrics;
pub use tls::key_log::TlsKeyLog;
pub use tls::protocol::Protocol;
pub use tls::stream_options::StreamTlsOptions;
pub use tls::{TlsError, TlsIdentity, TlsOptions, seed_random, tls_suites, tls12_suites};
