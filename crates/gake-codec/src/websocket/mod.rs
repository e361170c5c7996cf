//! WebSocket of a client (RFC 6455).
//!
//! An [`UpgradeRequest`] opens a session, a [`MessageFrame`] holds the bytes of one message: both are
//! encoded once, so that sending copies and allocates nothing. A [`FrameReader`] takes the server's
//! bytes in slices of any size.

mod frame;
mod message;
mod upgrade;

pub use frame::{CONTROL_MAX, FrameError, FrameEvents, FrameReader, opcode};
pub use message::{MessageFrame, PongQueue, close_frame, put_frame, random_mask};
pub use upgrade::{UpgradeProgress, UpgradeRequest, UpgradeResponse};
