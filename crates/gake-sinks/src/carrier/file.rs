//! A file, compressed when its name ends in `.gz`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use gake_files::Access;

use super::{Batch, Carrier, Lost};

/// A file that is written during the run.
pub(crate) struct File {
    writer: Option<Writer>,
    lost: Lost,
}

enum Writer {
    Plain(BufWriter<std::fs::File>),
    Gzip(Box<GzEncoder<BufWriter<std::fs::File>>>),
}

impl File {
    /// Creates it, over an older one of that name.
    pub(crate) fn create(path: &str) -> Result<Self, String> {
        let file = gake_files::create(Path::new(path), Access::Owner)
            .map_err(|error| format!("{path} cannot be written: {error}"))?;
        let file = BufWriter::new(file);
        let writer = match path.ends_with(".gz") {
            true => Writer::Gzip(Box::new(GzEncoder::new(file, Compression::fast()))),
            false => Writer::Plain(file),
        };
        Ok(Self { writer: Some(writer), lost: Lost::default() })
    }
}

impl Carrier for File {
    fn carry(&mut self, batch: Batch) {
        let written = match &mut self.writer {
            // Whoever follows the file sees each second.
            Some(Writer::Plain(file)) => file.write_all(&batch.bytes).and_then(|()| file.flush()),
            Some(Writer::Gzip(file)) => file.write_all(&batch.bytes),
            None => return self.lost.add(batch.rows, "it could not be written"),
        };
        if let Err(error) = written {
            self.writer = None;
            self.lost.add(batch.rows, error.to_string());
        }
    }

    fn finish(&mut self) {
        let ended = match self.writer.take() {
            Some(Writer::Plain(mut file)) => file.flush(),
            Some(Writer::Gzip(file)) => file.finish().and_then(|mut file| file.flush()),
            None => Ok(()),
        };
        if let Err(error) = ended {
            let error: io::Error = error;
            self.lost.add(1, format!("it has no end: {error}"));
        }
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }
}
