//! `--check`: installs every package from its file and runs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use gake_testkit::Program;

use crate::contents::Contents;
use crate::{chart, install};

/// What the checks need beside npm and Python.
const NEEDS: [Program; 5] = [
    Program { name: "python3", package: "python3-venv" },
    Program { name: "npm", package: "npm" },
    Program { name: "dpkg", package: "dpkg" },
    Program { name: "rpm", package: "rpm" },
    Program { name: "unshare", package: "util-linux" },
];

/// Installs and runs all packages, and prints each one's size and times.
pub fn all(contents: &Contents, files: &[PathBuf], out: &Path) -> Result<()> {
    if contents.target.machine.kernel != std::env::consts::ARCH {
        bail!("packages for {} cannot run here", contents.target.triple);
    }
    xtask::debian::ensure("the check of the packages", &NEEDS)?;
    let scratch = tempfile::tempdir_in(out)?;
    let find = |ending: &str| {
        let named = |file: &&PathBuf| file.to_string_lossy().ends_with(ending);
        files.iter().find(named).with_context(|| format!("no package ends with {ending}"))
    };
    let platform = find(&format!("{}-{}.tgz", contents.target.machine.node, crate::VERSION))?;
    let main = find(&format!("/gake-{}.tgz", crate::VERSION))?;
    println!("package   download   install   first result");
    let show = |name: &str, file: &Path, install: &dyn Fn(&Path) -> Result<Command>| {
        let started = Instant::now();
        let mut gake = install(&scratch.path().join(name))?;
        let installed = started.elapsed().as_secs_f64();
        demo(&mut gake).with_context(|| format!("installed from {}", file.display()))?;
        let first = started.elapsed().as_secs_f64();
        let size = file.metadata()?.len() as f64 / 1e6;
        println!("{name:8} {size:8.1} MB {installed:7.1} s {first:12.1} s");
        anyhow::Ok(())
    };
    let (wheel, deb, rpm) = (find(".whl")?, find(".deb")?, find(".rpm")?);
    show("wheel", wheel, &|into| install::wheel(wheel, into))?;
    show("npm", platform, &|into| install::npm(&[main, platform], into))?;
    show("deb", deb, &|into| install::deb(deb, into))?;
    show("rpm", rpm, &|into| install::rpm(rpm, into))?;
    if let Ok(image) = find(".oci.tar") {
        show("image", image, &|into| install::image(image, into))?;
    }
    chart::check(&contents.folder.join("gake"), scratch.path())
}

/// `gake run demo -d 1s` by what was installed.
pub fn demo(gake: &mut Command) -> Result<()> {
    let out = gake.args(["run", "demo", "-d", "1s"]).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    // 3: the measurement is not valid, as on a machine that is busy.
    if !matches!(out.status.code(), Some(0 | 3)) || !text.contains(" ok + 0 failed") {
        bail!("{:?} failed ({}): {text}{}", gake, out.status, String::from_utf8_lossy(&out.stderr));
    }
    Ok(())
}
