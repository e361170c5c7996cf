//! The read buffer of a thread.

use std::cell::{RefCell, RefMut};
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use crate::net::stream::Stream;

/// Maximum bytes of one read.
const SIZE: usize = 64 * 1024;

/// One buffer for all connections of a thread: bytes are parsed as they are read, and only an
/// incomplete head is kept.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: RefCell<Box<[u8]>>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { bytes: RefCell::new(vec![0; SIZE].into_boxed_slice()) }
    }

    /// The buffer, to read without a [`Stream`].
    #[inline]
    pub(crate) fn buffer(&self) -> RefMut<'_, Box<[u8]>> {
        self.bytes.borrow_mut()
    }

    /// Reads once and hands the bytes to `take`; an empty slice is the end.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<std::io::Result<T>> {
        let mut bytes = self.bytes.borrow_mut();
        // Initialised once, so that TLS need not clear it before every read.
        let mut buffer = ReadBuf::new(&mut bytes);
        stream.poll_read(cx, &mut buffer).map_ok(|()| take(buffer.filled()))
    }
}
