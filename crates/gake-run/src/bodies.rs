//! Bodies of requests: inline, or read from files, each once.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gake_core::spec::BodySpec;
use gake_files::InputError;

/// Maximum size of a body, in bytes.
pub const BODY_BYTES_MAX: u64 = 1 << 30;

/// Reads a body for a command line of another tool.
///
/// # Errors
/// An error of the system, or that it is too large.
pub fn body_file(path: &str) -> io::Result<Vec<u8>> {
    gake_files::read(Path::new(path), "a body", BODY_BYTES_MAX).map_err(|error| match error {
        InputError::Io { error, .. } => error,
        error => io::Error::other(error),
    })
}

/// Bodies from files, each read once.
#[derive(Debug, Default)]
pub struct Bodies {
    files: HashMap<PathBuf, Arc<[u8]>>,
}

impl Bodies {
    /// The bytes of a body; `-` consumes `stdin`.
    pub(crate) fn of<'a>(
        &mut self,
        body: &BodySpec,
        stdin: &mut Option<Box<dyn BufRead + 'a>>,
    ) -> Result<Arc<[u8]>, String> {
        match body {
            BodySpec::Bytes(bytes) => Ok(Arc::clone(bytes)),
            BodySpec::File(path) if path.as_os_str() == "-" => {
                if let Some(known) = self.files.get(path) {
                    return Ok(Arc::clone(known));
                }
                let reader =
                    stdin.take().ok_or("the body is on standard input, which is not available")?;
                let bytes = gake_files::bounded(reader, BODY_BYTES_MAX)
                    .map_err(|error| format!("the body on standard input: {error}"))?
                    .ok_or("the body on standard input is larger than 1 GiB")?;
                let bytes: Arc<[u8]> = bytes.into();
                self.files.insert(path.clone(), Arc::clone(&bytes));
                Ok(bytes)
            }
            BodySpec::File(path) => self.of_file(path),
        }
    }

    /// The contents of a file, read once.
    ///
    /// # Errors
    /// When it cannot be read, with its name.
    pub fn of_file(&mut self, path: &Path) -> Result<Arc<[u8]>, String> {
        if let Some(bytes) = self.files.get(path) {
            return Ok(Arc::clone(bytes));
        }
        let read = gake_files::read_shared(path, "a body", BODY_BYTES_MAX);
        let bytes = read.map_err(|error| match error.io() {
            Some(error) => format!("body file {}: {error}", path.display()),
            None => format!("body file {error}"),
        })?;
        self.files.insert(path.to_owned(), Arc::clone(&bytes));
        Ok(bytes)
    }
}
