//! Where a script comes from: a file, standard input, or an archive.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use gake_k6::archive::{Archive, ArchiveError};
use gake_k6::files::ScriptFiles;
use gake_run::script::fetcher;

/// The name of a script from standard input.
pub(super) const STDIN: &str = "/-";

/// A script before it is loaded.
pub(super) struct ScriptSource {
    /// Its absolute path.
    pub(super) path: PathBuf,
    /// What it may read.
    pub(super) files: ScriptFiles,
    /// What its archive says, if it comes from one.
    pub(super) archived: Option<Archived>,
}

/// What an archive says of its script.
pub(super) struct Archived {
    /// Its options, as JSON.
    pub(super) options: String,
    /// What was added to its environment.
    pub(super) environment: BTreeMap<String, String>,
}

impl ScriptSource {
    /// Reads the script or archive of this name; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn read(name: &str) -> Result<Self, String> {
        let cannot = |error: std::io::Error| {
            format!("The moduleSpecifier \"{name}\" couldn't be found on local disk: {error}")
        };
        let (path, bytes) = if name == "-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| format!("the script on stdin cannot be read: {error}"))?;
            (PathBuf::from(STDIN), bytes)
        } else {
            let path = std::path::absolute(name).map_err(cannot)?;
            let bytes = std::fs::read(&path).map_err(cannot)?;
            (path, bytes)
        };
        if Archive::is_archive(&bytes) {
            return Self::of_archive(&bytes).map_err(|error| format!("{name}: {error}"));
        }
        let files = ScriptFiles::on_disk(Some(fetcher(module_folder()))).with(&path, bytes);
        Ok(Self { path, files, archived: None })
    }

    /// Reads an archive.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of_archive(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let Archive { script, options, environment, files } = Archive::read(bytes)?;
        let archived = Some(Archived { options: options.to_string(), environment });
        Ok(Self { path: script, files: ScriptFiles::of_archive(files), archived })
    }
}

/// Where modules from the network are kept: below `XDG_CACHE_HOME`, or `.cache` at home.
fn module_folder() -> Option<PathBuf> {
    // A relative path is to be ignored, by the specification of base directories.
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("gake/modules"))
}
