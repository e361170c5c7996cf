//! Sources of scripts.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::ScriptError;

/// Maximum size of a script or module, in bytes.
const SIZE_MAX: u64 = 8 << 20;

/// An ES module: name for messages, text, and folder for imports.
#[derive(Debug, Clone)]
pub struct ScriptSource {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) folder: Option<PathBuf>,
}

impl ScriptSource {
    /// A module from a string, without imports.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), folder: None }
    }

    /// A module from a file of at most 8 MiB, which may import files of its folder and those below.
    ///
    /// # Errors
    /// When it cannot be read or is not UTF-8.
    pub fn file(path: &Path) -> Result<Self, ScriptError> {
        let failed = |source| ScriptError::Read { path: path.to_owned(), source };
        let text = read(path).map_err(failed)?;
        let whole = path.canonicalize().map_err(failed)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, text, folder: whole.parent().map(Path::to_owned) })
    }
}

pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(SIZE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SIZE_MAX {
        return Err(io::Error::other("it is larger than 8 MiB"));
    }
    Ok(text)
}
