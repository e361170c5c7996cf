//! What passes: who gets a request, and which headers go through.

pub(crate) mod choice;
pub(crate) mod forwarded;
pub(crate) mod headers;
pub(crate) mod inbound;
pub(crate) mod loop_detector;
