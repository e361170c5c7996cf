//! Length-prefixed gRPC messages.

use std::pin::Pin;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::Body;
use hyper::body::Incoming;

use super::replies::CallStatus;

/// Bytes of the prefix: the compression flag and the length.
const PREFIX: usize = 5;

/// Bytes of the longest message accepted.
const MESSAGE_MAX: usize = 16 << 20;

pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(PREFIX + message.len());
    out.put_u8(0);
    out.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    out.put_slice(message);
    out.freeze()
}

/// Reads the messages of a request body.
#[derive(Debug)]
pub(super) struct Frames {
    body: Incoming,
    bytes: BytesMut,
}

impl Frames {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, bytes: BytesMut::new() }
    }

    /// The next message; `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, CallStatus> {
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            let body = &mut self.body;
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
            match frame {
                None if self.bytes.is_empty() => return Ok(None),
                None => {
                    return Err(CallStatus::new(
                        CallStatus::INTERNAL,
                        "the last message is cut short",
                    ));
                }
                Some(Err(_)) => {
                    return Err(CallStatus::new(CallStatus::CANCELLED, "the client is gone"));
                }
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.bytes.extend_from_slice(data);
                    }
                }
            }
        }
    }

    /// The only message of a unary call.
    pub(super) async fn only(&mut self) -> Result<Bytes, CallStatus> {
        let first = self.next().await?;
        let Some(first) = first else {
            return Err(CallStatus::new(CallStatus::INTERNAL, "there is no message"));
        };
        match self.next().await? {
            None => Ok(first),
            Some(_) => Err(CallStatus::new(CallStatus::INTERNAL, "there is more than one message")),
        }
    }

    fn whole(&mut self) -> Result<Option<Bytes>, CallStatus> {
        let Some([flags, length @ ..]) = self.bytes.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        if *flags != 0 {
            return Err(CallStatus::new(
                CallStatus::UNIMPLEMENTED,
                "messages cannot be compressed",
            ));
        }
        let length = u32::from_be_bytes(*length) as usize;
        if length > MESSAGE_MAX {
            return Err(CallStatus::new(
                CallStatus::RESOURCE_EXHAUSTED,
                "the message is too large",
            ));
        }
        if self.bytes.len() < PREFIX + length {
            return Ok(None);
        }
        self.bytes.advance(PREFIX);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }
}
