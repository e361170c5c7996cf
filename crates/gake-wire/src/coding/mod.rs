//! Content codings of bodies (RFC 9110, section 8.4).

mod decode;
mod encode;

pub use decode::decoded;
pub use encode::encoded;
