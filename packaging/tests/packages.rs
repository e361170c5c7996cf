//! Each package, made of the binary that cargo has built, is installed by its own client and run.

#![allow(clippy::unwrap_used)] // the helpers are tests too

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gake_packaging::contents::Contents;
use gake_packaging::target::Target;
use gake_packaging::{deb, formula, image, install, npm, redhat, tarball, wheel};
use xtask::workspace;

mod common;
use common::{binary, contents};

/// Asserts that what was installed is gake: it loads its own server.
fn runs(gake: &mut Command) {
    let out = gake.args(["run", "demo", "-n", "50", "-c", "2"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("50 sent = 50 ok + 0 failed"), "{gake:?}: {}: {text}{error}", out.status);
}

#[test]
fn pip_installs_the_wheel() {
    let dir = tempfile::tempdir().unwrap();
    let wheel = wheel::write(&contents(dir.path()), dir.path()).unwrap();
    runs(&mut install::wheel(&wheel, &dir.path().join("venv")).unwrap());
}

#[test]
fn npm_installs_the_launcher_and_the_binary() {
    let dir = tempfile::tempdir().unwrap();
    let contents = contents(dir.path());
    let main = npm::write_main(&contents, dir.path()).unwrap();
    let platform = npm::write_platform(&contents, dir.path()).unwrap();
    let gake = || install::npm(&[&main, &platform], &dir.path().join("prefix")).unwrap();
    runs(&mut gake());
    // The exit code is gake's.
    let wrong = gake().args(["run", "--no-such-flag"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    ends_with_its_launcher(&mut gake());
    let mut alone = install::npm(&[&main], &dir.path().join("alone")).unwrap();
    let out = alone.arg("--version").output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1));
    assert!(error.contains("gake-linux-x64 is not installed") || cfg!(not(target_arch = "x86_64")));
}

/// A signal to the launcher ends the server that it has started, which then prints its counts.
fn ends_with_its_launcher(gake: &mut Command) {
    gake.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut launcher = gake.spawn().unwrap();
    let mut output = BufReader::new(launcher.stdout.take().unwrap());
    let mut text = String::new();
    output.read_line(&mut text).unwrap();
    let killed = Command::new("kill").arg(launcher.id().to_string()).status().unwrap();
    assert!(killed.success());
    output.read_to_string(&mut text).unwrap();
    assert!(text.contains("requests     0"), "{text}");
    assert_eq!(launcher.wait().unwrap().code(), Some(0));
}

#[test]
fn dpkg_installs_the_package() {
    let dir = tempfile::tempdir().unwrap();
    let package = deb::write(&contents(dir.path()), dir.path()).unwrap();
    let root = dir.path().join("root");
    runs(&mut install::deb(&package, &root).unwrap());
    for file in [
        "man/man1/gake-run.1.gz",
        "bash-completion/completions/gake",
        "zsh/vendor-completions/_gake",
        "doc/gake/copyright",
    ] {
        assert!(root.join("usr/share").join(file).is_file(), "{file}");
    }
}

#[test]
fn rpm_installs_the_package() {
    let dir = tempfile::tempdir().unwrap();
    let package = redhat::write(&contents(dir.path()), dir.path()).unwrap();
    let root = dir.path().join("root");
    runs(&mut install::rpm(&package, &root).unwrap());
    assert!(root.join("usr/share/zsh/site-functions/_gake").is_file());
}

#[test]
fn the_image_runs_as_an_unprivileged_user() {
    let dir = tempfile::tempdir().unwrap();
    let archive = image::write(&contents(dir.path()), dir.path()).unwrap();
    let into = dir.path().join("image");
    let mut gake = install::image(&archive, &into).unwrap();
    copy_libraries(&into.join("root"));
    runs(&mut gake);
}

/// The image is made for a static binary; the one of the tests needs the libraries of this machine.
fn copy_libraries(root: &Path) {
    let out = Command::new("ldd").arg(binary()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    for library in text.split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(library, to).unwrap();
    }
}

/// All packages of a small program that stands for gake.
fn all(dir: &Path) -> Vec<PathBuf> {
    let program = dir.join("program");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let target = Target::parse(&format!("{}-unknown-linux-musl", std::env::consts::ARCH)).unwrap();
    let contents = Contents::lay_out(&program, target, 1_700_000_000, 9, dir).unwrap();
    let mut files = gake_packaging::packages(&contents, dir).unwrap();
    files.push(formula::write(&contents, "https://example.org/gake", dir).unwrap());
    files
}

#[test]
fn the_same_binary_and_commit_give_the_same_bytes() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [a, b] = dirs.each_ref().map(|dir| all(dir.path()));
    assert_eq!(a.len(), 9);
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a.file_name(), b.file_name());
        assert!(fs::read(a).unwrap() == fs::read(b).unwrap(), "{a:?}");
    }
}

#[test]
fn the_formula_has_the_sum_of_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let files = all(dir.path());
    let formula = fs::read_to_string(files.last().unwrap()).unwrap();
    let archive = fs::read(&files[0]).unwrap();
    assert!(formula.contains(&tarball::sha256(&archive)), "{formula}");
    let name = files[0].file_name().unwrap().to_string_lossy();
    let url =
        format!("https://example.org/gake/releases/download/v{}/{name}", gake_packaging::VERSION);
    assert!(formula.contains(&url), "{formula}");
    assert_eq!(binstall(&name), url);
}

/// Where `cargo binstall` looks for an archive, by the manifest of gake.
fn binstall(archive: &str) -> String {
    let manifest = fs::read_to_string(workspace::root().join("crates/gake/Cargo.toml")).unwrap();
    let url = manifest.lines().find_map(|line| line.strip_prefix("pkg-url = ")).unwrap();
    let version = gake_packaging::VERSION;
    let target = archive.strip_prefix(&format!("gake-{version}-")).unwrap();
    let values = [
        ("{ repo }", "https://example.org/gake"),
        ("{ name }", "gake"),
        ("{ version }", version),
        ("{ target }", target.strip_suffix(".tar.gz").unwrap()),
    ];
    let url = url.trim_matches('"').to_owned();
    values.iter().fold(url, |url, (name, value)| url.replace(name, value))
}
