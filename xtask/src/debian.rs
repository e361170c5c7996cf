//! Debian packages: installed when we may, named when we may not.

use anyhow::{Result, bail};

use crate::command;

/// A program we need and the package it comes in.
pub struct Need {
    /// The program's name, or the path of another file.
    pub program: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
}

/// The packages whose programs are not here.
pub fn missing(needs: &[Need]) -> Vec<&'static str> {
    let absent = needs.iter().filter(|need| command::find(need.program).is_none());
    let mut packages: Vec<_> = absent.map(|need| need.package).collect();
    packages.dedup();
    packages
}

/// Whether this process may install packages: root, and apt-get is there.
pub fn may_install() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    root && command::find("apt-get").is_some()
}

/// Installs what is missing, or says in one sentence what to install.
pub fn ensure(purpose: &str, needs: &[Need]) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_absent_is_missing() {
        let needs = [
            Need { program: "sh", package: "dash" },
            Need { program: "no-such-program-anywhere", package: "nowhere" },
        ];
        assert_eq!(missing(&needs), ["nowhere"]);
    }
}
