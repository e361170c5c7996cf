//! Datagrams as the kernel joins them, and as quinn takes them.
//!
//! The kernel joins up to 64 datagrams of one sender (GRO). quinn has room for 32 such messages in
//! every endpoint, 3 MB, and an endpoint has one connection here. So a thread has that room once, and
//! quinn has room for 32 single datagrams.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};

use bytes::{Buf, Bytes};
use quinn::udp::{BATCH_SIZE, RecvMeta};

/// The longest message: UDP has no longer ones.
const MESSAGE_BYTES: usize = 64 << 10;

thread_local! {
    /// Where messages are received. What no message has reached takes no memory.
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// quinn's buffers and what it is told of each.
pub(super) struct Room<'a, 'b> {
    buffers: &'a mut [IoSliceMut<'b>],
    about: &'a mut [RecvMeta],
    filled: usize,
}

impl<'a, 'b> Room<'a, 'b> {
    pub(super) fn new(buffers: &'a mut [IoSliceMut<'b>], about: &'a mut [RecvMeta]) -> Self {
        Self { buffers, about, filled: 0 }
    }

    /// How many buffers have something.
    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// Takes datagrams from the start of a message, as many as there is room for; their bytes in all.
    /// Those that are longer than a buffer are lost: the peer was told not to send such.
    fn take(&mut self, about: &RecvMeta, message: &[u8]) -> usize {
        let mut taken = 0;
        while taken < message.len() && self.filled < self.buffers.len() {
            let buffer = &mut self.buffers[self.filled];
            let most = buffer.len() / about.stride.max(1) * about.stride;
            if most == 0 {
                return message.len();
            }
            let part = &message[taken..message.len().min(taken + most)];
            buffer[..part.len()].copy_from_slice(part);
            self.about[self.filled] = RecvMeta { len: part.len(), ..*about };
            self.filled += 1;
            taken += part.len();
        }
        taken
    }
}

/// Messages that quinn had no room for, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting(VecDeque<(RecvMeta, Bytes)>);

impl Waiting {
    /// Gives `room` what it has room for.
    pub(super) fn pass_on(&mut self, room: &mut Room<'_, '_>) {
        while let Some((about, message)) = self.0.front_mut() {
            message.advance(room.take(about, message));
            if message.has_remaining() {
                return;
            }
            self.0.pop_front();
        }
    }

    /// Receives messages by `read`, which returns how many came. Nothing must wait.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn receive(
        &mut self,
        room: &mut Room<'_, '_>,
        read: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        RECEIVED.with_borrow_mut(|bytes| {
            if bytes.is_empty() {
                *bytes = vec![0; BATCH_SIZE * MESSAGE_BYTES];
            }
            let mut parts = bytes.chunks_exact_mut(MESSAGE_BYTES);
            let mut messages: [_; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
            let mut abouts = [RecvMeta::default(); BATCH_SIZE];
            let count = read(&mut messages, &mut abouts)?;
            for (about, message) in abouts.iter().zip(&messages).take(count) {
                let message = &message[..about.len];
                let rest = &message[room.take(about, message)..];
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

    /// Datagrams of these lengths, by the stride of their message: each byte says which one it is.
    fn message(stride: usize, lengths: &[usize], first: u8) -> (RecvMeta, Vec<u8>) {
        let numbered = (first..).zip(lengths);
        let bytes: Vec<u8> = numbered.flat_map(|(n, length)| vec![n; *length]).collect();
        (RecvMeta { len: bytes.len(), stride, ..RecvMeta::default() }, bytes)
    }

    /// What quinn makes of its buffers: the datagrams.
    fn taken(waiting: &mut Waiting, read: Option<&[(RecvMeta, Vec<u8>)]>) -> Vec<Vec<u8>> {
        let mut bytes = [[0_u8; 100]; 3];
        let mut buffers: [_; 3] = bytes.each_mut().map(|bytes| IoSliceMut::new(bytes));
        let mut about = [RecvMeta::default(); 3];
        let mut room = Room::new(&mut buffers, &mut about);
        match read {
            None => waiting.pass_on(&mut room),
            Some(read) => waiting
                .receive(&mut room, |messages, abouts| {
                    for (at, (about, bytes)) in read.iter().enumerate() {
                        messages[at][..bytes.len()].copy_from_slice(bytes);
                        abouts[at] = *about;
                    }
                    Ok(read.len())
                })
                .unwrap(),
        }
        let filled = room.filled();
        let filled = about.iter().zip(&bytes).take(filled);
        filled
            .flat_map(|(about, bytes)| bytes[..about.len].chunks(about.stride).map(<[u8]>::to_vec))
            .collect()
    }

    #[test]
    fn datagrams_arrive_whole_and_in_order_whatever_room_there_is() {
        let mut lengths = vec![60; 7];
        lengths.push(10);
        let messages = [
            message(60, &lengths, 0),
            message(30, &[30, 30, 30, 30], 8),
            message(100, &[100], 12),
            message(40, &[20], 13),
        ];
        let mut waiting = Waiting::default();
        let mut all = taken(&mut waiting, Some(&messages));
        assert_eq!(all.len(), 3, "a buffer has whole datagrams only");
        loop {
            let more = taken(&mut waiting, None);
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
    fn a_datagram_that_is_longer_than_it_may_be_is_lost_alone() {
        let mut waiting = Waiting::default();
        let messages = [message(101, &[101], 0), message(0, &[], 1), message(50, &[50], 1)];
        assert_eq!(taken(&mut waiting, Some(&messages)), [vec![1; 50]]);
        assert_eq!(taken(&mut waiting, None), Vec::<Vec<u8>>::new());
    }
}
