//! HTTP/1.1 messages as they pass through: heads as bytes, buffered bodies, chunks.

pub(crate) mod body;
pub(crate) mod chunks;
pub(crate) mod head;
pub(crate) mod line;
pub(crate) mod response_head;
