//! What the tests pack: the binary that cargo has built, quickly compressed.

use std::path::{Path, PathBuf};
use std::process::Command;

use gake_packaging::contents::Contents;
use gake_packaging::target::Target;

/// The binary beside the tests.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let gake = test.ancestors().nth(2).unwrap().join("gake");
    assert!(gake.is_file(), "{} is missing: cargo build -p gake", gake.display());
    gake
}

/// The contents of a release with the binary, without its symbols where `strip` is installed.
pub fn contents(dir: &Path) -> Contents {
    let stripped = dir.join("stripped");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(binary()).status();
    let binary = if strip.is_ok_and(|status| status.success()) { stripped } else { binary() };
    let target = Target::parse(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).unwrap();
    Contents::lay_out(&binary, target, 1_700_000_000, 1, dir).unwrap()
}
