//! The client's side of a connection: sending, and the state that both directions share.

use std::collections::VecDeque;
use std::sync::Arc;

use gake_core::record::ErrorCode;

use super::decoder::{HeaderDecoder, TABLE_SIZE};
use super::events::{StreamEnd, StreamEnding};
use super::frame::{PAYLOAD_MAX, PREFACE, flag, kind, put_header, put_number, setting};
use super::integer::put_integer;
use super::read_state::ReadState;
use super::streams::{OutputRange, Stream, StreamTable};
use super::template::{FieldEncoding, RequestTemplate, SharedFields};

/// The initial window of connections and streams (RFC 9113, section 6.9.2).
pub(super) const FIRST_WINDOW: u32 = 65_535;

/// Bodies wait while the output holds this many bytes.
pub(super) const OUTPUT_MAX: usize = 256 * 1024;

/// The concurrent streams assumed until the server's SETTINGS arrive.
const STREAMS_ASSUMED: u32 = 100;

/// The number of the last stream that a connection can have.
const LAST_STREAM: u32 = (1 << 31) - 1;

/// Limits on a connection, and the windows it offers the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of concurrent streams, whatever the server allows.
    pub streams: u32,
    /// Flow-control window of a stream, in bytes; at most 2^31−1.
    pub stream_window: u32,
    /// Flow-control window of the connection; at least 65,535.
    pub connection_window: u32,
    /// Bytes of a response's headers, both decoded and as an encoded block.
    pub header_bytes: usize,
    /// Interim (1xx) responses before the final one.
    pub interim: u32,
}

impl Default for ConnectionLimits {
    /// 100 streams, and windows of 2^30 bytes, since bodies are counted and not kept.
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

/// Counts since the last call of [`ClientConnection::take_counts`].
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
    /// Bytes of header blocks received, encoded.
    pub header_bytes: u64,
    /// Bytes of the names and values in these blocks, decoded.
    pub header_text_bytes: u64,
    /// Request bodies that had to wait for the server's window.
    pub window_waits: u64,
}

/// The client's side of a connection.
///
/// [`output`](Self::output) holds the frames to write; [`receive`](Self::receive) takes the server's
/// bytes. A stream has a slot from [`start`](Self::start) to its end.
#[derive(Debug)]
pub struct ClientConnection {
    pub(super) limits: ConnectionLimits,
    pub(super) streams: StreamTable,
    pub(super) decoder: HeaderDecoder,
    pub(super) read_state: ReadState,
    pub(super) peer: PeerState,
    pub(super) counts: ConnectionCounts,
    /// Bytes received on the connection and not yet returned by a WINDOW_UPDATE.
    pub(super) unacknowledged: u32,
    /// The last stream that the server handles, after GOAWAY.
    pub(super) goaway: Option<(u32, ErrorCode)>,
    /// Whether this side has reset a stream: late frames of reset streams are legitimate.
    pub(super) has_reset: bool,
    pub(super) next_id: u32,
    pub(super) output: Vec<u8>,
    /// Written bytes of `output`, and bytes written before it was last cleared.
    written: usize,
    written_before: u64,
    /// Slots and numbers of the streams whose body is not completely in the output.
    pub(super) uploads: VecDeque<(u32, u32)>,
    table: PeerTable,
}

/// The server's settings and windows.
#[derive(Debug)]
pub(super) struct PeerState {
    pub(super) has_settings: bool,
    /// Whether it has acknowledged ours.
    pub(super) has_acknowledged: bool,
    pub(super) streams: u32,
    pub(super) first_window: u32,
    pub(super) window: i64,
    pub(super) payload_max: usize,
}

/// The state of the server's header table.
#[derive(Debug)]
struct PeerTable {
    size: usize,
    /// A new size that the next header block must announce.
    update: Option<usize>,
    holds: Option<Arc<SharedFields>>,
    /// Whether entries were evicted, so that the indices in `holds` are wrong.
    is_spoiled: bool,
}

impl ClientConnection {
    /// A new connection, with its preface and settings in the output.
    #[must_use]
    pub fn new(limits: ConnectionLimits) -> Self {
        let table = PeerTable { size: TABLE_SIZE, update: None, holds: None, is_spoiled: false };
        let mut connection = Self {
            limits,
            streams: StreamTable::new(),
            decoder: HeaderDecoder::new(limits.header_bytes),
            read_state: ReadState::default(),
            peer: PeerState {
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

    /// Maximum number of concurrent streams; 0 for good once the connection is ending.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> u32 {
        if self.is_ending() { 0 } else { self.limits.streams.min(self.peer.streams) }
    }

    /// Whether the server has sent its settings, and so speaks HTTP/2.
    #[must_use]
    pub const fn is_greeted(&self) -> bool {
        self.peer.has_settings
    }

    /// The server's limit on streams, if it has sent one below our own.
    #[must_use]
    #[inline]
    pub fn bound(&self) -> Option<u32> {
        let is_bound = self.peer.has_settings && self.peer.streams < self.limits.streams;
        is_bound.then_some(self.peer.streams)
    }

    /// Request bodies that wait for the server's window. Valid after [`output`](Self::output).
    #[must_use]
    #[inline]
    pub fn stalled(&self) -> usize {
        if self.output.len() < OUTPUT_MAX { self.uploads.len() } else { 0 }
    }

    /// Whether no stream can be started any more.
    #[must_use]
    #[inline]
    pub const fn is_ending(&self) -> bool {
        self.goaway.is_some() || self.next_id > LAST_STREAM
    }

    /// The number of live streams.
    #[must_use]
    pub fn live(&self) -> usize {
        self.streams.live()
    }

    /// The code of the server's GOAWAY, if one has come.
    #[must_use]
    pub fn goaway_code(&self) -> Option<ErrorCode> {
        self.goaway.map(|(_, code)| code)
    }

    /// Starts a stream with this request and returns its slot; `None` at the limit of streams.
    /// Events carry its `owner`; `is_shown`: whether to report its head and body.
    #[inline]
    pub fn start(&mut self, request: &RequestTemplate, owner: u32, is_shown: bool) -> Option<u32> {
        let slot = self.begin(request, owner, is_shown, request.body.is_none())?;
        if let Some(body) = &request.body {
            self.upload(slot, body);
        }
        Some(slot)
    }

    /// Starts a stream with HEADERS; `ends`: there is no body.
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
        stream.queued = OutputRange { start, end, bytes: end - start };
        Some(self.streams.insert(stream))
    }

    /// Resets a live stream.
    pub fn cancel(&mut self, slot: u32, code: ErrorCode) -> StreamEnd {
        self.abort(slot, code, StreamEnding::Cancelled)
    }

    /// Cancels every stream after the end of the connection; calls `end` with the owner of each.
    pub fn end_all(&mut self, mut end: impl FnMut(u32, StreamEnd)) {
        let slots: Vec<u32> = self.streams.iter_mut().map(|(slot, _)| slot).collect();
        for slot in slots {
            let stream = self.streams.remove(slot);
            end(stream.owner, self.ended(&stream, StreamEnding::Cancelled));
        }
    }

    /// Closes the connection by a GOAWAY with `code`.
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

    /// Records that this many bytes of the output were written.
    #[inline]
    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written >= self.output.len() {
            self.written_before += self.output.len() as u64;
            self.output.clear();
            self.written = 0;
            // A large request must not hold memory until the connection closes.
            if self.output.capacity() > OUTPUT_MAX {
                self.output.shrink_to(1024);
            }
        }
    }

    /// Returns and clears the counts.
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

    pub(super) fn ended(&self, stream: &Stream, ending: StreamEnding) -> StreamEnd {
        let written = self.written_before + self.written as u64;
        let OutputRange { start, end, bytes } = stream.queued;
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

    /// The offset of the end of the output in all bytes of the connection.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.written_before + self.output.len() as u64
    }

    /// Applies the server's limit on its header table.
    pub(super) fn resize_table(&mut self, size: usize) {
        if size >= self.table.size {
            return;
        }
        self.table.size = size;
        self.table.update = Some(size);
        if let Some(holds) = &self.table.holds
            && holds.table_size() > size
        {
            self.table.is_spoiled = true;
        }
    }

    #[inline]
    fn put_headers(&mut self, id: u32, request: &RequestTemplate, ends: bool) {
        let encoding = self.encoding(request.shared());
        let slices = request.block(encoding);
        let length = slices.iter().map(|slice| slice.len()).sum::<usize>();
        let end = if ends { flag::END_STREAM } else { 0 };
        if self.table.update.is_some() || length > self.peer.payload_max {
            self.put_long_headers(id, end, &slices);
            return;
        }
        put_header(&mut self.output, length, kind::HEADERS, flag::END_HEADERS | end, id);
        for slice in slices {
            self.output.extend_from_slice(slice);
        }
    }

    /// The encoding of the shared fields: a table holds only those sent first on its connection.
    #[inline]
    fn encoding(&mut self, fields: &Arc<SharedFields>) -> FieldEncoding {
        match &self.table.holds {
            Some(holds) if !self.table.is_spoiled && Arc::ptr_eq(holds, fields) => {
                FieldEncoding::Indexed
            }
            None if fields.table_size() <= self.table.size => {
                self.table.holds = Some(Arc::clone(fields));
                FieldEncoding::Adding
            }
            _ => FieldEncoding::Literal,
        }
    }

    /// Writes a block that needs several frames or announces a table size.
    #[cold]
    fn put_long_headers(&mut self, id: u32, end: u8, slices: &[&[u8]]) {
        let mut block = Vec::new();
        if let Some(size) = self.table.update.take() {
            put_integer(&mut block, 0x20, 5, size);
        }
        slices.iter().for_each(|slice| block.extend_from_slice(slice));
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

/// Writes the preface, the settings and the connection's window.
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
