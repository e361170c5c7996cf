//! The client against servers of every behaviour.

// All of it is test code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod client;
mod lookups;
mod pki;
mod scripted;
mod server;

mod addresses;
mod connecting;
mod deadlines;
mod economy;
mod ending;
mod fed;
mod framing;
mod held;
mod http2;
mod http2_hostile;
mod http3;
mod http3_hostile;
mod kept;
mod lab;
mod pool;
mod redirects;
mod reuse;
mod sends;
mod tls;
mod unfinished;
mod uploads;
mod websocket;
