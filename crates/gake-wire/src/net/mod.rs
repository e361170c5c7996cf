//! URLs and addresses, sockets, streams, ports, time-outs, faults.

pub(crate) mod address;
pub(crate) mod alarm;
pub(crate) mod alternative;
pub(crate) mod deadline;
pub mod fault;
pub(crate) mod ip_network;
pub(crate) mod location;
pub mod lookup;
pub(crate) mod percent;
pub(crate) mod permit;
pub(crate) mod ports;
pub(crate) mod proxy;
pub(crate) mod proxy_rules;
pub(crate) mod scratch;
pub(crate) mod sockopt;
mod socks;
pub(crate) mod source;
pub(crate) mod stream;
