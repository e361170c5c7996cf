//! Reads results one by one in any encoding.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use super::decode_error::DecodeError;
use super::record::{ResultEncoding, VegetaRecord};
use super::{csv, gob, json};

/// Bytes that identify the encoding: a gob message's length and the number of the type it defines.
const SNIFFED: u64 = 16;

/// A record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is empty.
    #[error("is empty: it holds no result of an attack")]
    Empty,
    /// It has none of the three encodings.
    #[error("holds no results of Vegeta: it is neither gob, nor JSON, nor CSV of results")]
    Foreign,
    /// The file ends within a record. No record follows.
    #[error("record {record} is cut off and was left out: the file ends within it")]
    CutOff {
        /// Its number, from 1.
        record: u64,
    },
    /// A record is invalid; the next one may be valid.
    #[error("record {record} was left out: {why}")]
    Record {
        /// Its number, from 1.
        record: u64,
        /// The reason.
        why: String,
    },
    /// No later record can be read.
    #[error("record {record} and all after it were left out: {why}")]
    Unreadable {
        /// Its number, from 1.
        record: u64,
        /// The reason.
        why: String,
    },
}

/// Reads records. After an error the next one may be requested; it is `None` if reading cannot
/// continue.
#[derive(Debug)]
pub struct ResultReader<R> {
    input: io::Chain<io::Cursor<Vec<u8>>, R>,
    decoder: Decoder,
    /// Records reached so far.
    record: u64,
    /// Valid records so far.
    good: u64,
    ended: bool,
}

#[derive(Debug)]
enum Decoder {
    Gob(gob::Decoder),
    Json(json::Decoder),
    Csv(csv::Decoder),
}

impl<R: BufRead> ResultReader<R> {
    /// Reads from `input` and detects the encoding by its first bytes.
    ///
    /// # Errors
    /// When it cannot be read, is empty, or is in none of the three encodings.
    pub fn detect(mut input: R) -> Result<Self, RecordError> {
        let mut first = Vec::new();
        input.by_ref().take(SNIFFED).read_to_end(&mut first)?;
        if first.is_empty() {
            return Err(RecordError::Empty);
        }
        let decoder = match ResultEncoding::of(&first).ok_or(RecordError::Foreign)? {
            ResultEncoding::Gob => Decoder::Gob(gob::Decoder::default()),
            ResultEncoding::Json => Decoder::Json(json::Decoder::default()),
            ResultEncoding::Csv => Decoder::Csv(csv::Decoder::default()),
        };
        let input = io::Cursor::new(first).chain(input);
        Ok(Self { input, decoder, record: 0, good: 0, ended: false })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When it is invalid. [`RecordError::Foreign`] when the whole file has no valid one.
    pub fn next_record(&mut self) -> Result<Option<VegetaRecord>, RecordError> {
        if self.ended {
            return Ok(None);
        }
        self.record += 1;
        let next = match &mut self.decoder {
            Decoder::Gob(gob) => gob.next(&mut self.input),
            Decoder::Json(json) => json.next(&mut self.input),
            Decoder::Csv(csv) => csv.next(&mut self.input),
        };
        let record = self.record;
        match next {
            Ok(Some(record)) => {
                self.good += 1;
                return Ok(Some(record));
            }
            // A file without a valid first record is another tool's.
            Err(DecodeError::Record(_) | DecodeError::Unreadable(_)) if self.good == 0 => {
                self.ended = true;
                Err(RecordError::Foreign)
            }
            Err(DecodeError::Record(why)) => return Err(RecordError::Record { record, why }),
            Ok(None) if self.good == 0 => Err(RecordError::Foreign),
            Ok(None) => Ok(None),
            Err(DecodeError::Io(error)) => Err(error.into()),
            Err(DecodeError::CutOff) => Err(RecordError::CutOff { record }),
            Err(DecodeError::Unreadable(why)) => Err(RecordError::Unreadable { record, why }),
        }
        .inspect_err(|_| self.ended = true)
        .inspect(|_: &Option<VegetaRecord>| self.ended = true)
    }
}

impl ResultEncoding {
    /// The encoding of a stream that starts with these bytes, of which 16 suffice.
    ///
    /// A gob stream starts with the definition of a type: the message's length, then a number below
    /// -63. No text has such a second byte. JSON lines start with a brace, CSV with a digit.
    #[must_use]
    pub fn of(first: &[u8]) -> Option<Self> {
        let (length, rest) = first.split_first()?;
        let after_length = match length {
            0 => None,
            1..=127 => rest.first(),
            _ => rest.get(usize::from(length.wrapping_neg())),
        };
        if after_length.is_some_and(|byte| *byte >= 0x7f) {
            return Some(Self::Gob);
        }
        match first.iter().find(|byte| !byte.is_ascii_whitespace())? {
            b'{' => Some(Self::Json),
            b'0'..=b'9' | b'-' | b'"' => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Alternates between several readers, as Vegeta does.
#[derive(Debug)]
pub struct RoundRobin<R> {
    /// Each with its name.
    turns: VecDeque<(String, ResultReader<R>)>,
}

impl<R: BufRead> RoundRobin<R> {
    /// Reads from each of `readers`, which are named for errors.
    #[must_use]
    pub fn new(readers: Vec<(String, ResultReader<R>)>) -> Self {
        Self { turns: readers.into() }
    }

    /// The next record; `None` when every reader is at its end.
    ///
    /// # Errors
    /// When it is invalid, with the name of its reader; the next one may be requested.
    pub fn next_record(&mut self) -> Result<Option<VegetaRecord>, (String, RecordError)> {
        while let Some((name, mut reader)) = self.turns.pop_front() {
            match reader.next_record() {
                Ok(None) => {}
                Ok(Some(record)) => {
                    self.turns.push_back((name, reader));
                    return Ok(Some(record));
                }
                Err(error) => {
                    self.turns.push_back((name.clone(), reader));
                    return Err((name, error));
                }
            }
        }
        Ok(None)
    }
}
