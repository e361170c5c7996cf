//! HTTP/1.1 (RFC 9112).
//!
//! [`request::render`] turns a request into bytes once, before the run. A [`ResponseParser`], one
//! per connection, takes each response in slices of any size; the outcome does not depend on how
//! the bytes are split. A head within one slice is parsed in place, without allocation; one that
//! [`KnownHeads`] holds is not parsed at all. Bodies are counted and handed to a [`Visitor`].
//!
//! Where RFC 9112 leaves a choice, a response with ambiguous framing is rejected: a load tester
//! that guesses reports the wrong thing.

mod chunked;
mod head;
mod known_heads;
mod malformed;
pub mod request;
mod response;
mod scan;
#[cfg(test)]
mod tests;
mod types;
mod visitor;

pub use chunked::{ChunkDecoder, ChunkProgress};
pub use head::ResponseHead;
pub use httparse::Header;
pub use known_heads::KnownHeads;
pub use malformed::Malformed;
pub use response::ResponseParser;
pub use types::{Eof, MAX_HEADERS, ParseProgress, Response, ResponseLimits, Version};
pub use visitor::Visitor;
