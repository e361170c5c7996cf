//! Debian packages: installed when we may, named when we may not.

use anyhow::{Result, bail};

use gake_testkit::{Program, find, missing};

use crate::command;

/// Whether this process may install packages: root, and apt-get is there.
pub fn may_install() -> bool {
    let root = rustix::process::geteuid().is_root();
    root && find("apt-get").is_some()
}

/// Installs what is missing, or says in one sentence what to install.
pub fn ensure(purpose: &str, needs: &[Program]) -> Result<()> {
    let packages = missing(needs);
    if packages.is_empty() {
        return Ok(());
    }
    if !may_install() {
        bail!("{purpose} needs: sudo apt-get install {}", packages.join(" "));
    }
    println!("{purpose} needs {}: installing the Debian packages", packages.join(", "));
    // RUNLEVEL=1 keeps a package's service from being started.
    let env = [("DEBIAN_FRONTEND", "noninteractive"), ("RUNLEVEL", "1")];
    command::run("apt-get", &["update", "-qq"])?;
    let mut args = vec!["install", "-y", "-qq", "--no-install-recommends"];
    args.extend(&packages);
    command::run_with("apt-get", &args, &env)?;
    match missing(needs).as_slice() {
        [] => Ok(()),
        still => bail!("installed, and still not found: {}", still.join(", ")),
    }
}
