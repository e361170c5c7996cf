//! Decodes records from a gob stream. Fields are found by name, as in Go, so that results of
//! older versions and other programs are readable, too.

use std::io::{self, BufRead, Read};

use super::YEAR_1_TO_1970;
use super::input::{GobError, MessageReader, length_of_number};
use super::types::builtin::{BYTES, INT, STRING, UINT};
use super::types::{FieldNumbers, GobType, TypeTable};
use crate::vegeta::decode_error::{DecodeError, RECORD_MAX};
use crate::vegeta::record::{Headers, Timestamp, VegetaRecord};

/// Reads records; keeps the types that the stream has defined.
#[derive(Debug, Default)]
pub(in super::super) struct Decoder {
    types: TypeTable,
    message: Vec<u8>,
}

impl Decoder {
    /// The next record; `None` at the end of the stream.
    pub(in super::super) fn next(
        &mut self,
        input: &mut impl BufRead,
    ) -> Result<Option<VegetaRecord>, DecodeError> {
        loop {
            let Some(length) = message_length(input)? else { return Ok(None) };
            if length > RECORD_MAX {
                return Err(DecodeError::Unreadable(
                    "it claims to be longer than 256 MiB".to_owned(),
                ));
            }
            self.message.clear();
            // Allocates for the bytes that exist, not for the length that the stream claims.
            input.by_ref().take(length).read_to_end(&mut self.message)?;
            if (self.message.len() as u64) < length {
                return Err(DecodeError::CutOff);
            }
            let mut message = MessageReader::new(&self.message);
            let number = message.int().map_err(DecodeError::Record)?;
            if number < 0 {
                let number = number.checked_neg().unwrap_or(i64::MAX);
                self.types.define(number, &mut message).map_err(DecodeError::Unreadable)?;
            } else {
                return record(&self.types, number, &mut message)
                    .map(Some)
                    .map_err(DecodeError::Record);
            }
        }
    }
}

/// The length of the next message; `None` at the end.
fn message_length(input: &mut impl BufRead) -> Result<Option<u64>, DecodeError> {
    let mut byte = [0];
    if input.read(&mut byte)? == 0 {
        return Ok(None);
    }
    if byte[0] < 128 {
        return Ok(Some(byte[0].into()));
    }
    let Some(count) = length_of_number(byte[0]) else {
        return Err(DecodeError::Unreadable("its length makes no sense".to_owned()));
    };
    let mut bytes = [0; 8];
    match input.read_exact(&mut bytes[8 - usize::from(count)..]) {
        Ok(()) => Ok(Some(u64::from_be_bytes(bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(DecodeError::CutOff),
        Err(error) => Err(error.into()),
    }
}

fn record(
    types: &TypeTable,
    number: i64,
    input: &mut MessageReader<'_>,
) -> Result<VegetaRecord, GobError> {
    let Some(GobType::Struct(fields)) = types.get(number) else {
        return Err("it is not a struct, so not a result of Vegeta".to_owned());
    };
    let mut record = VegetaRecord::default();
    let mut known = false;
    let mut numbers = FieldNumbers::default();
    while let Some(at) = numbers.next(input)? {
        let (name, kind) = fields.get(at).ok_or("it has a field too many")?;
        known |= field(&mut record, types, name, *kind, input)?;
    }
    if !known {
        return Err("it has none of the fields of a result of Vegeta".to_owned());
    }
    if !input.is_empty() {
        return Err("something follows its end".to_owned());
    }
    Ok(record)
}

/// Reads the field `name`; returns whether it belongs to a result.
fn field(
    record: &mut VegetaRecord,
    types: &TypeTable,
    name: &str,
    kind: i64,
    input: &mut MessageReader<'_>,
) -> Result<bool, GobError> {
    if !is_expected(types, name, kind) {
        return Err(format!("its field {name} is of another type"));
    }
    match name {
        "Attack" => record.attack = input.text()?,
        "Seq" => record.seq = input.uint()?,
        "Code" => {
            let code = input.uint()?;
            record.code = code.try_into().map_err(|_| format!("its code is {code}"))?;
        }
        "Timestamp" => record.timestamp = timestamp(input.bytes()?)?,
        "Latency" => record.latency = input.int()?,
        "BytesOut" => record.bytes_out = input.uint()?,
        "BytesIn" => record.bytes_in = input.uint()?,
        "Error" => record.error = input.text()?,
        "Body" => record.body = input.bytes()?.to_vec(),
        "Method" => record.method = input.text()?,
        "URL" => record.url = input.text()?,
        "Headers" => record.headers = Some(headers(input)?),
        _ => {
            types.skip(kind, input)?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the field `name` may have the type `kind`.
fn is_expected(types: &TypeTable, name: &str, kind: i64) -> bool {
    match name {
        "Attack" | "Error" | "Method" | "URL" => kind == STRING,
        "Seq" | "Code" | "BytesOut" | "BytesIn" => kind == UINT,
        "Latency" => kind == INT,
        "Body" => kind == BYTES,
        "Timestamp" => matches!(types.get(kind), Some(GobType::Opaque)),
        "Headers" => match types.get(kind) {
            Some(GobType::Map(STRING, values)) => {
                matches!(types.get(*values), Some(GobType::List(STRING)))
            }
            _ => false,
        },
        _ => true,
    }
}

fn headers(input: &mut MessageReader<'_>) -> Result<Headers, GobError> {
    (0..input.count()?)
        .map(|_| {
            let name = input.text()?;
            let values = (0..input.count()?).map(|_| input.text()).collect::<Result<_, _>>()?;
            Ok((name, values))
        })
        .collect()
}

/// Parses the binary form of Go's `time.Time`.
fn timestamp(bytes: &[u8]) -> Result<Timestamp, GobError> {
    let error = || "its timestamp is in an unknown form".to_owned();
    let (odd, bytes) = match *bytes {
        [1, ref rest @ ..] => (0, rest),
        [2, ref rest @ .., odd] => (i32::from(odd as i8), rest),
        _ => return Err(error()),
    };
    let bytes: [u8; 14] = bytes.try_into().map_err(|_| error())?;
    let [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1, n2, n3, o0, o1] = bytes;
    let seconds = i64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
    let nanos = u32::from_be_bytes([n0, n1, n2, n3]);
    let minutes = i16::from_be_bytes([o0, o1]);
    let unix_ns = seconds
        .checked_sub(YEAR_1_TO_1970)
        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
        .and_then(|ns| ns.checked_add(nanos.into()))
        .filter(|_| nanos < 1_000_000_000)
        .ok_or("its timestamp is not within the years 1677 to 2262")?;
    let offset = (minutes != -1).then(|| i32::from(minutes) * 60 + odd);
    Ok(Timestamp { unix_ns, offset })
}
