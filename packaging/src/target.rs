//! A target by Rust's name, and what each packager calls its processor.

use anyhow::{Result, bail};

/// The target of a release that runs on any Linux.
pub const DEFAULT: &str = "x86_64-unknown-linux-musl";

/// A target of Linux.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Rust's name: `x86_64-unknown-linux-musl`.
    pub triple: String,
    /// The processor's names.
    pub machine: &'static Machine,
    /// Whether the binary needs no C library.
    pub is_static: bool,
}

/// A processor under its names.
#[derive(Debug, PartialEq)]
pub struct Machine {
    /// The kernel's, Rust's, Python's and RPM's.
    pub kernel: &'static str,
    /// Debian's, Go's and that of container images.
    pub debian: &'static str,
    /// Node.js's.
    pub node: &'static str,
}

/// The processors that are supported.
pub const MACHINES: [Machine; 2] = [
    Machine { kernel: "x86_64", debian: "amd64", node: "x64" },
    Machine { kernel: "aarch64", debian: "arm64", node: "arm64" },
];

impl Target {
    /// Reads Rust's name of a target.
    ///
    /// # Errors
    /// When no packages exist for it.
    pub fn parse(triple: &str) -> Result<Self> {
        let machine = MACHINES.iter().find(|machine| {
            let libraries = ["musl", "gnu"];
            libraries.iter().any(|c| triple == format!("{}-unknown-linux-{c}", machine.kernel))
        });
        let Some(machine) = machine else {
            bail!("no packages exist for {triple}: x86_64 and aarch64 have them, on Linux");
        };
        Ok(Self { triple: triple.to_owned(), machine, is_static: triple.ends_with("musl") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_the_names_of_each_packager() {
        let arm = Target::parse("aarch64-unknown-linux-musl").unwrap();
        assert_eq!((arm.machine.debian, arm.machine.node, arm.is_static), ("arm64", "arm64", true));
        assert!(!Target::parse("x86_64-unknown-linux-gnu").unwrap().is_static);
        for other in ["x86_64-apple-darwin", "riscv64gc-unknown-linux-musl", "x86_64"] {
            assert!(Target::parse(other).is_err(), "{other}");
        }
    }
}
