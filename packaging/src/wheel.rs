//! A wheel: `pip install gake` and `uvx gake` put the binary on the path.
//!
//! The format is that of <https://packaging.python.org/specifications/binary-distribution-format>.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::contents::Contents;
use crate::tarball::Entry;
use crate::target::Target;
use crate::{LICENSE, SUMMARY, VERSION};

/// Writes the wheel.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let tag = format!("py3-none-{}", platforms(&contents.target));
    let info = format!("gake-{VERSION}.dist-info");
    let metadata = format!(
        "Metadata-Version: 2.4\nName: gake\nVersion: {VERSION}\nSummary: {SUMMARY}\n\
         License-Expression: {LICENSE}\nLicense-File: LICENSE\nRequires-Python: >=3.7\n"
    );
    // One line for each tag that the file's name stands for.
    let tags: String = platforms(&contents.target)
        .split('.')
        .map(|platform| format!("Tag: py3-none-{platform}\n"))
        .collect();
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: gake-packaging {VERSION}\nRoot-Is-Purelib: false\n{tags}"
    );
    let mut files = vec![
        Entry::program(&format!("gake-{VERSION}.data/scripts/gake"), contents.read("gake")?),
        Entry::file(&format!("{info}/licenses/LICENSE"), contents.read("LICENSE")?),
        Entry::file(&format!("{info}/METADATA"), metadata),
        Entry::file(&format!("{info}/WHEEL"), wheel),
    ];
    let record = format!("{info}/RECORD");
    let mut lines: String = files.iter().map(record_line).collect();
    lines += &format!("{record},,\n");
    files.push(Entry::file(&record, lines));
    crate::write(out, &format!("gake-{VERSION}-{tag}.whl"), &zip(&files, contents.compression)?)
}

/// The platforms that pip may install the wheel on. A static binary needs no C library, so it runs
/// on all of them; one that is not may need the library of this machine, and is no release.
fn platforms(target: &Target) -> String {
    let machine = target.machine.kernel;
    if target.is_static {
        format!("manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}")
    } else {
        format!("linux_{machine}")
    }
}

fn record_line(file: &Entry) -> String {
    let sum = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
    format!("{},sha256={sum},{}\n", file.path, file.bytes.len())
}

fn zip(files: &[Entry], level: u32) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    // The format's first instant: it has no time zone, so the commit's would be a matter of taste.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(level.into()))
        .last_modified_time(zip::DateTime::default());
    for file in files {
        archive.start_file(file.path.clone(), options.unix_permissions(file.mode))?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
