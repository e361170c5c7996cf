//! Bodies of requests, as far as the server's windows have room.

use std::sync::Arc;

use super::connection::{ClientConnection, OUTPUT_MAX};
use super::frame::{flag, kind, put_header};
use super::streams::Upload;

impl ClientConnection {
    /// Sends the body of a request that has just been started.
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
        stream.upload = Some(Upload { body: Arc::clone(body), at: 0, has_waited: false });
        self.uploads.push_back((slot, stream.id));
        self.pump();
    }

    /// Puts a frame of each waiting body into the output in turn, while there is room.
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

    /// Puts a frame of a body into the output and says whether there was room for one; `None` when
    /// the body is all there, or not wanted any more.
    fn put_data(&mut self, slot: u32, id: u32) -> Option<bool> {
        let start = self.position();
        let stream = self.streams.get(slot);
        if stream.id != id {
            return None;
        }
        let upload = stream.upload.as_mut()?;
        let left = upload.body.len() - upload.at;
        let room = self.peer.window.min(stream.window);
        let length = left.min(usize::try_from(room).unwrap_or(0)).min(self.peer.payload_max);
        if length == 0 {
            if !std::mem::replace(&mut upload.has_waited, true) {
                self.counts.window_waits += 1;
            }
            return Some(false);
        }
        let is_last = length == left;
        let flags = if is_last { flag::END_STREAM } else { 0 };
        put_header(&mut self.output, length, kind::DATA, flags, id);
        self.output.extend_from_slice(&upload.body[upload.at..upload.at + length]);
        upload.at += length;
        stream.window -= length as i64;
        self.peer.window -= length as i64;
        self.reading.is_useful();
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
