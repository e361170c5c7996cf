//! Result files. No output overwrites another one or an input, whatever names lead to it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use gake_files::Access;

use crate::exit::Failure;

/// Creates a result file, or truncates it.
///
/// # Errors
/// When it cannot be written, with its name.
pub fn create(path: &Path) -> Result<File, Failure> {
    gake_files::create(path, Access::Mask).map_err(|error| {
        Failure::could_not(format!("{} cannot be written: {error}", path.display()))
    })
}

/// Whether a target names an existing script, or an archive of one, by its extension.
#[must_use]
pub fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    matches!(extension, Some("js" | "mjs" | "cjs" | "ts" | "tar")) && path.is_file()
}

/// Refuses two outputs that are one file, and outputs that are inputs. Call it before any output
/// is created. Devices, pipes and sockets may be shared.
///
/// # Errors
/// A usage error with the name.
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

/// The file behind a path.
#[derive(Debug, PartialEq, Eq)]
enum FileIdentity {
    /// An existing file: device and inode.
    Known(u64, u64),
    /// A file that does not exist yet: its folder and name.
    New(PathBuf, Box<OsStr>),
}

impl FileIdentity {
    /// `None` for files that outputs may share.
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

    /// `None` for files that do not exist, too.
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
        assert!(!refused(&[&at("new")], &[&at("new")]), "a missing file is not an input");
        assert!(!refused(&[&at("old"), &at("new"), &at("sub/new")], &[]));
        assert!(refused(&[Path::new("here"), Path::new("./here")], &[]));
        assert!(!refused(&[Path::new("/dev/null"), Path::new("/dev/null")], &[]));
    }
}
