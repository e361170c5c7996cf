//! A package of RPM, without a signature: a distributor signs it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rpm::{BuildConfig, CompressionWithLevel, FileOptions, PackageBuilder};

use crate::contents::Contents;
use crate::{LICENSE, SUMMARY, VERSION};

/// Writes the package.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let machine = contents.target.machine.kernel;
    let config = BuildConfig::v4()
        .source_date(contents.epoch)
        .compression(CompressionWithLevel::Xz(contents.compression));
    let mut builder = PackageBuilder::new("gake", VERSION, LICENSE, machine, SUMMARY);
    builder.using_config(config).release("1").description(SUMMARY).build_host("localhost");
    for file in contents.installed()? {
        // Red Hat's zsh looks elsewhere.
        let path = file.path.replace("zsh/vendor-completions", "zsh/site-functions");
        let options = FileOptions::new(format!("/{path}")).permissions(file.mode as u16);
        builder.with_file_contents(file.bytes, options)?;
    }
    let mut bytes = Vec::new();
    builder.build()?.write(&mut bytes)?;
    crate::write(out, &format!("gake-{VERSION}-1.{machine}.rpm"), &bytes)
}
