//! WebSocket of a client, without input and output (RFC 6455).
//!
//! An [`Upgrade`] opens a session, a [`MessageFrame`] holds the bytes of one message: both are
//! encoded once, so that sending copies nothing and allocates nothing. A [`FrameReader`] takes what
//! the server sends, in slices of any size.

mod frame;
mod message;
mod upgrade;

pub(crate) use frame::{FrameError, FrameEvents, FrameReader};
pub(crate) use message::{MessageFrame, Pongs, close_frame};
pub(crate) use upgrade::{Upgrade, UpgradeRead, UpgradeResponse};
