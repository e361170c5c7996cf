//! The codec against scripts of a server.

mod flow;
mod harness;
mod headers;
mod hostile;
mod states;
