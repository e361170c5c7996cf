//! One HTTP/1.1 request on one connection: codec, TCP, TLS, Unix sockets, time-outs, faults.

pub mod http1;
