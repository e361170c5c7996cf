//! Parquet: the same rows as CSV, with typed columns.
//!
//! A file is readable only with its footer, which is written at the end of the run. Each column of
//! a row group is one plain page, compressed by snappy.

use std::mem;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};

use super::FigureFormat;
use super::protobuf::varint;
use super::rows::{all_tags, ending};
use super::thrift::ThriftStruct;
use crate::carrier::FigureBatch;
use crate::figures::{self, FigureField, FigureRow};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};

/// Magic bytes at both ends of a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Maximum rows of a row group, about 5 MB held in memory.
const ROWS_MAX: usize = 65_536;
/// Bytes of values that end a row group early: tags and texts may be long.
const GROUP_BYTES: usize = 8 << 20;

/// The writer's version, in the form that readers parse.
const CREATED_BY: &str = concat!("gake version ", env!("CARGO_PKG_VERSION"));

// Constants of the Parquet format.
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const SNAPPY: i32 = 1;
const UTF8: i32 = 0;
const TIMESTAMP_MICROS: i32 = 10;

/// The columns: name, type, and whether values are optional.
const COLUMNS: [(&str, i32, bool); 6] = [
    ("time", INT64, false),
    ("measurement", BYTE_ARRAY, false),
    ("tags", BYTE_ARRAY, false),
    ("field", BYTE_ARRAY, false),
    ("value", DOUBLE, true),
    ("text", BYTE_ARRAY, true),
];

pub(crate) struct Parquet {
    tags: Vec<(String, String)>,
    started: u64,
    columns: [ColumnBuffer; COLUMNS.len()],
    /// Rows buffered in the columns.
    waiting: u64,
    length: u64,
    groups: Vec<RowGroup>,
}

/// The buffered values of a column.
#[derive(Debug, Default)]
struct ColumnBuffer {
    values: Vec<u8>,
    /// Whether each row has a value.
    present: Vec<bool>,
}

#[derive(Debug)]
struct RowGroup {
    rows: u64,
    chunks: Vec<ColumnChunk>,
}

/// A written column of a row group: its offset, and its bytes without and with compression.
#[derive(Debug, Clone, Copy)]
struct ColumnChunk {
    offset: u64,
    plain: u64,
    packed: u64,
}

impl Parquet {
    pub(crate) fn new(tags: Vec<(String, String)>) -> Self {
        let columns = COLUMNS.map(|_| ColumnBuffer::default());
        Self { tags, started: 0, columns, waiting: 0, length: 0, groups: Vec::new() }
    }

    /// Adds rows of an instant, in Unix nanoseconds; returns a row group when one is full.
    fn add(&mut self, rows: &[FigureRow<'_>], unix_ns: u64) -> FigureBatch {
        for row in rows {
            let tags: Vec<String> =
                all_tags(&self.tags, row).map(|(name, value)| format!("{name}={value}")).collect();
            let tags = tags.join(";");
            for (name, field) in &row.fields {
                let [time, measurement, tag_list, field_name, value, text] = &mut self.columns;
                time.number(&(unix_ns / 1_000).to_le_bytes());
                measurement.text(Some(row.measurement));
                tag_list.text(Some(&tags));
                field_name.text(Some(name));
                let number = match field {
                    FigureField::Count(count) => Some(*count as f64),
                    FigureField::Number(number) => Some(*number),
                    FigureField::Text(_) => None,
                };
                match number {
                    Some(number) => value.number(&number.to_le_bytes()),
                    None => value.present.push(false),
                }
                text.text(if let FigureField::Text(text) = field { Some(text) } else { None });
                self.waiting += 1;
            }
        }
        let bytes: usize = self.columns.iter().map(|column| column.values.len()).sum();
        let is_full = self.waiting >= ROWS_MAX as u64 || bytes >= GROUP_BYTES;
        if is_full { self.group() } else { FigureBatch::default() }
    }

    /// Writes the buffered rows as a row group.
    fn group(&mut self) -> FigureBatch {
        let rows = mem::take(&mut self.waiting);
        if rows == 0 {
            return FigureBatch::default();
        }
        let mut bytes = if self.length == 0 { MAGIC.to_vec() } else { Vec::new() };
        let mut chunks = Vec::new();
        for (column, (_, _, is_optional)) in self.columns.iter_mut().zip(COLUMNS) {
            let (page, plain) = column.page(is_optional);
            let offset = self.length + bytes.len() as u64;
            chunks.push(ColumnChunk { offset, plain, packed: page.len() as u64 });
            bytes.extend(page);
        }
        self.groups.push(RowGroup { rows, chunks });
        self.length += bytes.len() as u64;
        FigureBatch { bytes, rows }
    }

    fn footer(&self, created_by: &str) -> Vec<u8> {
        let rows = self.groups.iter().map(|group| group.rows).sum();
        let root = ThriftStruct::default().text(4, "gake").i32(5, COLUMNS.len() as i32);
        let schema = std::iter::once(root).chain(COLUMNS.into_iter().map(element));
        let mut bytes = ThriftStruct::default()
            .i32(1, 1)
            .many(2, schema)
            .i64(3, rows)
            .many(4, self.groups.iter().map(RowGroup::header))
            .text(6, created_by)
            .end();
        let length = bytes.len() as u32;
        bytes.extend(length.to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }
}

fn element((name, kind, is_optional): (&str, i32, bool)) -> ThriftStruct {
    let element = ThriftStruct::default().i32(1, kind).i32(3, is_optional.into()).text(4, name);
    match kind {
        BYTE_ARRAY => {
            element.i32(6, UTF8).one(10, ThriftStruct::default().one(1, ThriftStruct::default()))
        }
        INT64 => {
            let micros = ThriftStruct::default().one(2, ThriftStruct::default());
            let timestamp = ThriftStruct::default().truth(1).one(2, micros);
            element.i32(6, TIMESTAMP_MICROS).one(10, ThriftStruct::default().one(8, timestamp))
        }
        _ => element,
    }
}

impl RowGroup {
    fn header(&self) -> ThriftStruct {
        let column = |(chunk, (name, kind, _)): (&ColumnChunk, (&str, i32, bool))| {
            let meta = ThriftStruct::default()
                .i32(1, kind)
                .i32s(2, &[PLAIN, RLE])
                .texts(3, &[name])
                .i32(4, SNAPPY)
                .i64(5, self.rows)
                .i64(6, chunk.plain)
                .i64(7, chunk.packed)
                .i64(9, chunk.offset);
            ThriftStruct::default().i64(2, chunk.offset).one(3, meta)
        };
        ThriftStruct::default()
            .many(1, self.chunks.iter().zip(COLUMNS).map(column))
            .i64(2, self.chunks.iter().map(|chunk| chunk.plain).sum())
            .i64(3, self.rows)
    }
}

impl ColumnBuffer {
    fn number(&mut self, bytes: &[u8; 8]) {
        self.values.extend(bytes);
        self.present.push(true);
    }

    fn text(&mut self, text: Option<&str>) {
        if let Some(text) = text {
            self.values.extend((text.len() as u32).to_le_bytes());
            self.values.extend(text.as_bytes());
        }
        self.present.push(text.is_some());
    }

    /// Takes the buffered values as a page with its header, and returns its size without
    /// compression.
    fn page(&mut self, is_optional: bool) -> (Vec<u8>, u64) {
        let (values, present) = (mem::take(&mut self.values), mem::take(&mut self.present));
        let mut body = Vec::with_capacity(values.len() + 64);
        if is_optional {
            let levels = levels(&present);
            body.extend((levels.len() as u32).to_le_bytes());
            body.extend(levels);
        }
        body.extend(values);
        // Compressing a vector in memory does not fail.
        let packed = snap::raw::Encoder::new().compress_vec(&body).unwrap_or_default();
        let data = ThriftStruct::default()
            .i32(1, present.len() as i32)
            .i32(2, PLAIN)
            .i32(3, RLE)
            .i32(4, RLE);
        let header = ThriftStruct::default()
            .i32(1, 0)
            .i32(2, body.len() as i32)
            .i32(3, packed.len() as i32)
            .one(5, data)
            .end();
        let plain = (header.len() + body.len()) as u64;
        ([header, packed].concat(), plain)
    }
}

/// Definition levels (1 for a present value) as runs: twice the length, then the level.
fn levels(present: &[bool]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in present.chunk_by(|a, b| a == b) {
        varint(&mut bytes, (run.len() as u64) << 1);
        bytes.push(run[0].into());
    }
    bytes
}

impl FigureFormat for Parquet {
    fn begin(&mut self, start: &ExportStart<'_>) -> FigureBatch {
        self.started = start.started_unix_ns;
        let text = format!("{} {}", start.target, start.command);
        self.add(&[figures::event("begin", text)], self.started)
    }

    fn second(&mut self, second: &ExportSecond<'_>) -> FigureBatch {
        let at = self.started + second.at * 1_000_000_000;
        self.add(&figures::of_second(second), at)
    }

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> FigureBatch {
        self.add(&figures::of_readings(readings), self.started + at)
    }

    fn event(&mut self, at: Nanos, title: &'static str, text: &str) -> FigureBatch {
        self.add(&[figures::event(title, text)], self.started + at)
    }

    fn end(&mut self, run: &Run, verdict: &ExportVerdict) -> FigureBatch {
        let mut rows = figures::of_run(&run.tally, &run.plan.labels);
        rows.push(figures::of_verdict(verdict));
        rows.push(figures::event("end", ending(run)));
        let mut batch = self.add(&rows, self.started + run.elapsed);
        let rest = self.group();
        batch.bytes.extend(rest.bytes);
        batch.bytes.extend(self.footer(CREATED_BY));
        batch.rows += rest.rows;
        batch
    }
}

#[cfg(test)]
#[path = "parquet_tests.rs"]
mod tests;
