//! What most formats are made of: tar, gzip, xz and SHA-256, without a trace of the machine that packs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use liblzma::write::XzEncoder;
use sha2::{Digest, Sha256};

/// A file of a package, or an empty folder.
pub struct Entry {
    /// Relative, with `/`; that of a folder ends with one.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl Entry {
    /// A file that everyone may read.
    pub fn file(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), mode: 0o644, bytes: bytes.into() }
    }

    /// A file that everyone may run.
    pub fn program(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, ..Self::file(path, bytes) }
    }

    /// An empty folder.
    pub fn folder(path: &str, mode: u32) -> Self {
        Self { path: format!("{path}/"), mode, bytes: Vec::new() }
    }
}

/// A tar archive of the files in their order, each folder before its first file, all of root and
/// of one instant.
///
/// # Errors
/// When a path is too long for the format.
pub fn tar(files: &[Entry], epoch: u32) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    for file in files {
        let parents: Vec<_> = Path::new(&file.path).ancestors().skip(1).collect();
        for parent in parents.into_iter().rev().filter(|parent| *parent != Path::new("")) {
            if folders.insert(parent.to_owned()) {
                let path = format!("{}/", parent.display());
                let mut header = header(tar::EntryType::Directory, 0o755, 0, epoch);
                archive.append_data(&mut header, path, &[][..])?;
            }
        }
        let kind = if file.path.ends_with('/') {
            tar::EntryType::Directory
        } else {
            tar::EntryType::Regular
        };
        let mut header = header(kind, file.mode, file.bytes.len(), epoch);
        archive.append_data(&mut header, &file.path, &file.bytes[..])?;
    }
    Ok(archive.into_inner()?)
}

fn header(kind: tar::EntryType, mode: u32, size: usize, epoch: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size as u64);
    header.set_mtime(epoch.into());
    header
}

/// Compresses without a name and an instant of its own.
///
/// # Errors
/// None that memory does not cause.
pub fn gzip(bytes: &[u8], level: u32) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(level));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Compresses to two thirds of what gzip leaves of a program.
///
/// # Errors
/// None that memory does not cause.
pub fn xz(bytes: &[u8], level: u32) -> Result<Vec<u8>> {
    let mut encoder = XzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The SHA-256 sum in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
