//! Keeps a response.

use gake_codec::http1::{ResponseHead, Visitor};
use gake_core::record::CapturedResponse;

use crate::client::visitor::ExchangeVisitor;

/// Keeps the head of a response and the first bytes of its body, or nothing.
#[derive(Debug)]
pub(crate) struct KeepVisitor {
    kept: Option<Box<CapturedResponse>>,
    /// Maximum number of bytes kept of the body.
    most: usize,
}

impl KeepVisitor {
    /// `most`: bytes of the body to keep; `None` to keep nothing.
    #[inline]
    pub(crate) fn new(most: Option<usize>) -> Self {
        Self { kept: most.map(|_| Box::default()), most: most.unwrap_or(0) }
    }

    #[inline]
    pub(crate) fn take(self) -> Option<Box<CapturedResponse>> {
        self.kept
    }
}

impl Visitor for KeepVisitor {
    #[inline]
    fn wants_head(&self) -> bool {
        self.kept.is_some()
    }

    #[inline]
    fn head(&mut self, head: &ResponseHead<'_>) {
        let Some(kept) = &mut self.kept else { return };
        let line = |header: &httparse::Header<'_>| {
            (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())
        };
        kept.headers = head.headers.iter().map(line).collect();
        kept.body.clear();
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        let Some(kept) = &mut self.kept else { return };
        let room = self.most.saturating_sub(kept.body.len()).min(bytes.len());
        kept.body.extend_from_slice(&bytes[..room]);
    }
}

impl ExchangeVisitor for KeepVisitor {}
