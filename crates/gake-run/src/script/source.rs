//! Sources of scripts: a file, standard input, or an archive.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use gake_k6::archive::{Archive, ArchiveError};
use gake_k6::files::{FetchModule, ScriptFiles};
use gake_k6::not_on_disk;

/// The path of a script from standard input.
pub const STDIN: &str = "/-";

/// Maximum size of a script or archive.
const BYTES_MAX: u64 = 1 << 30;

/// A script that has been read but not loaded.
#[derive(Debug)]
pub struct UnloadedScript {
    /// The absolute path.
    pub(super) path: PathBuf,
    /// The files that it may read.
    pub(super) files: ScriptFiles,
    /// Options and environment, if it comes from an archive.
    pub(super) archived: Option<ArchivedOptions>,
}

/// The options and environment in an archive.
#[derive(Debug)]
pub(super) struct ArchivedOptions {
    /// The options, as JSON.
    pub(super) options: String,
    /// Additional variables of the environment.
    pub(super) environment: BTreeMap<String, String>,
}

impl UnloadedScript {
    /// Reads the script or archive at `name`, or `stdin` for `-`. `fetch` gets modules from the
    /// network.
    ///
    /// # Errors
    /// When it cannot be read, in k6's words.
    pub fn read(
        name: &str,
        fetch: FetchModule,
        stdin: Option<&mut dyn Read>,
    ) -> Result<Self, String> {
        let (path, bytes) = if name == "-" {
            let stdin = stdin.ok_or("the script on stdin cannot be read: there is none")?;
            let bytes = gake_files::bounded(stdin, BYTES_MAX)
                .map_err(|error| format!("the script on stdin cannot be read: {error}"))?;
            (PathBuf::from(STDIN), bytes.ok_or("the script on stdin is larger than 1 GiB")?)
        } else {
            let path = std::path::absolute(name).map_err(|_| not_on_disk(name))?;
            let bytes = gake_files::read(&path, "a script or archive", BYTES_MAX);
            let bytes = bytes.map_err(|error| match error.io() {
                Some(_) => not_on_disk(name),
                None => error.to_string(),
            })?;
            (path, bytes)
        };
        if Archive::is_archive(&bytes) {
            return Self::of_archive(&bytes).map_err(|error| format!("{name}: {error}"));
        }
        let files = ScriptFiles::on_disk(Some(fetch)).with(&path, bytes);
        Ok(Self { path, files, archived: None })
    }

    /// The URL of the script.
    #[must_use]
    pub fn url(&self) -> String {
        format!("file://{}", self.path.display())
    }

    /// Reads the script in an archive.
    ///
    /// # Errors
    /// When it is not a valid archive.
    pub fn of_archive(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let Archive { script, options, environment, files } = Archive::read(bytes)?;
        let archived = Some(ArchivedOptions { options: options.to_string(), environment });
        Ok(Self { path: script, files: ScriptFiles::of_archive(files), archived })
    }
}
