//! The codec against scripted servers.

mod flow;
mod harness;
mod headers;
mod hostile;
mod states;
