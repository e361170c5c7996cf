//! One HTTP/1.1 request on one connection: codec, TCP, TLS, Unix sockets, time-outs, faults.
//!
//! [`http1`] is the codec, without input and output. [`Wire`] is everything that is known before
//! a run (rendered requests, resolved addresses, TLS settings); an [`HttpFactory`] is one worker's
//! share of it while the run goes on, and [`HttpWork`] is what one lane fires.
//!
//! This crate never names schedules: it is told to fire, and on whose clock.

mod address;
mod conn;
mod connect;
mod deadline;
mod factory;
pub mod fault;
pub mod http1;
mod idle;
mod location;
mod meter;
mod order;
mod origin;
mod pool;
mod redirect;
mod sockopt;
mod source;
mod stream;
mod tls;
mod transact;
mod wire;
mod work;

pub use address::{Address, ConnectTo, ResolveError, Resolver};
pub use factory::HttpFactory;
pub use location::{Location, LocationError, Scheme};
pub use origin::Origin;
pub use source::{SourceError, Sources};
pub use tls::{TlsError, TlsOptions};
pub use wire::{
    Ask, BoxedAsk, Feed, Keep, Prepared, Settings, Wire, WireError, basic_authorization,
};
pub use work::HttpWork;
