//! The upgrade of a connection to a WebSocket session.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use gake_codec::http1::{ChunkDecoder, ResponseLimits, Visitor};
use gake_codec::websocket::{UpgradeProgress, UpgradeRequest, UpgradeResponse};
use gake_core::record::{Fault, Phase};

use crate::net::fault;
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;

/// Maximum bytes of the response's head, including interim responses.
const HEAD_MAX: usize = 64 * 1024;

/// Maximum bytes of the body of a refusal, as in gorilla's client.
const BODY_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct UpgradeResult {
    pub(crate) response: UpgradeResponse,
    /// Bytes after the head: the first frames, or the start of a body.
    pub(crate) rest: Vec<u8>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// Sends the upgrade and reads the head of its response.
pub(crate) async fn open(
    stream: &mut Stream,
    upgrade: &UpgradeRequest,
    scratch: &Scratch,
) -> Result<UpgradeResult, Fault> {
    let mut opening = UpgradeExchange { upgrade, sent: 0, head: Vec::new(), bytes_in: 0 };
    let (response, rest) = poll_fn(|cx| opening.poll(stream, scratch, cx)).await?;
    let UpgradeExchange { bytes_in, sent, .. } = opening;
    Ok(UpgradeResult { response, rest, bytes_in, bytes_out: sent as u64 })
}

/// Reads the start of the body of a refusal, as far as Go's clients keep it.
pub(crate) async fn refusal_body(
    stream: &mut Stream,
    refusal: &mut UpgradeResult,
    scratch: &Scratch,
) {
    let UpgradeResult { response, rest, bytes_in, .. } = refusal;
    let value = |name: &str| {
        let named = response.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    };
    let is_chunked = value("transfer-encoding").is_some();
    let length = value("content-length").and_then(|length| length.parse::<usize>().ok());
    let most = length.unwrap_or(BODY_MAX).min(BODY_MAX);
    let mut chunks = ChunkDecoder::new();
    let mut bytes = std::mem::take(rest);
    loop {
        let is_last = match is_chunked {
            true => {
                let mut collected = CollectedBody(&mut response.body);
                let pushed = chunks.push(&bytes, &ResponseLimits::default(), &mut collected);
                pushed.map_or(true, |progress| progress.done)
            }
            false => {
                response.body.append(&mut bytes);
                false
            }
        };
        if is_last || response.body.len() >= most {
            break;
        }
        let read = poll_fn(|cx| scratch.read(stream, cx, <[u8]>::to_vec)).await;
        match read {
            Ok(more) if !more.is_empty() => {
                *bytes_in += more.len() as u64;
                bytes = more;
            }
            _ => break,
        }
    }
    response.body.truncate(most);
}

struct CollectedBody<'a>(&'a mut Vec<u8>);

impl Visitor for CollectedBody<'_> {
    fn body(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

struct UpgradeExchange<'a> {
    upgrade: &'a UpgradeRequest,
    /// Bytes of the request written so far.
    sent: usize,
    head: Vec<u8>,
    bytes_in: u64,
}

impl UpgradeExchange<'_> {
    fn poll(
        &mut self,
        stream: &mut Stream,
        scratch: &Scratch,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(UpgradeResponse, Vec<u8>), Fault>> {
        if let Err(error) = self.write(stream, cx) {
            return Poll::Ready(Err(fault::of_write(&error)));
        }
        loop {
            let head = &mut self.head;
            let read = scratch.read(stream, cx, |bytes| {
                head.extend_from_slice(bytes);
                bytes.len()
            });
            match ready!(read) {
                Ok(0) => return Poll::Ready(Err(Fault::ClosedEarly(Phase::FirstByte))),
                Ok(count) => self.bytes_in += count as u64,
                Err(error) => return Poll::Ready(Err(fault::of_read(&error, Phase::FirstByte))),
            }
            if let Some(end) = self.read() {
                return Poll::Ready(end);
            }
        }
    }

    fn write(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> io::Result<()> {
        while self.sent < self.upgrade.bytes.len() {
            match stream.poll_write(cx, &self.upgrade.bytes[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.sent += count,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        match stream.poll_flush(cx) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    /// The response and the bytes after its head, once that is complete.
    fn read(&mut self) -> Option<Result<(UpgradeResponse, Vec<u8>), Fault>> {
        loop {
            if self.head.len() > HEAD_MAX {
                return Some(Err(Fault::TooLarge("head")));
            }
            match self.upgrade.read(&self.head) {
                UpgradeProgress::Partial => return None,
                UpgradeProgress::Malformed(why) => return Some(Err(Fault::Malformed(why))),
                UpgradeProgress::Complete(response, length) => {
                    let rest = self.head.split_off(length);
                    if !matches!(response.status, 100 | 102..=199) {
                        return Some(Ok((response, rest)));
                    }
                    // An interim response.
                    self.head = rest;
                }
            }
        }
    }
}
