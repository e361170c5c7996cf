//! Decides which backends get a request, and which headers pass.

pub(crate) mod choice;
pub(crate) mod forwarded;
pub(crate) mod headers;
pub(crate) mod inbound;
pub(crate) mod loop_detector;
