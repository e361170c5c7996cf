//! `gake run` against servers that others wrote: a finding names what really limits each, and
//! once that is cured the rate rises and the next limit is named.
//!
//! Handlers sleep, so the throughput of T threads follows from mathematics on any machine: never
//! more than T responses per service time, and hardly fewer. One server is loaded at a time.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too

#[path = "../common/mod.rs"]
mod support;

mod browser;
mod causes;
mod dashboards;
mod database;
mod experiments;
mod extensions;
mod golang;
mod group;
mod k6_dashboard;
mod nginx;
mod postgres;
mod sinks;
mod slow;
mod spring;
mod tomcat;
mod users;

use std::path::{Path, PathBuf};

/// A folder of `tests/peers`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}

/// Fetches what the `pom.xml` of a peer names.
fn copy_dependencies(peer: &str, jars: &Path) {
    let fetched = support::command("mvn")
        .args(["--quiet", "--batch-mode"])
        .arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies")
        .arg(format!("-DoutputDirectory={}", jars.display()))
        .current_dir(source(peer))
        .output()
        .unwrap();
    assert!(fetched.status.success(), "{fetched:?}");
}
