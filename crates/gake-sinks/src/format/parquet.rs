//! Parquet: the rows of the CSV file in columns, with numbers as numbers.
//!
//! A file can be read only with its footer, which is written at the end of the run. Columns are
//! plain, in pages compressed by snappy: one page for each column of a row group.

use std::mem;

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};

use super::Format;
use super::rows::{all_tags, ending};
use super::thrift::{Struct, varint};
use crate::carrier::Batch;
use crate::figures::{self, Field, Row};
use crate::figures::{ExportSecond, ExportStart, ExportVerdict};

/// What a file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group at most: some 5 MB of usual ones, which is what a run holds of its file.
const GROUP: usize = 65_536;
/// Bytes of the values of a row group, after which it ends whatever its rows: tags and texts may be
/// long.
const GROUP_BYTES: usize = 8 << 20;

/// The form in which readers look for the version of a writer.
const CREATED_BY: &str = concat!("gake version ", env!("CARGO_PKG_VERSION"));

// Parquet's own numbers.
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const SNAPPY: i32 = 1;
const UTF8: i32 = 0;
const TIMESTAMP_MICROS: i32 = 10;

/// The columns: name, type, and whether a value may be absent.
const COLUMNS: [(&str, i32, bool); 6] = [
    ("time", INT64, false),
    ("measurement", BYTE_ARRAY, false),
    ("tags", BYTE_ARRAY, false),
    ("field", BYTE_ARRAY, false),
    ("value", DOUBLE, true),
    ("text", BYTE_ARRAY, true),
];

/// Writes a file of Parquet.
pub(crate) struct Parquet {
    tags: Vec<(String, String)>,
    started: u64,
    columns: [Column; COLUMNS.len()],
    /// Rows that wait in the columns.
    waiting: u64,
    /// Bytes of the file so far.
    length: u64,
    groups: Vec<Group>,
}

/// The values of a column that are not written yet.
#[derive(Debug, Default)]
struct Column {
    values: Vec<u8>,
    /// Whether each row has one.
    present: Vec<bool>,
}

/// A row group that is written: its rows and its chunks.
#[derive(Debug)]
struct Group {
    rows: u64,
    chunks: Vec<Chunk>,
}

/// A column of a row group: where its page is, and its bytes without and with compression.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    offset: u64,
    plain: u64,
    packed: u64,
}

impl Parquet {
    pub(crate) fn new(tags: Vec<(String, String)>) -> Self {
        let columns = COLUMNS.map(|_| Column::default());
        Self { tags, started: 0, columns, waiting: 0, length: 0, groups: Vec::new() }
    }

    /// Takes rows of an instant, in Unix nanoseconds; gives a row group when one is full.
    fn add(&mut self, rows: &[Row<'_>], unix_ns: u64) -> Batch {
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
                    Field::Count(count) => Some(*count as f64),
                    Field::Number(number) => Some(*number),
                    Field::Text(_) => None,
                };
                match number {
                    Some(number) => value.number(&number.to_le_bytes()),
                    None => value.present.push(false),
                }
                text.text(if let Field::Text(text) = field { Some(text) } else { None });
                self.waiting += 1;
            }
        }
        let bytes: usize = self.columns.iter().map(|column| column.values.len()).sum();
        let is_full = self.waiting >= GROUP as u64 || bytes >= GROUP_BYTES;
        if is_full { self.group() } else { Batch::default() }
    }

    /// Writes what waits as a row group.
    fn group(&mut self) -> Batch {
        let rows = mem::take(&mut self.waiting);
        if rows == 0 {
            return Batch::default();
        }
        let mut bytes = if self.length == 0 { MAGIC.to_vec() } else { Vec::new() };
        let mut chunks = Vec::new();
        for (column, (_, _, is_optional)) in self.columns.iter_mut().zip(COLUMNS) {
            let (page, plain) = column.page(is_optional);
            let offset = self.length + bytes.len() as u64;
            chunks.push(Chunk { offset, plain, packed: page.len() as u64 });
            bytes.extend(page);
        }
        self.groups.push(Group { rows, chunks });
        self.length += bytes.len() as u64;
        Batch { bytes, rows }
    }

    fn footer(&self, created_by: &str) -> Vec<u8> {
        let rows = self.groups.iter().map(|group| group.rows).sum();
        let root = Struct::default().text(4, "gake").i32(5, COLUMNS.len() as i32);
        let schema = std::iter::once(root).chain(COLUMNS.into_iter().map(element));
        let mut bytes = Struct::default()
            .i32(1, 1)
            .many(2, schema)
            .i64(3, rows)
            .many(4, self.groups.iter().map(Group::header))
            .text(6, created_by)
            .end();
        let length = bytes.len() as u32;
        bytes.extend(length.to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }
}

/// A column as the schema has it.
fn element((name, kind, is_optional): (&str, i32, bool)) -> Struct {
    let element = Struct::default().i32(1, kind).i32(3, is_optional.into()).text(4, name);
    match kind {
        BYTE_ARRAY => element.i32(6, UTF8).one(10, Struct::default().one(1, Struct::default())),
        INT64 => {
            let micros = Struct::default().one(2, Struct::default());
            let timestamp = Struct::default().truth(1).one(2, micros);
            element.i32(6, TIMESTAMP_MICROS).one(10, Struct::default().one(8, timestamp))
        }
        _ => element,
    }
}

impl Group {
    fn header(&self) -> Struct {
        let column = |(chunk, (name, kind, _)): (&Chunk, (&str, i32, bool))| {
            let meta = Struct::default()
                .i32(1, kind)
                .i32s(2, &[PLAIN, RLE])
                .texts(3, &[name])
                .i32(4, SNAPPY)
                .i64(5, self.rows)
                .i64(6, chunk.plain)
                .i64(7, chunk.packed)
                .i64(9, chunk.offset);
            Struct::default().i64(2, chunk.offset).one(3, meta)
        };
        Struct::default()
            .many(1, self.chunks.iter().zip(COLUMNS).map(column))
            .i64(2, self.chunks.iter().map(|chunk| chunk.plain).sum())
            .i64(3, self.rows)
    }
}

impl Column {
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

    /// Its values as a page with header, and the bytes that they would have without compression;
    /// the column is empty then.
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
        let data =
            Struct::default().i32(1, present.len() as i32).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
        let header = Struct::default()
            .i32(1, 0)
            .i32(2, body.len() as i32)
            .i32(3, packed.len() as i32)
            .one(5, data)
            .end();
        let plain = (header.len() + body.len()) as u64;
        ([header, packed].concat(), plain)
    }
}

/// Runs of equal levels, 1 for a value that is there: the length twice, then the level.
fn levels(present: &[bool]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in present.chunk_by(|a, b| a == b) {
        varint(&mut bytes, (run.len() as u64) << 1);
        bytes.push(run[0].into());
    }
    bytes
}

impl Format for Parquet {
    fn begin(&mut self, start: &ExportStart<'_>) -> Batch {
        self.started = start.started_unix_ns;
        let text = format!("{} {}", start.target, start.command);
        self.add(&[figures::event("begin", text)], self.started)
    }

    fn second(&mut self, second: &ExportSecond<'_>) -> Batch {
        let at = self.started + second.at * 1_000_000_000;
        self.add(&figures::of_second(second), at)
    }

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> Batch {
        self.add(&figures::of_readings(readings), self.started + at)
    }

    fn event(&mut self, at: Nanos, title: &'static str, text: &str) -> Batch {
        self.add(&[figures::event(title, text)], self.started + at)
    }

    fn end(&mut self, run: &Run, verdict: &ExportVerdict) -> Batch {
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
