//! The release archive, which `cargo binstall`, Homebrew and the GitHub Action unpack.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::contents::Contents;
use crate::tarball::{Entry, gzip, tar};

/// Writes the archive: one folder with everything.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let mut files = Vec::new();
    collect(&contents.folder, &contents.folder, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let name = name(contents);
    for file in &mut files {
        file.path = format!("{name}/{}", file.path);
    }
    let packed = gzip(&tar(&files, contents.epoch)?, contents.compression)?;
    crate::write(out, &format!("{name}.tar.gz"), &packed)
}

/// The name of the archive and of the folder in it.
pub fn name(contents: &Contents) -> String {
    contents.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn collect(folder: &Path, base: &Path, files: &mut Vec<Entry>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, base, files)?;
            continue;
        }
        let relative = path.strip_prefix(base)?.to_string_lossy().into_owned();
        let bytes = fs::read(&path)?;
        files.push(if relative == "gake" {
            Entry::program(&relative, bytes)
        } else {
            Entry::file(&relative, bytes)
        });
    }
    Ok(())
}
