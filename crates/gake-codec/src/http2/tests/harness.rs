//! Builds a server's frames and records the codec's events.

use std::sync::Arc;

use super::super::frame::{HEADER_LEN, PREFACE, flag, kind, put_header};
use super::super::{
    ClientConnection, ConnectionLimits, HeaderFields, RequestTemplate, SharedFields, StreamEnd,
    StreamEnding, StreamEvents, Violation,
};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecordedEvents {
    pub heads: Vec<(u32, u16, HeaderFields)>,
    pub bodies: Vec<u8>,
    pub trailers: Vec<(u32, HeaderFields)>,
    pub ends: Vec<(u32, StreamEnd)>,
}

impl StreamEvents for RecordedEvents {
    fn began(&mut self, _slot: u32) {}

    fn head(&mut self, slot: u32, status: u16, fields: HeaderFields) {
        self.heads.push((slot, status, fields));
    }

    fn body(&mut self, _slot: u32, bytes: &[u8]) {
        self.bodies.extend_from_slice(bytes);
    }

    fn trailers(&mut self, slot: u32, fields: HeaderFields) {
        self.trailers.push((slot, fields));
    }

    fn ended(&mut self, slot: u32, end: StreamEnd) {
        self.ends.push((slot, end));
    }
}

impl RecordedEvents {
    pub fn endings(&self) -> Vec<StreamEnding> {
        self.ends.iter().map(|(_, end)| end.ending).collect()
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let bytes = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(kind::SETTINGS, 0, 0, &settings.iter().flat_map(bytes).collect::<Vec<_>>())
}

/// `:status: 200`, ending headers.
pub fn ok(stream: u32, ends: bool) -> Vec<u8> {
    headers(stream, ends, &[0x88])
}

pub fn headers(stream: u32, ends: bool, block: &[u8]) -> Vec<u8> {
    let end = if ends { flag::END_STREAM } else { 0 };
    frame(kind::HEADERS, flag::END_HEADERS | end, stream, block)
}

pub fn data(stream: u32, ends: bool, bytes: &[u8]) -> Vec<u8> {
    frame(kind::DATA, if ends { flag::END_STREAM } else { 0 }, stream, bytes)
}

pub fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

pub fn number(kind: u8, stream: u32, number: u32) -> Vec<u8> {
    frame(kind, 0, stream, &number.to_be_bytes())
}

/// A literal field without indexing.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0, name.len() as u8];
    out.extend_from_slice(name.as_bytes());
    out.push(value.len() as u8);
    out.extend_from_slice(value.as_bytes());
    out
}

pub fn get() -> RequestTemplate {
    request("GET", None)
}

pub fn request(method: &str, body: Option<Arc<[u8]>>) -> RequestTemplate {
    let shared = SharedFields::new(&[(":authority", b"a.test"), ("user-agent", b"gake")]);
    RequestTemplate::new((method, "http", "/"), Arc::new(shared), &[], body)
}

/// A connection whose server has sent its settings.
pub fn connection(settings_sent: &[(u16, u32)]) -> ClientConnection {
    let mut connection = ClientConnection::new(ConnectionLimits::default());
    take(&mut connection, &settings(settings_sent)).unwrap();
    sent(&mut connection);
    connection
}

pub fn take(connection: &mut ClientConnection, bytes: &[u8]) -> Result<RecordedEvents, Violation> {
    let mut events = RecordedEvents::default();
    connection.receive(bytes, &mut events).map(|()| events)
}

/// Writes the output: kind, flags, stream and payload of each frame, without the preface.
pub fn sent(connection: &mut ClientConnection) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut bytes = Vec::new();
    while !connection.output().is_empty() {
        let output = connection.output().to_vec();
        connection.wrote(output.len());
        bytes.extend(output);
    }
    let mut rest = bytes.strip_prefix(PREFACE).unwrap_or(&bytes);
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        let stream = u32::from_be_bytes(rest[5..HEADER_LEN].try_into().unwrap());
        let (frame, behind) = rest.split_at(HEADER_LEN + length);
        frames.push((frame[3], frame[4], stream, frame[HEADER_LEN..].to_vec()));
        rest = behind;
    }
    frames
}
