//! A file, compressed when its name ends in `.gz` or `.zst`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use gake_files::Access;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::{Carrier, FigureBatch, LostFigures};

/// Bytes of a zstd frame: enough to compress well, in bounded memory.
const FRAME: usize = 256 << 10;

pub(crate) struct FileCarrier {
    writer: Option<FileWriter>,
    /// Whether the file is unreadable without its end.
    needs_end: bool,
    taken: u64,
    lost: LostFigures,
}

enum FileWriter {
    Plain(BufWriter<std::fs::File>),
    Gzip(Box<GzEncoder<BufWriter<std::fs::File>>>),
    Zstd(ZstdFrames<std::fs::File>),
}

/// A zstd compressor that writes consecutive frames. Data since the last frame is lost without a
/// [`flush`](Write::flush).
#[derive(Debug)]
pub struct ZstdFrames<W> {
    inner: W,
    waiting: Vec<u8>,
}

impl<W: Write> ZstdFrames<W> {
    /// Writes frames to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, waiting: Vec::new() }
    }
}

impl<W: Write> Write for ZstdFrames<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= FRAME {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = compress_to_vec(self.waiting.as_slice(), CompressionLevel::Fastest);
        self.waiting.clear();
        self.inner.write_all(&frame)?;
        self.inner.flush()
    }
}

impl FileCarrier {
    /// Creates the file, replacing an existing one.
    pub(crate) fn create(path: &str) -> Result<Self, String> {
        let file = gake_files::create(Path::new(path), Access::Owner)
            .map_err(|error| format!("{path} cannot be written: {error}"))?;
        let writer = if path.ends_with(".gz") {
            let file = BufWriter::new(file);
            FileWriter::Gzip(Box::new(GzEncoder::new(file, Compression::fast())))
        } else if path.ends_with(".zst") {
            FileWriter::Zstd(ZstdFrames::new(file))
        } else {
            FileWriter::Plain(BufWriter::new(file))
        };
        Ok(Self { writer: Some(writer), needs_end: false, taken: 0, lost: LostFigures::default() })
    }

    /// Creates a file that is unreadable without its end.
    pub(crate) fn create_whole(path: &str) -> Result<Self, String> {
        Ok(Self { needs_end: true, ..Self::create(path)? })
    }

    /// Counts the loss after an error: these rows, or all so far.
    fn broken(&mut self, rows: u64, why: String) {
        self.writer = None;
        match self.needs_end {
            true => self.lost.add(self.taken, format!("{why}: the file cannot be read")),
            false => self.lost.add(rows, why),
        }
    }
}

impl Carrier for FileCarrier {
    fn carry(&mut self, batch: FigureBatch) {
        let written = match &mut self.writer {
            // Flushed so that readers can follow each second.
            Some(FileWriter::Plain(file)) => {
                file.write_all(&batch.bytes).and_then(|()| file.flush())
            }
            Some(FileWriter::Gzip(file)) => file.write_all(&batch.bytes),
            Some(FileWriter::Zstd(frames)) => frames.write_all(&batch.bytes),
            None => return self.lost.add(batch.rows, "it could not be written"),
        };
        self.taken += batch.rows;
        if let Err(error) = written {
            self.broken(batch.rows, error.to_string());
        }
    }

    fn finish(&mut self) {
        let ended = match self.writer.take() {
            Some(FileWriter::Plain(mut file)) => file.flush(),
            Some(FileWriter::Gzip(file)) => file.finish().and_then(|mut file| file.flush()),
            Some(FileWriter::Zstd(mut frames)) => frames.flush(),
            None => Ok(()),
        };
        if let Err(error) = ended {
            let error: io::Error = error;
            self.broken(1, format!("the file is incomplete: {error}"));
        }
    }

    fn lost(&self) -> LostFigures {
        self.lost.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Read;

    use ruzstd::decoding::StreamingDecoder;

    use super::*;

    /// The loss of a file that takes 5 rows, and then fails on 2 and 4.
    fn lost(mut file: FileCarrier) -> LostFigures {
        let carry = |file: &mut FileCarrier, rows| {
            file.carry(FigureBatch { bytes: b"abc".to_vec(), rows });
        };
        carry(&mut file, 5);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        file.writer = Some(FileWriter::Plain(BufWriter::new(full)));
        carry(&mut file, 2);
        carry(&mut file, 4);
        file.finish();
        file.lost()
    }

    #[test]
    fn unreadable_rows_are_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").to_str().unwrap().to_owned();
        assert_eq!(lost(FileCarrier::create(&path).unwrap()).rows, 6);
        let whole = lost(FileCarrier::create_whole(&path).unwrap());
        assert_eq!(whole.rows, 11);
        assert!(whole.why.unwrap().ends_with("the file cannot be read"));
    }

    #[test]
    fn zstd_frames_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv.zst");
        let mut file = FileCarrier::create(path.to_str().unwrap()).unwrap();
        let lines: Vec<String> = (0..60_000).map(|n| format!("line {n}\n")).collect();
        for line in &lines {
            file.carry(FigureBatch { bytes: line.clone().into_bytes(), rows: 1 });
        }
        file.finish();
        assert!(file.lost().why.is_none());
        let packed = std::fs::read(&path).unwrap();
        let (mut rest, mut text, mut frames) = (packed.as_slice(), String::new(), 0);
        while !rest.is_empty() {
            StreamingDecoder::new(&mut rest).unwrap().read_to_string(&mut text).unwrap();
            frames += 1;
        }
        assert!(text == lines.concat() && frames > 1 && packed.len() < text.len() / 2, "{frames}");
    }
}
