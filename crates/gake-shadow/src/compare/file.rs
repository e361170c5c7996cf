//! A comparison as a file: one JSON document, `gake.shadow/1`.
//!
//! It is replaced as a whole while traffic is compared, so that what a crash leaves behind is the
//! state of a moment before. Files of several proxies, or of several days, merge by adding.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Comparison;

/// The format's name and version.
pub const SCHEMA: &str = "gake.shadow/1";

/// Bytes of a file that are read: no comparison is larger.
const FILE_BYTES_MAX: u64 = 1 << 30;

#[derive(Serialize)]
struct Writing<'a> {
    schema: &'static str,
    comparisons: &'a [Comparison],
}

#[derive(Deserialize)]
struct Reading {
    schema: String,
    comparisons: Vec<Comparison>,
}

/// Why a file is not one of comparisons.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is not JSON of this form.
    #[error("it is not a comparison that `gake shadow --diff-out` wrote: {0}")]
    Form(#[from] serde_json::Error),
    /// Another format.
    #[error("it says that its format is {0:?}; this version reads {SCHEMA:?}")]
    Schema(String),
    /// Longer than any comparison.
    #[error("it is larger than a comparison can be")]
    TooLarge,
}

/// Writes comparisons, one a shadow, in the place of what is at `path`.
///
/// # Errors
/// When the folder cannot be written to, or is full; the file that was there stays then.
pub fn write(path: &Path, comparisons: &[Comparison]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut out = BufWriter::new(File::create(&part)?);
    serde_json::to_writer(&mut out, &Writing { schema: SCHEMA, comparisons })?;
    out.write_all(b"\n")?;
    out.into_inner()?.sync_all()?;
    std::fs::rename(part, path)
}

/// Reads comparisons.
///
/// # Errors
/// When the file cannot be read, or is none.
pub fn read(path: &Path) -> Result<Vec<Comparison>, FileError> {
    let file = File::open(path)?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLarge);
    }
    let bytes = std::fs::read(path)?;
    let reading: Reading = serde_json::from_slice(&bytes)?;
    if reading.schema != SCHEMA {
        return Err(FileError::Schema(reading.schema));
    }
    Ok(reading.comparisons)
}

/// Joins comparisons of the same two backends.
#[must_use]
pub fn join(comparisons: Vec<Comparison>) -> Vec<Comparison> {
    let mut joined: Vec<Comparison> = Vec::new();
    for comparison in comparisons {
        match joined.iter_mut().find(|known| known.shadow == comparison.shadow) {
            Some(known) => known.merge(comparison),
            None => joined.push(comparison),
        }
    }
    joined
}
