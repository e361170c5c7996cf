//! Writes results in an encoding.

use std::io::{self, Write};

use super::record::{ResultEncoding, VegetaRecord};
use super::{csv, gob, json};

/// Writes records, each with one call to the underlying writer.
#[derive(Debug)]
pub struct ResultWriter<W> {
    out: W,
    encoding: ResultEncoding,
    buffer: Vec<u8>,
}

impl<W: Write> ResultWriter<W> {
    /// Writes records to `out`.
    #[must_use]
    pub fn new(out: W, encoding: ResultEncoding) -> Self {
        let mut buffer = Vec::new();
        if encoding == ResultEncoding::Gob {
            gob::push_definitions(&mut buffer);
        }
        Self { out, encoding, buffer }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// The underlying writer's.
    pub fn write(&mut self, record: &VegetaRecord) -> io::Result<()> {
        match self.encoding {
            ResultEncoding::Gob => gob::push_record(&mut self.buffer, record),
            ResultEncoding::Json => json::push_record(&mut self.buffer, record),
            ResultEncoding::Csv => csv::push_record(&mut self.buffer, record),
        }
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// The underlying writer's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
