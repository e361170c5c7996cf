//! Parquet files: compared with one that Apache Arrow reads, and read back by a reader in this
//! file.

use std::collections::BTreeMap;

use super::*;

/// A file of two row groups with texts, numbers and absent values.
fn file() -> Vec<u8> {
    let mut parquet = Parquet::new(vec![("env".to_owned(), "a".to_owned())]);
    let mut bytes = Vec::new();
    let requests = FigureRow {
        measurement: "gake_requests",
        tags: vec![("name", "a; b".into())],
        fields: vec![("due", FigureField::Count(4)), ("asked", FigureField::Number(0.5))],
    };
    let begin = figures::event("begin", "\"x\", y\n");
    for (rows, unix_ns) in [(vec![begin, requests.clone()], 1_000), (vec![requests], 3_000_000)] {
        assert_eq!(parquet.add(&rows, unix_ns).rows, 0, "it waits for more");
        bytes.extend(parquet.group().bytes);
    }
    bytes.extend(parquet.footer("gake version 0.1.0"));
    bytes
}

/// Apache Arrow read these six rows from the recorded file.
#[test]
fn the_file_equals_one_that_arrow_reads() {
    assert_eq!(file(), include_bytes!("../../tests/data/figures.parquet"));
}

#[test]
fn a_row_group_is_written_when_it_is_full() {
    let mut parquet = Parquet::new(Vec::new());
    let row = figures::event("begin", "x");
    let full = (0..ROWS_MAX).find_map(|n| {
        let batch = parquet.add(std::slice::from_ref(&row), n as u64);
        (batch.rows > 0).then_some((n, batch.rows))
    });
    // An event has two fields.
    assert_eq!(full, Some((ROWS_MAX / 2 - 1, ROWS_MAX as u64)));
    assert!(parquet.columns.iter().all(|column| column.values.is_empty()));
}

#[test]
fn long_texts_end_a_row_group_early() {
    let mut parquet = Parquet::new(Vec::new());
    let row = figures::event("begin", "x".repeat(1 << 20));
    let rows: Vec<u64> = (0..16).map(|n| parquet.add(std::slice::from_ref(&row), n).rows).collect();
    // Each event is two values, one slightly above a MiB.
    assert_eq!(rows, [0, 0, 0, 0, 0, 0, 0, 16].repeat(2));
}

/// Rows of the wide file: more than two row groups.
const WIDE: u64 = 150_000;

/// The values of a row of the wide file. Except for the measurement and the field's name, all are
/// distinct.
fn wide(n: u64) -> [Option<Vec<u8>>; COLUMNS.len()] {
    let (tags, number, text) = (format!("name=t{n}"), n as f64 / 3.0, format!("x{n}"));
    let is_text = n.is_multiple_of(5);
    [
        Some(n.to_le_bytes().to_vec()),
        Some(b"gake_requests".to_vec()),
        Some(tags.into_bytes()),
        Some(if is_text { b"text".to_vec() } else { b"mean".to_vec() }),
        (!is_text).then(|| number.to_le_bytes().to_vec()),
        is_text.then(|| text.into_bytes()),
    ]
}

fn wide_file() -> Vec<u8> {
    let mut parquet = Parquet::new(Vec::new());
    let mut bytes = Vec::new();
    for n in 0..WIDE {
        let field = match n.is_multiple_of(5) {
            true => ("text", FigureField::Text(format!("x{n}").into())),
            false => ("mean", FigureField::Number(n as f64 / 3.0)),
        };
        let tags = vec![("name", format!("t{n}").into())];
        let row = FigureRow { measurement: "gake_requests", tags, fields: vec![field] };
        bytes.extend(parquet.add(&[row], n * 1_000).bytes);
    }
    bytes.extend(parquet.group().bytes);
    bytes.extend(parquet.footer(CREATED_BY));
    bytes
}

/// With `GAKE_ARROW=python3`, Apache Arrow in that Python also reads the file.
#[test]
fn several_row_groups_are_read_back() {
    let file = wide_file();
    let groups = read(&file);
    let rows: Vec<usize> = groups.iter().map(|columns| columns[0].len()).collect();
    assert_eq!(rows, [ROWS_MAX, ROWS_MAX, WIDE as usize - 2 * ROWS_MAX]);
    for (number, (name, ..)) in COLUMNS.iter().enumerate() {
        let read = groups.iter().flat_map(|columns| &columns[number]);
        for (n, value) in read.enumerate() {
            assert_eq!(*value, wide(n as u64)[number], "{name} of row {n}");
        }
    }
    if let Some(python) = std::env::var_os("GAKE_ARROW") {
        let read = read_by_arrow(&python, &file);
        let lines = (0..WIDE).map(|n| match n.is_multiple_of(5) {
            true => format!("{n} gake_requests name=t{n} text None x{n}\n"),
            false => format!("{n} gake_requests name=t{n} mean {:?} None\n", n as f64 / 3.0),
        });
        assert!(read == lines.collect::<String>(), "Arrow reads something else");
    }
}

/// The rows of a file, one per line.
fn read_by_arrow(python: &std::ffi::OsStr, file: &[u8]) -> String {
    const SCRIPT: &str = "import sys, pyarrow.parquet as parquet
table = parquet.read_table(sys.argv[1])
times = table['time'].cast('int64').to_pylist()
rest = [table[name].to_pylist() for name in table.column_names[1:]]
for row in zip(times, *rest): print(*row)
";
    let kept = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(kept.path(), file).unwrap();
    let mut reading = std::process::Command::new(python);
    let output = reading.args(["-c", SCRIPT]).arg(kept.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The values of a column, as bytes.
type Values = Vec<Option<Vec<u8>>>;

/// The columns of each row group, by the file's footer.
fn read(file: &[u8]) -> Vec<Vec<Values>> {
    let (start, end) = (&file[..4], file.len() - 8);
    assert_eq!((start, &file[end + 4..]), (&MAGIC[..], &MAGIC[..]));
    let length = u32::from_le_bytes(array(&file[end..end + 4])) as usize;
    let footer = Thrift(&file[end - length..end]).fields();
    let schema = footer[&2].list();
    assert_eq!(schema.len(), COLUMNS.len() + 1);
    let groups: Vec<Vec<Values>> = footer[&4]
        .list()
        .iter()
        .map(|group| {
            let chunks = group.at(1).list().iter().zip(COLUMNS);
            let columns: Vec<Values> =
                chunks.map(|(chunk, column)| read_chunk(file, chunk.at(3), column)).collect();
            let rows = group.at(3).number() as usize;
            assert!(columns.iter().all(|values| values.len() == rows), "{rows} rows");
            columns
        })
        .collect();
    let rows: usize = groups.iter().map(|columns| columns[0].len()).sum();
    assert_eq!(footer[&3].number() as usize, rows);
    groups
}

fn read_chunk(file: &[u8], meta: &Value, (name, kind, is_optional): (&str, i32, bool)) -> Values {
    assert_eq!(meta.at(1).number(), i64::from(kind), "{name}");
    assert_eq!(*meta.at(3), Value::List(vec![Value::Binary(name.into())]));
    let (offset, packed) = (meta.at(9).number() as usize, meta.at(7).number() as usize);
    let chunk = &file[offset..offset + packed];
    let mut thrift = Thrift(chunk);
    let header = Value::Struct(thrift.fields());
    let body = thrift.0;
    assert_eq!(header.at(3).number() as usize, body.len(), "{name}");
    let body_bytes = snap::raw::Decoder::new().decompress_vec(body).unwrap();
    assert_eq!(header.at(2).number() as usize, body_bytes.len(), "{name}");
    let header_length = chunk.len() - body.len();
    assert_eq!(meta.at(6).number() as usize, header_length + body_bytes.len(), "{name}");
    let rows = header.at(5).at(1).number() as usize;
    assert_eq!(meta.at(5).number() as usize, rows, "{name}");
    let (mut left, mut present) = (&body_bytes[..], vec![true; rows]);
    if is_optional {
        let length = u32::from_le_bytes(array(&left[..4])) as usize;
        present = read_levels(&left[4..4 + length]);
        left = &left[4 + length..];
    }
    let mut take = |length: usize| {
        let (value, rest) = left.split_at(length);
        left = rest;
        value.to_vec()
    };
    let values = present.iter().map(|is_present| {
        is_present.then(|| match kind {
            BYTE_ARRAY => {
                let length = u32::from_le_bytes(array(&take(4)));
                take(length as usize)
            }
            _ => take(8),
        })
    });
    let values: Values = values.collect();
    assert!(left.is_empty(), "{name}: {} bytes too many", left.len());
    values
}

/// Runs of levels of one bit.
fn read_levels(bytes: &[u8]) -> Vec<bool> {
    let (mut thrift, mut present) = (Thrift(bytes), Vec::new());
    while !thrift.0.is_empty() {
        let run = thrift.varint();
        assert_eq!(run & 1, 0, "levels are packed by bits");
        let level = thrift.byte();
        present.extend(std::iter::repeat_n(level == 1, (run >> 1) as usize));
    }
    present
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap()
}

/// A value of Thrift's compact protocol.
#[derive(Debug, PartialEq)]
enum Value {
    Truth(bool),
    Number(i64),
    Binary(Vec<u8>),
    List(Vec<Value>),
    Struct(BTreeMap<i16, Value>),
}

impl Value {
    fn at(&self, field: i16) -> &Value {
        match self {
            Self::Struct(fields) => &fields[&field],
            other => panic!("{other:?} has no fields"),
        }
    }

    fn list(&self) -> &[Value] {
        match self {
            Self::List(values) => values,
            other => panic!("{other:?} is no list"),
        }
    }

    fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }
}

/// A reader of the compact protocol.
struct Thrift<'a>(&'a [u8]);

impl Thrift<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap();
        self.0 = rest;
        *first
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn zigzag(&mut self) -> i64 {
        let value = self.varint();
        (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
    }

    /// The fields of a struct, to its end.
    fn fields(&mut self) -> BTreeMap<i16, Value> {
        let (mut fields, mut last) = (BTreeMap::new(), 0);
        loop {
            let head = self.byte();
            if head == 0 {
                return fields;
            }
            let step = i16::from(head >> 4);
            last = if step == 0 { self.zigzag() as i16 } else { last + step };
            let value = match head & 0xf {
                truth @ 1..=2 => Value::Truth(truth == 1),
                kind => self.value(kind),
            };
            assert_eq!(fields.insert(last, value), None, "field {last} is there twice");
        }
    }

    fn value(&mut self, kind: u8) -> Value {
        match kind {
            4..=6 => Value::Number(self.zigzag()),
            8 => {
                let length = self.varint() as usize;
                let (text, rest) = self.0.split_at(length);
                self.0 = rest;
                Value::Binary(text.to_vec())
            }
            9 => {
                let head = self.byte();
                let short = usize::from(head >> 4);
                let length = if short == 15 { self.varint() as usize } else { short };
                Value::List((0..length).map(|_| self.value(head & 0xf)).collect())
            }
            12 => Value::Struct(self.fields()),
            other => panic!("{other} is no kind that is read here"),
        }
    }
}
