//! Creating files safely: never through a symbolic link, never overwriting other hard links, and
//! invisibly to readers of an old file.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Attempts to find a name for a temporary file.
const TRIES: usize = 16;

/// Permissions of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only its owner (0600).
    Owner,
    /// As the process's umask allows (0666).
    Mask,
}

impl Access {
    fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Mask => 0o666,
        }
    }
}

/// Creates a file, replacing one at `path`. Pipes, terminals, other devices, and open files in
/// `/dev` and `/proc` are opened instead.
///
/// # Errors
/// When the folder is not writable, `path` is a symbolic link, which another user may have created,
/// or it is another user's pipe or device.
pub fn create(path: &Path, access: Access) -> io::Result<File> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return new(path, access),
        Err(error) => return Err(error),
        Ok(metadata) => metadata,
    };
    if path.starts_with("/dev") || path.starts_with("/proc") {
        // The open file may have content.
        return OpenOptions::new().append(true).open(path);
    }
    let kind_of = kind.file_type();
    if kind_of.is_symlink() {
        return Err(io::Error::other("it is a symbolic link; use the path of its target"));
    }
    if kind_of.is_fifo() || kind_of.is_char_device() || kind_of.is_socket() {
        let ours = [rustix::process::geteuid().as_raw(), 0].contains(&kind.uid());
        return if ours {
            let no_follow = OFlags::NOFOLLOW.bits() as i32;
            OpenOptions::new().write(true).custom_flags(no_follow).open(path)
        } else {
            Err(io::Error::other("it is another user's pipe or device"))
        };
    }
    let (temporary, file) = match temporary(path, access) {
        // The file may be ours in a folder that is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return truncated(path, access);
        }
        other => other?,
    };
    match fs::rename(&temporary, path) {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = fs::remove_file(temporary);
            Err(error)
        }
    }
}

/// Creates a folder, and those above it that do not exist, for its owner only (0700).
///
/// # Errors
/// When it cannot be created, or is something else.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file for appending, or creates it. Concurrent writers do not overwrite each other. Links
/// and special files are treated as by [`create`].
///
/// # Errors
/// As [`create`]; or when the file is another user's, or has several hard links.
pub fn append(path: &Path, access: Access) -> io::Result<File> {
    let is_elsewhere = path.starts_with("/dev") || path.starts_with("/proc");
    match fs::symlink_metadata(path) {
        _ if is_elsewhere => create(path, access),
        Ok(kind) if kind.is_file() => ours(OpenOptions::new().append(true), path, access),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut options = OpenOptions::new();
            match options.append(true).create_new(true).mode(access.mode()).open(path) {
                // Created concurrently.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    ours(OpenOptions::new().append(true), path, access)
                }
                created => created,
            }
        }
        _ => create(path, access),
    }
}

/// Writes a file and atomically replaces `path`, or a link there, with it.
///
/// # Errors
/// When the folder is not writable, or full; the old file stays.
pub fn replace(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let (temporary, mut file) = temporary(path, access)?;
    let written = write(&mut file).and_then(|()| file.sync_all());
    let done = written.and_then(|()| fs::rename(&temporary, path));
    if done.is_err() {
        let _ = fs::remove_file(temporary);
    }
    done
}

/// A new file; fails if there is anything, even a dangling link.
fn new(path: &Path, access: Access) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(access.mode()).open(path)
}

/// A new file in the same folder, with an unpredictable name.
fn temporary(path: &Path, access: Access) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let draws = RandomState::new();
    for number in 0..TRIES {
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{:016x}", draws.hash_one(number)));
        let temporary = path.with_file_name(temporary);
        match new(&temporary, access) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Ok(file) => return Ok((temporary, file)),
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn truncated(path: &Path, access: Access) -> io::Result<File> {
    let file = ours(OpenOptions::new().write(true), path, access)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens a file that is ours and has no other hard link.
fn ours(options: &mut OpenOptions, path: &Path, access: Access) -> io::Result<File> {
    let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    if metadata.nlink() > 1 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if access == Access::Owner {
        file.set_permissions(fs::Permissions::from_mode(access.mode()))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn new_folders_are_their_owners() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        create_folder(&inner).unwrap();
        create_folder(&inner).unwrap();
        assert_eq!([mode(&folder.path().join("a")), mode(&inner)], [0o700; 2]);
    }

    #[test]
    fn a_new_file_belongs_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        create(&path, Access::Owner).unwrap().write_all(b"new").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"new".to_vec()));
        let shared = folder.path().join("g");
        create(&shared, Access::Mask).unwrap();
        assert_ne!(mode(&shared) & 0o400, 0);
    }

    #[test]
    fn a_replaced_file_is_unchanged_for_its_readers() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["f", "other"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::hard_link(&path, &other).unwrap();
        let reader = File::open(&path).unwrap();
        create(&path, Access::Owner).unwrap().write_all(b"secret").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"secret".to_vec()));
        assert_eq!(io::read_to_string(reader).unwrap(), "old");
        assert_eq!(fs::read(other).unwrap(), b"old");
        assert_eq!(names(folder.path()).len(), 2, "no temporary file is left");
    }

    #[test]
    fn appending_keeps_the_content() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other, link] = ["f", "other", "link"].map(|name| folder.path().join(name));
        append(&path, Access::Owner).unwrap().write_all(b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        append(&path, Access::Owner).unwrap().write_all(b" new").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"old new".to_vec()));
        symlink(&path, &link).unwrap();
        assert!(append(&link, Access::Owner).is_err());
        fs::hard_link(&path, &other).unwrap();
        assert!(append(&path, Access::Owner).is_err());
    }

    #[test]
    fn concurrent_appends_do_not_overwrite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        // The first one creates it.
        let mut writers = [(); 2].map(|()| append(&path, Access::Owner).unwrap());
        for text in ["a", "b"] {
            for writer in &mut writers {
                writer.write_all(text.as_bytes()).unwrap();
            }
        }
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"aabb".to_vec()));
        let nowhere = folder.path().join("nowhere");
        symlink(folder.path().join("none"), &nowhere).unwrap();
        assert!(append(&nowhere, Access::Owner).is_err());
        assert!(!folder.path().join("none").exists());
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [link, target, nowhere] =
            ["link", "target", "nowhere"].map(|name| folder.path().join(name));
        fs::write(&target, "kept").unwrap();
        symlink(&target, &link).unwrap();
        symlink(folder.path().join("none"), &nowhere).unwrap();
        for path in [&link, &nowhere] {
            let error = create(path, Access::Owner).unwrap_err();
            assert!(error.to_string().contains("symbolic link"), "{error}");
        }
        assert_eq!(fs::read(&target).unwrap(), b"kept");
        assert!(!folder.path().join("none").exists());
        replace(&link, Access::Owner, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"kept");
        assert_eq!((mode(&link), fs::read(&link).unwrap()), (0o600, b"new".to_vec()));
        assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_failure_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        let failed = replace(&path, Access::Owner, |_| Err(io::Error::other("full")));
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["f"]);
        assert!(create(folder.path(), Access::Owner).is_err());
        assert!(create(&folder.path().join("no/f"), Access::Owner).is_err());
    }

    #[test]
    fn devices_and_open_files_are_not_replaced() {
        create(Path::new("/dev/null"), Access::Owner).unwrap().write_all(b"x").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let open = File::create(&path).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let name = PathBuf::from(format!("/proc/self/fd/{number}"));
        create(&name, Access::Owner).unwrap().write_all(b"x").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }
}
