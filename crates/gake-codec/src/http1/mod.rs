//! The HTTP/1.1 codec, without input and output: bytes in, a response or a fault out.
//!
//! [`request::render`] turns a request into bytes once, before the run. A [`ResponseParser`], one a
//! connection, takes the bytes of each answer in whatever slices the socket gives. The outcome
//! never depends on how the bytes are split, and a head that comes in one slice is parsed where
//! it lies: no allocation, no copy; one that [`KnownHeads`] has is not parsed at all. Bodies are
//! counted and handed to a [`Visitor`], not kept.
//!
//! The rules are those of RFC 9112. Where it leaves a choice, an answer that is not clearly
//! framed is rejected: a load tester that guesses reports the wrong thing.

mod chunked;
mod head;
mod known;
mod malformed;
pub mod request;
mod response;
mod scan;
#[cfg(test)]
mod tests;
mod types;
mod visitor;

pub use chunked::{ChunkDecoder, Pushed};
pub use head::ResponseHead;
pub use httparse::Header;
pub use known::KnownHeads;
pub use malformed::Malformed;
pub use response::ResponseParser;
pub use types::{Eof, MAX_HEADERS, Progress, Response, ResponseLimits, Version};
pub use visitor::{BodyPiece, Visitor};
