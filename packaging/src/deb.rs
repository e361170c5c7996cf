//! A package of Debian: an `ar` archive with two tar archives.
//!
//! The format is that of deb(5).

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::contents::Contents;
use crate::tarball::{Entry, tar, xz};
use crate::{SUMMARY, VERSION};

/// Writes the package.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let files = contents.installed()?;
    let size: usize = files.iter().map(|file| file.bytes.len()).sum();
    let machine = contents.target.machine.debian;
    let depends = if contents.target.is_static { "" } else { "Depends: libc6\n" };
    let control = format!(
        "Package: gake\nVersion: {VERSION}\nArchitecture: {machine}\nSection: web\n\
         Priority: optional\nMaintainer: the authors of gake\n{depends}Installed-Size: {}\n\
         Description: {SUMMARY}\n",
        size.div_ceil(1024)
    );
    let control = [Entry::file("control", control)];
    let pack = |files: &[Entry]| xz(&tar(files, contents.epoch)?, contents.compression);
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.xz", pack(&control)?),
        ("data.tar.xz", pack(&files)?),
    ];
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        // Name, instant, owner, group, mode and size, in columns.
        let head =
            format!("{name:<16}{:<12}0     0     100644  {:<10}`\n", contents.epoch, bytes.len());
        archive.extend(head.as_bytes());
        archive.extend(&bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    crate::write(out, &format!("gake_{VERSION}_{machine}.deb"), &archive)
}
