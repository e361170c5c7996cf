//! Splits coalesced datagrams for quinn.
//!
//! The kernel coalesces up to 64 datagrams of one sender (GRO). quinn would hold buffers for 32 such
//! messages, 3 MB, in every endpoint, and here every connection has an endpoint. So a thread has these
//! buffers once, and quinn has buffers for 32 single datagrams.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};

use bytes::{Buf, Bytes};
use quinn::udp::{BATCH_SIZE, RecvMeta};

/// The maximum length of a UDP message.
const MESSAGE_BYTES: usize = 64 << 10;

thread_local! {
    /// The receive buffer. Pages never written to take no memory.
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// quinn's buffers and their metadata.
pub(super) struct DatagramBuffers<'a, 'b> {
    buffers: &'a mut [IoSliceMut<'b>],
    about: &'a mut [RecvMeta],
    filled: usize,
}

impl<'a, 'b> DatagramBuffers<'a, 'b> {
    pub(super) fn new(buffers: &'a mut [IoSliceMut<'b>], about: &'a mut [RecvMeta]) -> Self {
        Self { buffers, about, filled: 0 }
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// Copies as many datagrams of a message as there are free buffers, and returns their bytes.
    /// Datagrams longer than a buffer are dropped: transport parameters forbid them.
    fn fill(&mut self, about: &RecvMeta, message: &[u8]) -> usize {
        let mut taken = 0;
        while taken < message.len() && self.filled < self.buffers.len() {
            let buffer = &mut self.buffers[self.filled];
            let most = buffer.len() / about.stride.max(1) * about.stride;
            if most == 0 {
                return message.len();
            }
            let datagrams = &message[taken..message.len().min(taken + most)];
            buffer[..datagrams.len()].copy_from_slice(datagrams);
            self.about[self.filled] = RecvMeta { len: datagrams.len(), ..*about };
            self.filled += 1;
            taken += datagrams.len();
        }
        taken
    }
}

/// Messages that did not fit into quinn's buffers, oldest first.
#[derive(Debug, Default)]
pub(super) struct DatagramBacklog(VecDeque<(RecvMeta, Bytes)>);

impl DatagramBacklog {
    /// Moves as much as fits into `buffers`.
    pub(super) fn drain_into(&mut self, buffers: &mut DatagramBuffers<'_, '_>) {
        while let Some((about, message)) = self.0.front_mut() {
            message.advance(buffers.fill(about, message));
            if message.has_remaining() {
                return;
            }
            self.0.pop_front();
        }
    }

    /// Receives messages by `read`, which returns their number. The backlog must be empty.
    ///
    /// # Errors
    /// The error of `read`.
    pub(super) fn receive(
        &mut self,
        buffers: &mut DatagramBuffers<'_, '_>,
        read: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        RECEIVED.with_borrow_mut(|bytes| {
            if bytes.is_empty() {
                *bytes = vec![0; BATCH_SIZE * MESSAGE_BYTES];
            }
            let mut chunks = bytes.chunks_exact_mut(MESSAGE_BYTES);
            let mut messages: [_; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            let mut abouts = [RecvMeta::default(); BATCH_SIZE];
            let count = read(&mut messages, &mut abouts)?;
            for (about, message) in abouts.iter().zip(&messages).take(count) {
                let message = &message[..about.len];
                let rest = &message[buffers.fill(about, message)..];
                if !rest.is_empty() {
                    self.0.push_back((*about, Bytes::copy_from_slice(rest)));
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of datagrams of these lengths; their bytes are their numbers.
    fn message(stride: usize, lengths: &[usize], first: u8) -> (RecvMeta, Vec<u8>) {
        let numbered = (first..).zip(lengths);
        let bytes: Vec<u8> = numbered.flat_map(|(n, length)| vec![n; *length]).collect();
        (RecvMeta { len: bytes.len(), stride, ..RecvMeta::default() }, bytes)
    }

    /// The datagrams in quinn's buffers, from the backlog or newly read.
    fn taken(backlog: &mut DatagramBacklog, read: Option<&[(RecvMeta, Vec<u8>)]>) -> Vec<Vec<u8>> {
        let mut bytes = [[0_u8; 100]; 3];
        let mut slices: [_; 3] = bytes.each_mut().map(|bytes| IoSliceMut::new(bytes));
        let mut about = [RecvMeta::default(); 3];
        let mut buffers = DatagramBuffers::new(&mut slices, &mut about);
        match read {
            None => backlog.drain_into(&mut buffers),
            Some(read) => backlog
                .receive(&mut buffers, |messages, abouts| {
                    for (at, (about, bytes)) in read.iter().enumerate() {
                        messages[at][..bytes.len()].copy_from_slice(bytes);
                        abouts[at] = *about;
                    }
                    Ok(read.len())
                })
                .unwrap(),
        }
        let filled = buffers.filled();
        let filled = about.iter().zip(&bytes).take(filled);
        filled
            .flat_map(|(about, bytes)| bytes[..about.len].chunks(about.stride).map(<[u8]>::to_vec))
            .collect()
    }

    #[test]
    fn datagrams_arrive_whole_and_in_order() {
        let mut lengths = vec![60; 7];
        lengths.push(10);
        let messages = [
            message(60, &lengths, 0),
            message(30, &[30, 30, 30, 30], 8),
            message(100, &[100], 12),
            message(40, &[20], 13),
        ];
        let mut backlog = DatagramBacklog::default();
        let mut all = taken(&mut backlog, Some(&messages));
        assert_eq!(all.len(), 3, "a buffer has whole datagrams only");
        loop {
            let more = taken(&mut backlog, None);
            if more.is_empty() {
                break;
            }
            all.extend(more);
        }
        let expected = lengths.iter().chain(&[30, 30, 30, 30, 100, 20]).zip(0u8..);
        let expected: Vec<_> = expected.map(|(length, n)| vec![n; *length]).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn only_datagrams_over_the_limit_are_dropped() {
        let mut backlog = DatagramBacklog::default();
        let messages = [message(101, &[101], 0), message(0, &[], 1), message(50, &[50], 1)];
        assert_eq!(taken(&mut backlog, Some(&messages)), [vec![1; 50]]);
        assert_eq!(taken(&mut backlog, None), Vec::<Vec<u8>>::new());
    }
}
