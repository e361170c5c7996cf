//! A lock of modules from the network: the SHA-256 of each, in a file beside the script. It makes a
//! test the same on every machine, and without a network wherever its modules are cached.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};

use super::LoadedScript;

/// The end of a lock's name, behind that of the script.
const END: &str = ".lock";

/// Maximum size of a lock, in bytes.
const BYTES_MAX: u64 = 1 << 20;

const HEADER: &str = "# The modules that this script loads from the network, with their SHA-256.\n";

/// The hashes of modules by URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleLock {
    script: String,
    hashes: BTreeMap<String, String>,
}

impl ModuleLock {
    /// The file of the lock of the script at `script`.
    #[must_use]
    pub fn path(script: &str) -> PathBuf {
        PathBuf::from(format!("{script}{END}"))
    }

    /// Reads the lock of the script at `script`, if it has one.
    ///
    /// # Errors
    /// When it cannot be read, or is not a lock.
    pub fn read(script: &str) -> Result<Option<Self>, String> {
        let path = Self::path(script);
        if !path.exists() {
            return Ok(None);
        }
        let text = gake_files::read_to_string(&path, "a lock of modules", BYTES_MAX);
        let text = text.map_err(|error| error.to_string())?;
        let hashes = parsed(&text).map_err(|line| {
            format!(
                "{}: line {line} is not a SHA-256 and a URL: write the lock anew, {}",
                path.display(),
                advice(script)
            )
        })?;
        Ok(Some(Self { script: script.to_owned(), hashes }))
    }

    /// The lock of a script that has loaded its modules.
    #[must_use]
    pub fn of(script: &str, loaded: &LoadedScript) -> Self {
        let locked = loaded.remote_modules().map(|(url, text)| {
            let url = url.split_once('#').map_or(&*url, |(url, _)| url);
            (url.to_owned(), hash(&text))
        });
        Self { script: script.to_owned(), hashes: locked.collect() }
    }

    /// The number of modules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether it has no modules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Writes it beside the script.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self) -> Result<PathBuf, String> {
        let path = Self::path(&self.script);
        let mut text = HEADER.to_owned();
        for (url, hash) in &self.hashes {
            text += &format!("{hash}  {url}\n");
        }
        let written = gake_files::replace(Path::new(&path), gake_files::Access::Mask, |file| {
            std::io::Write::write_all(file, text.as_bytes())
        });
        written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        Ok(path)
    }

    /// The SHA-256 of the module behind a URL.
    ///
    /// # Errors
    /// When it is not in the lock.
    pub(super) fn hash_of(&self, url: &str) -> Result<&str, String> {
        let known = self.hashes.get(url).map(String::as_str);
        known.ok_or_else(|| {
            format!("it is not in {}: to add it, {}", self.name(), advice(&self.script))
        })
    }

    /// Why a module with another hash is not loaded.
    pub(super) fn changed(&self, hash: &str, locked: &str) -> String {
        format!(
            "it has changed: its SHA-256 is {hash}, and {} says {locked}; to trust it as it is now, \
             {}",
            self.name(),
            advice(&self.script)
        )
    }

    fn name(&self) -> String {
        Self::path(&self.script).display().to_string()
    }
}

/// The SHA-256 of a module, in hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn advice(script: &str) -> String {
    format!("run `gake as k6 deps --lock {script}`")
}

/// The hashes by URL, or the number of the first wrong line.
fn parsed(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut hashes = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
        match line.split_once("  ") {
            Some((hash, url)) if is_hash(hash) && url.starts_with("https://") => {
                hashes.insert(url.to_owned(), hash.to_ascii_lowercase());
            }
            _ => return Err(number + 1),
        }
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s.js").display().to_string();
        assert_eq!(ModuleLock::read(&script), Ok(None));
        let hashes = BTreeMap::from([("https://a.test/x y.js".to_owned(), hash(b"1"))]);
        let lock = ModuleLock { script: script.clone(), hashes };
        lock.write().unwrap();
        assert_eq!(ModuleLock::read(&script), Ok(Some(lock)));
        for line in
            ["abc  https://a.test/", "https://a.test/", &format!("{}  http://a/", hash(b""))]
        {
            std::fs::write(ModuleLock::path(&script), format!("# c\n{line}\n")).unwrap();
            let error = ModuleLock::read(&script).unwrap_err();
            assert!(error.contains("line 2 is not") && error.contains("deps --lock"), "{error}");
        }
    }
}
