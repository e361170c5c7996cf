//! The files and modules that a script reads, shared by all users.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, fs};

use crate::paths::anonymous;

/// The largest file that a script may import or open.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Gets the module behind an `https://` URL; blocks.
pub type FetchModule = Arc<dyn Fn(&str) -> Result<FetchedModule, String> + Send + Sync>;

/// A module from the network or from its cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedModule {
    /// Its text.
    pub text: Vec<u8>,
    /// A message for the user if it came over the network.
    pub note: Option<String>,
}

/// Files by path and modules by URL, cached.
#[derive(Default)]
pub struct ScriptFiles {
    known: Mutex<HashMap<PathBuf, Arc<[u8]>>>,
    /// Whether only cached files may be read.
    is_closed: bool,
    fetch: Option<FetchModule>,
}

impl ScriptFiles {
    /// Files on disk; `fetch` loads remote modules.
    #[must_use]
    pub fn on_disk(fetch: Option<FetchModule>) -> Self {
        Self { fetch, ..Self::default() }
    }

    /// The files of an archive, by absolute path or URL, and no others.
    #[must_use]
    pub fn of_archive(files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let files = files.into_iter().map(|(path, bytes)| (path, bytes.into()));
        Self { known: Mutex::new(files.collect()), is_closed: true, fetch: None }
    }

    /// Overrides the file at `path`.
    #[must_use]
    pub fn with(self, path: &Path, bytes: Vec<u8>) -> Self {
        self.known().insert(path.to_owned(), bytes.into());
        self
    }

    /// Everything read so far, sorted by path or URL.
    pub fn all(&self) -> Vec<(PathBuf, Arc<[u8]>)> {
        let mut all: Vec<_> = self.known().clone().into_iter().collect();
        all.sort();
        all
    }

    /// Whether only the files of an archive are there, as on an agent.
    pub fn are_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether a module was read from the network.
    pub(crate) fn has_remote(&self) -> bool {
        self.known().keys().any(|path| path.starts_with("https:"))
    }

    pub(crate) fn read(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        let mut known = self.known();
        if let Some(bytes) = known.get(path) {
            return Ok(Arc::clone(bytes));
        }
        if let Some(bytes) = known.get(&anonymous(path)).filter(|_| self.is_closed) {
            return Ok(Arc::clone(bytes));
        }
        if self.is_closed {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it is not in the archive"));
        }
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::other("it is larger than 1 GiB"));
        }
        let bytes: Arc<[u8]> = bytes.into();
        known.insert(path.to_owned(), Arc::clone(&bytes));
        Ok(bytes)
    }

    /// A module, and a message for the user.
    pub(crate) fn fetch(&self, url: &str) -> Result<(Arc<[u8]>, Option<String>), String> {
        let mut known = self.known();
        if let Some(text) = known.get(Path::new(url)) {
            return Ok((Arc::clone(text), None));
        }
        if self.is_closed {
            return Err("it is not in the archive".to_owned());
        }
        let fetch = self.fetch.as_ref().ok_or("modules are not fetched here")?;
        let FetchedModule { text, note } = fetch(url)?;
        let text: Arc<[u8]> = text.into();
        known.insert(url.into(), Arc::clone(&text));
        Ok((text, note))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<[u8]>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ScriptFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptFiles").field("is_closed", &self.is_closed).finish_non_exhaustive()
    }
}
