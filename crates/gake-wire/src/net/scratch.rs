//! The buffer that all reads of a thread go through.

use std::cell::RefCell;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use crate::net::stream::Stream;

/// Bytes read at once. One buffer serves all connections: what is read is parsed at once, and only
/// an incomplete head is kept.
const SIZE: usize = 64 * 1024;

/// The read buffer of a thread.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: RefCell<Box<[u8]>>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { bytes: RefCell::new(vec![0; SIZE].into_boxed_slice()) }
    }

    /// Reads once, and hands what came to `take`; an empty slice is the end.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<std::io::Result<T>> {
        let mut bytes = self.bytes.borrow_mut();
        // Written once at the start, so that TLS need not clear it before every read.
        let mut buffer = ReadBuf::new(&mut bytes);
        stream.poll_read(cx, &mut buffer).map_ok(|()| take(buffer.filled()))
    }
}
