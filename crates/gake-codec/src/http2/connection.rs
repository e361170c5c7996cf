//! A connection as its client sees it: what is sent, and the state that both directions share.

use std::collections::VecDeque;
use std::sync::Arc;

use gake_core::record::ErrorCode;

use super::decoder::{HeaderDecoder, TABLE_SIZE};
use super::events::{StreamEnd, StreamEnding};
use super::frame::{PAYLOAD_MAX, PREFACE, flag, kind, put_header, put_number, setting};
use super::integer::put_integer;
use super::reading::Reading;
use super::streams::{Queued, Stream, Streams};
use super::template::{FieldsForm, RequestTemplate, SharedFields};

/// The window that connections and streams start with (RFC 9113, section 6.9.2).
pub(super) const FIRST_WINDOW: u32 = 65_535;

/// No more of a body is put into an output that holds this much already.
pub(super) const OUTPUT_MAX: usize = 256 * 1024;

/// Streams that a server is taken to allow until it says so.
const STREAMS_ASSUMED: u32 = 100;

/// The number of the last stream that a connection can have.
const LAST_STREAM: u32 = (1 << 31) - 1;

/// Bounds on a connection, and what it offers the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of concurrent streams, whatever the server allows.
    pub streams: u32,
    /// Flow-control window of a stream, in bytes; at most 2^31−1.
    pub stream_window: u32,
    /// Flow-control window of the connection; at least 65,535.
    pub connection_window: u32,
    /// Bytes of a response's headers; of a header block as it is sent, too.
    pub header_bytes: usize,
    /// Interim (1xx) responses before the final one.
    pub interim: u32,
}

impl Default for ConnectionLimits {
    /// 100 streams and windows of 2^30 bytes: bodies are counted and not kept.
    fn default() -> Self {
        Self {
            streams: 100,
            stream_window: (1 << 30) - 1,
            connection_window: 1 << 30,
            header_bytes: 256 * 1024,
            interim: 100,
        }
    }
}

/// What a connection has counted since the last call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Bytes received that belong to no live stream.
    pub bytes_in: u64,
    /// Bytes sent that belong to no request: settings, acknowledgements, window updates, resets.
    pub bytes_out: u64,
    /// Streams that the server reset.
    pub resets: u64,
    /// GOAWAY frames received.
    pub goaways: u64,
    /// Bytes of header blocks received, as they were sent.
    pub header_bytes: u64,
    /// Bytes of the names and values in these blocks.
    pub header_text_bytes: u64,
    /// Request bodies that had to wait for the server's window.
    pub window_waits: u64,
}

/// The client's side of a connection, without input and output.
///
/// Its frames are in [`output`](Self::output), to be written in order; the server's bytes go
/// into [`receive`](Self::receive). A stream has a slot from [`start`](Self::start) to its end.
#[derive(Debug)]
pub struct ClientConnection {
    pub(super) limits: ConnectionLimits,
    pub(super) streams: Streams,
    pub(super) decoder: HeaderDecoder,
    pub(super) reading: Reading,
    pub(super) peer: Peer,
    pub(super) counts: ConnectionCounts,
    /// Bytes received on the connection that no WINDOW_UPDATE has answered.
    pub(super) unacknowledged: u32,
    /// The last stream that the server handles, after GOAWAY.
    pub(super) goaway: Option<(u32, ErrorCode)>,
    /// Whether a stream was ended before the server had ended it: more may come of it then.
    pub(super) has_reset: bool,
    pub(super) next_id: u32,
    pub(super) output: Vec<u8>,
    /// Bytes of `output` that are written, and bytes written before it.
    written: usize,
    written_before: u64,
    /// Slots and numbers of the streams whose body is not all in the output.
    pub(super) uploads: VecDeque<(u32, u32)>,
    table: PeerTable,
}

/// What the server allows.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) has_settings: bool,
    /// Whether it has acknowledged ours.
    pub(super) has_acknowledged: bool,
    pub(super) streams: u32,
    pub(super) first_window: u32,
    pub(super) window: i64,
    pub(super) payload_max: usize,
}

/// What is known of the server's header table.
#[derive(Debug)]
struct PeerTable {
    size: usize,
    /// A new size that the next header block must tell.
    update: Option<usize>,
    holds: Option<Arc<SharedFields>>,
    is_spoiled: bool,
}

impl ClientConnection {
    /// A connection about to be opened: its preface and settings are in the output.
    #[must_use]
    pub fn new(limits: ConnectionLimits) -> Self {
        let table = PeerTable { size: TABLE_SIZE, update: None, holds: None, is_spoiled: false };
        let mut connection = Self {
            limits,
            streams: Streams::new(),
            decoder: HeaderDecoder::new(limits.header_bytes),
            reading: Reading::default(),
            peer: Peer {
                has_settings: false,
                has_acknowledged: false,
                streams: STREAMS_ASSUMED,
                first_window: FIRST_WINDOW,
                window: i64::from(FIRST_WINDOW),
                payload_max: PAYLOAD_MAX,
            },
            counts: ConnectionCounts::default(),
            unacknowledged: 0,
            goaway: None,
            has_reset: false,
            next_id: 1,
            output: Vec::with_capacity(256),
            written: 0,
            written_before: 0,
            uploads: VecDeque::new(),
            table,
        };
        connection.control(|out| open(out, &limits));
        connection
    }

    /// Streams that may be live at once; 0 for good once the connection ends.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> u32 {
        if self.is_ending() { 0 } else { self.limits.streams.min(self.peer.streams) }
    }

    /// The streams that the server allows, if it has said so and they are fewer than wanted.
    #[must_use]
    #[inline]
    pub fn bound(&self) -> Option<u32> {
        let is_bound = self.peer.has_settings && self.peer.streams < self.limits.streams;
        is_bound.then_some(self.peer.streams)
    }

    /// Request bodies that wait for the server's window; true after [`output`](Self::output).
    #[must_use]
    #[inline]
    pub fn stalled(&self) -> usize {
        if self.output.len() < OUTPUT_MAX { self.uploads.len() } else { 0 }
    }

    /// Whether no more streams can be started, now or later.
    #[must_use]
    #[inline]
    pub const fn is_ending(&self) -> bool {
        self.goaway.is_some() || self.next_id > LAST_STREAM
    }

    /// Live streams.
    #[must_use]
    pub fn live(&self) -> usize {
        self.streams.live()
    }

    /// The code of the server's GOAWAY, once it has come.
    #[must_use]
    pub fn goaway_code(&self) -> Option<ErrorCode> {
        self.goaway.map(|(_, code)| code)
    }

    /// Starts a stream with this request and returns its slot; `None` when there is no room. Events
    /// name its `owner`; `is_shown`: whether its head and body are wanted.
    #[inline]
    pub fn start(&mut self, request: &RequestTemplate, owner: u32, is_shown: bool) -> Option<u32> {
        let slot = self.begin(request, owner, is_shown, request.body.is_none())?;
        if let Some(body) = &request.body {
            self.upload(slot, body);
        }
        Some(slot)
    }

    /// Starts a stream by its headers; `ends`: whether there is no body.
    #[inline]
    pub(super) fn begin(
        &mut self,
        request: &RequestTemplate,
        owner: u32,
        is_shown: bool,
        ends: bool,
    ) -> Option<u32> {
        if self.streams.live() >= self.capacity() as usize {
            return None;
        }
        let id = self.next_id;
        self.next_id += 2;
        let start = self.position();
        self.put_headers(id, request, ends);
        let mut stream = Stream {
            id,
            owner,
            is_head: request.is_head,
            is_shown,
            window: i64::from(self.peer.first_window),
            ..Stream::default()
        };
        let end = self.position();
        stream.queued = Queued { start, end, bytes: end - start };
        Some(self.streams.insert(stream))
    }

    /// Ends a live stream before its answer has.
    pub fn cancel(&mut self, slot: u32, code: ErrorCode) -> StreamEnd {
        self.abort(slot, code, StreamEnding::Cancelled)
    }

    /// Ends every stream because the connection ended; calls `end` with the owner of each.
    pub fn end_all(&mut self, mut end: impl FnMut(u32, StreamEnd)) {
        let slots: Vec<u32> = self.streams.iter_mut().map(|(slot, _)| slot).collect();
        for slot in slots {
            let stream = self.streams.remove(slot);
            end(stream.owner, self.ended(&stream, StreamEnding::Cancelled));
        }
    }

    /// Closes the connection: GOAWAY with `code`.
    pub fn close(&mut self, code: ErrorCode) {
        self.control(|out| {
            put_header(out, 8, kind::GOAWAY, 0, 0);
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&code.number().to_be_bytes());
        });
    }

    /// The bytes to write now.
    #[must_use]
    #[inline]
    pub fn output(&mut self) -> &[u8] {
        self.pump();
        &self.output[self.written..]
    }

    /// Notes how many bytes of the output are written.
    #[inline]
    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written >= self.output.len() {
            self.written_before += self.output.len() as u64;
            self.output.clear();
            self.written = 0;
            // A large request must not cost memory for the rest of the connection's life.
            if self.output.capacity() > OUTPUT_MAX {
                self.output.shrink_to(1024);
            }
        }
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> ConnectionCounts {
        std::mem::take(&mut self.counts)
    }

    /// Appends frames that belong to no request.
    pub(super) fn control(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let before = self.output.len();
        put(&mut self.output);
        self.counts.bytes_out += (self.output.len() - before) as u64;
    }

    /// Resets a stream, which ends with `ending`.
    pub(super) fn abort(&mut self, slot: u32, code: ErrorCode, ending: StreamEnding) -> StreamEnd {
        let stream = self.streams.remove(slot);
        self.has_reset = true;
        self.control(|out| put_number(out, kind::RST_STREAM, stream.id, code.number()));
        self.ended(&stream, ending)
    }

    /// The end of a stream that was removed.
    pub(super) fn ended(&self, stream: &Stream, ending: StreamEnding) -> StreamEnd {
        let written = self.written_before + self.written as u64;
        let Queued { start, end, bytes } = stream.queued;
        let is_written = written >= end;
        let bytes_out = if is_written { bytes } else { bytes.min(written.saturating_sub(start)) };
        StreamEnd {
            ending,
            bytes_in: stream.bytes_in,
            bytes_out,
            is_written: is_written && stream.upload.is_none(),
            grpc_status: stream.grpc_status,
        }
    }

    /// Bytes sent until now, with those that are still in the output.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.written_before + self.output.len() as u64
    }

    /// The server bounds its header table.
    pub(super) fn resize_table(&mut self, size: usize) {
        if size >= self.table.size {
            return;
        }
        self.table.size = size;
        self.table.update = Some(size);
        if let Some(holds) = &self.table.holds
            && holds.table_size() > size
        {
            // What is left of them has other indices.
            self.table.is_spoiled = true;
        }
    }

    #[inline]
    fn put_headers(&mut self, id: u32, request: &RequestTemplate, ends: bool) {
        let form = self.form(request.shared());
        let pieces = request.block(form);
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let end = if ends { flag::END_STREAM } else { 0 };
        if self.table.update.is_some() || length > self.peer.payload_max {
            self.put_long_headers(id, end, &pieces);
            return;
        }
        put_header(&mut self.output, length, kind::HEADERS, flag::END_HEADERS | end, id);
        for piece in pieces {
            self.output.extend_from_slice(piece);
        }
    }

    /// How the shared fields go: a connection's table holds those that were sent first.
    #[inline]
    fn form(&mut self, fields: &Arc<SharedFields>) -> FieldsForm {
        match &self.table.holds {
            Some(holds) if !self.table.is_spoiled && Arc::ptr_eq(holds, fields) => {
                FieldsForm::Indexed
            }
            None if fields.table_size() <= self.table.size => {
                self.table.holds = Some(Arc::clone(fields));
                FieldsForm::Adding
            }
            _ => FieldsForm::Literal,
        }
    }

    /// A block in several frames, or behind a change of the table's size.
    #[cold]
    fn put_long_headers(&mut self, id: u32, end: u8, pieces: &[&[u8]]) {
        let mut block = Vec::new();
        if let Some(size) = self.table.update.take() {
            put_integer(&mut block, 0x20, 5, size);
        }
        pieces.iter().for_each(|piece| block.extend_from_slice(piece));
        let mut chunks = block.chunks(self.peer.payload_max).peekable();
        let mut kind = kind::HEADERS;
        let mut flags = end;
        while let Some(chunk) = chunks.next() {
            if chunks.peek().is_none() {
                flags |= flag::END_HEADERS;
            }
            put_header(&mut self.output, chunk.len(), kind, flags, id);
            self.output.extend_from_slice(chunk);
            (kind, flags) = (kind::CONTINUATION, 0);
        }
    }
}

/// The preface, the settings and the connection's window.
fn open(out: &mut Vec<u8>, limits: &ConnectionLimits) {
    out.extend_from_slice(PREFACE);
    let header_bytes = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
    let settings = [
        (setting::ENABLE_PUSH, 0),
        (setting::INITIAL_WINDOW_SIZE, limits.stream_window),
        (setting::MAX_HEADER_LIST_SIZE, header_bytes),
    ];
    put_header(out, settings.len() * 6, kind::SETTINGS, 0, 0);
    for (setting, value) in settings {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    let more = limits.connection_window.saturating_sub(FIRST_WINDOW);
    if more > 0 {
        put_number(out, kind::WINDOW_UPDATE, 0, more);
    }
}
