//! Reading up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum bytes read from pipes and devices.
const STREAM_MAX: u64 = 256 << 20;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A system error.
    #[error("{} cannot be read: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It exceeds the limit.
    #[error("{} is larger than {}, the most that is read of {what}", path.display(), size(*limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The expected content, for the message.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
}

impl InputError {
    /// The system's error, if it was one.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::TooLarge { .. } => None,
        }
    }
}

/// Reads a file of at most `limit` bytes, or a pipe or device of at most 256 MiB. `what` is its
/// content, for the message.
///
/// # Errors
/// When it cannot be read, or is longer.
pub fn read(path: &Path, what: &'static str, limit: u64) -> Result<Vec<u8>, InputError> {
    Input::open(path, what, limit)?.rest(0)
}

/// As [`read`], into shared memory, without a second copy of regular files.
///
/// # Errors
/// As of [`read`].
pub fn read_shared(path: &Path, what: &'static str, limit: u64) -> Result<Arc<[u8]>, InputError> {
    let mut input = Input::open(path, what, limit)?;
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, input.length).collect();
    let got = Arc::get_mut(&mut bytes).map_or(Ok(0), |room| input.fill(room))?;
    let rest = input.rest(got as u64)?;
    if got == bytes.len() && rest.is_empty() {
        return Ok(bytes);
    }
    // A pipe or device, or the length has changed.
    Ok([&bytes[..got], &rest].concat().into())
}

struct Input<'a> {
    file: File,
    path: &'a Path,
    what: &'static str,
    limit: u64,
    /// The length of a regular file, else 0.
    length: usize,
}

impl<'a> Input<'a> {
    fn open(path: &'a Path, what: &'static str, limit: u64) -> Result<Self, InputError> {
        let failed = |error| InputError::Io { path: path.to_owned(), error };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            return Ok(Self { file, path, what, limit: limit.min(STREAM_MAX), length: 0 });
        }
        if metadata.len() > limit {
            return Err(InputError::TooLarge { path: path.to_owned(), what, limit });
        }
        let length = usize::try_from(metadata.len()).unwrap_or(0);
        Ok(Self { file, path, what, limit, length })
    }

    /// Reads until `room` is full or the file ends; returns the number of bytes.
    fn fill(&mut self, room: &mut [u8]) -> Result<usize, InputError> {
        let mut got = 0;
        while got < room.len() {
            match self.file.read(&mut room[got..]) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(InputError::Io { path: self.path.to_owned(), error }),
            }
        }
        Ok(got)
    }

    /// Reads the rest after `got` bytes.
    fn rest(&self, got: u64) -> Result<Vec<u8>, InputError> {
        let Self { path, what, limit, .. } = *self;
        let rest = bounded(&self.file, limit.saturating_sub(got));
        let rest = rest.map_err(|error| InputError::Io { path: path.to_owned(), error })?;
        rest.ok_or_else(|| InputError::TooLarge { path: path.to_owned(), what, limit })
    }
}

/// As [`read`], for a UTF-8 file.
///
/// # Errors
/// When it cannot be read, is longer, or is not UTF-8.
pub fn read_to_string(path: &Path, what: &'static str, limit: u64) -> Result<String, InputError> {
    String::from_utf8(read(path, what, limit)?).map_err(|_| InputError::Io {
        path: path.to_owned(),
        error: io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"),
    })
}

/// Reads to the end; `None` if there are more than `limit` bytes.
///
/// # Errors
/// The input's.
pub fn bounded(input: impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Bytes in the largest unit with an integer value.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    fits.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, unit)| format!("{} {unit}", bytes >> shift),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, "a test", 5).unwrap(), b"12345");
        let error = read(&path, "a test", 4).unwrap_err();
        assert!(
            error.to_string().ends_with("larger than 4 bytes, the most that is read of a test")
        );
        assert_eq!(read_to_string(&path, "a test", 5).unwrap(), "12345");
        std::fs::write(&path, b"\xff").unwrap();
        assert!(read_to_string(&path, "a test", 5).unwrap_err().to_string().contains("UTF-8"));
        assert!(read(folder.path(), "a test", 5).unwrap_err().io().is_some());
        // A sparse file.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(read(&path, "a test", 1 << 30), Err(InputError::TooLarge { .. })));
    }

    #[test]
    fn shared_reads_agree_for_files_and_devices() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        for path in [file.path(), Path::new("/proc/version"), Path::new("/dev/null")] {
            let shared = read_shared(path, "a test", 1 << 20).unwrap();
            assert_eq!(shared[..], read(path, "a test", 1 << 20).unwrap());
        }
        let error = read_shared(file.path(), "a test", 4).unwrap_err();
        assert!(matches!(error, InputError::TooLarge { limit: 4, .. }));
        let error = read_shared(Path::new("/dev/zero"), "a test", 1 << 20).unwrap_err();
        assert!(matches!(error, InputError::TooLarge { .. }));
        assert_eq!(*read_shared(file.path(), "a test", 5).unwrap(), *b"12345");
    }

    #[test]
    fn endless_devices_are_read_up_to_the_limit() {
        let error = read(Path::new("/dev/zero"), "a test", 1 << 20).unwrap_err();
        assert!(error.to_string().contains("/dev/zero is larger than 1 MiB"), "{error}");
        assert_eq!(read(Path::new("/dev/null"), "a test", 0).unwrap(), b"");
    }

    #[test]
    fn sizes_have_the_largest_unit() {
        let sizes = [0, 1, 1023, 1 << 10, 3 << 20, 1 << 30, (1 << 20) + 1].map(size);
        assert_eq!(
            sizes,
            ["0 bytes", "1 bytes", "1023 bytes", "1 KiB", "3 MiB", "1 GiB", "1048577 bytes"]
        );
    }
}
