//! Files of results: created, and which names mean one file, so that no output is written over
//! another, or over what is read.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use gake_files::Access;

use crate::exit::Failure;

/// Creates the file of a result.
///
/// # Errors
/// That it cannot be written, with its name.
pub fn create(path: &Path) -> Result<File, Failure> {
    gake_files::create(path, Access::Mask).map_err(|error| {
        Failure::could_not(format!("{} cannot be written: {error}", path.display()))
    })
}

/// Whether a target names a script that is there, or an archive of one, by the ending of its name.
#[must_use]
pub fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    matches!(extension, Some("js" | "mjs" | "cjs" | "ts" | "tar")) && path.is_file()
}

/// Refuses two outputs that are one file, and outputs that are inputs. Call it before any is
/// created. Devices and pipes take as many as want them.
///
/// # Errors
/// Bad usage, with the name.
pub fn distinct<'a>(
    outputs: impl IntoIterator<Item = &'a Path>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let inputs: Vec<_> = inputs.into_iter().filter_map(FileIdentity::of_input).collect();
    let mut taken: Vec<FileIdentity> = Vec::new();
    for output in outputs {
        let Some(file) = FileIdentity::of(output) else { continue };
        let path = output.display();
        if inputs.contains(&file) {
            return Err(Failure::usage(format!("{path} is read and cannot be written to as well")));
        }
        if taken.contains(&file) {
            return Err(Failure::usage(format!("two outputs cannot be one file: {path}")));
        }
        taken.push(file);
    }
    Ok(())
}

/// What a name leads to.
#[derive(Debug, PartialEq, Eq)]
enum FileIdentity {
    /// A file: its device and number there, whatever the names and links that lead to it.
    Known(u64, u64),
    /// None yet: the folder it would be in, and its name.
    New(PathBuf, Box<OsStr>),
}

impl FileIdentity {
    /// `None` where any number of outputs may go.
    fn of(path: &Path) -> Option<Self> {
        let Ok(metadata) = path.metadata() else {
            let folder = match path.parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            };
            let name = path.file_name()?.into();
            return Some(Self::New(folder.canonicalize().unwrap_or_else(|_| folder.into()), name));
        };
        let kind = metadata.file_type();
        let shared = kind.is_char_device() || kind.is_fifo() || kind.is_socket();
        (!shared).then(|| Self::Known(metadata.dev(), metadata.ino()))
    }

    /// What is read exists.
    fn of_input(path: &Path) -> Option<Self> {
        Self::of(path).filter(|file| matches!(file, Self::Known(..)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(outputs: &[&Path], inputs: &[&Path]) -> bool {
        let result = distinct(outputs.iter().copied(), inputs.iter().copied());
        result.is_err_and(|failure| matches!(failure, Failure::Usage(_)))
    }

    #[test]
    fn one_file_has_many_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("old"), "").unwrap();
        fs::hard_link(at("old"), at("hard")).unwrap();
        symlink(at("old"), at("soft")).unwrap();
        symlink(at("sub"), at("folder")).unwrap();
        for (a, b) in [
            ("old", "old"),
            ("old", "sub/../old"),
            ("old", "hard"),
            ("old", "soft"),
            ("new", "./new"),
            ("sub/new", "folder/new"),
        ] {
            assert!(refused(&[&at(a), &at("other"), &at(b)], &[]), "{a} {b}");
        }
        assert!(refused(&[&at("soft")], &[&at("old")]));
        assert!(!refused(&[&at("new")], &[&at("new")]), "what is not there cannot be read");
        assert!(!refused(&[&at("old"), &at("new"), &at("sub/new")], &[]));
        assert!(refused(&[Path::new("here"), Path::new("./here")], &[]));
        assert!(!refused(&[Path::new("/dev/null"), Path::new("/dev/null")], &[]));
    }
}
