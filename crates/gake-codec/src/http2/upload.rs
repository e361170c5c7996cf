//! Bodies of requests, under the server's flow control.

use std::sync::Arc;

use super::connection::{ClientConnection, OUTPUT_MAX};
use super::frame::{flag, kind, put_header};
use super::streams::Upload;
use super::template::RequestTemplate;

impl ClientConnection {
    /// Sends the body of a new stream.
    #[inline]
    pub(super) fn upload(&mut self, slot: u32, body: &Arc<[u8]>) {
        let length = body.len();
        let stream = self.streams.get(slot);
        let room = self.peer.window.min(stream.window).min(self.peer.payload_max as i64);
        if self.uploads.is_empty() && length as i64 <= room {
            let (id, before) = (stream.id, self.output.len());
            put_header(&mut self.output, length, kind::DATA, flag::END_STREAM, id);
            self.output.extend_from_slice(body);
            stream.window -= length as i64;
            stream.queued.bytes += (self.output.len() - before) as u64;
            self.peer.window -= length as i64;
            let end = self.position();
            self.streams.get(slot).queued.end = end;
            return;
        }
        stream.upload = Some(Box::new(Upload::new(Arc::clone(body), false)));
        self.uploads.push_back((slot, stream.id));
        self.pump();
    }

    /// Appends frames of waiting bodies to the output, round-robin, as far as windows and the output
    /// have room.
    #[inline]
    pub(super) fn pump(&mut self) {
        let mut idle = 0;
        while idle < self.uploads.len() && self.output.len() < OUTPUT_MAX {
            let Some((slot, id)) = self.uploads.pop_front() else { return };
            match self.put_data(slot, id) {
                Some(true) => idle = 0,
                Some(false) => idle += 1,
                None => continue,
            }
            self.uploads.push_back((slot, id));
        }
    }

    /// Starts a stream whose body follows by [`send`](Self::send) and [`finish`](Self::finish); its
    /// response is shown. Returns its slot; `None` at the limit of streams.
    pub fn start_open(&mut self, request: &RequestTemplate, owner: u32) -> Option<u32> {
        let slot = self.begin(request, owner, true, false)?;
        self.streams.get(slot).upload = Some(Box::new(Upload::new(Arc::default(), true)));
        Some(slot)
    }

    /// Appends to the body of a live stream from [`start_open`](Self::start_open).
    pub fn send(&mut self, slot: u32, bytes: Arc<[u8]>) {
        if !bytes.is_empty() {
            self.resume(slot, |upload| upload.more.push_back(bytes));
        }
    }

    /// Ends the body of a live stream from [`start_open`](Self::start_open).
    pub fn finish(&mut self, slot: u32) {
        self.resume(slot, |upload| upload.is_open = false);
    }

    fn resume(&mut self, slot: u32, change: impl FnOnce(&mut Upload)) {
        let stream = self.streams.get(slot);
        let Some(upload) = &mut stream.upload else { return };
        change(upload);
        if !std::mem::replace(&mut upload.is_queued, true) {
            self.uploads.push_back((slot, stream.id));
        }
    }

    /// Appends a frame of a body to the output and returns whether the windows allowed it; `None` if
    /// nothing of the body is left, now or for good.
    fn put_data(&mut self, slot: u32, id: u32) -> Option<bool> {
        let start = self.position();
        let stream = self.streams.get(slot);
        if stream.id != id {
            return None;
        }
        let upload = stream.upload.as_mut()?;
        let (left, are_last) = upload.left();
        if left == 0 && !are_last {
            upload.is_queued = false;
            return None;
        }
        let room = self.peer.window.min(stream.window);
        let length = left.min(usize::try_from(room).unwrap_or(0)).min(self.peer.payload_max);
        if length == 0 && left > 0 {
            if !std::mem::replace(&mut upload.has_waited, true) {
                self.counts.window_waits += 1;
            }
            return Some(false);
        }
        let is_last = are_last && length == left;
        let flags = if is_last { flag::END_STREAM } else { 0 };
        put_header(&mut self.output, length, kind::DATA, flags, id);
        self.output.extend_from_slice(&upload.body[upload.at..upload.at + length]);
        upload.at += length;
        stream.window -= length as i64;
        self.peer.window -= length as i64;
        self.read_state.useful_frame();
        if is_last {
            stream.upload = None;
        }
        let end = self.position();
        let queued = &mut self.streams.get(slot).queued;
        queued.bytes += end - start;
        queued.end = end;
        (!is_last).then_some(true)
    }
}
