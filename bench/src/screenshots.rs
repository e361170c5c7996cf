//! `cargo xtask pictures --pages`: pictures of the pages of `gake find` and `gake run`, as the README
//! shows them, by a search and a run of the built-in server, and a headless Chromium.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use xtask::{command, workspace};

/// The built-in server: four at once, 10 ms each on average.
const SERVER: &str = "serve --listen 127.0.0.1:0 --threads 4 --service exp:10ms";
/// The pictures, and the commands that write their pages: `URL` and `PAGE` are replaced.
const PAGES: [(&str, &str); 2] = [
    ("find", "find URL/fast --slo p99<150ms --budget 60s --html PAGE --quiet"),
    ("report", "run URL/fast -r 250 -d 30s --slo p99<150ms --slo errors<0.1% --html PAGE --quiet"),
];
const WINDOW: &str = "--window-size=1280,1000";
/// The hash of the page whose pictures were taken.
const TAKEN_OF: &str = "docs/pictures/page.sha256";
/// The page that the reports are made of.
const PAGE: &str = "crates/gake-report/src/html/page.html";

/// Takes the pictures.
pub fn take() -> Result<()> {
    let chromium = gake_testkit::find("chromium").context("apt-get install chromium")?;
    command::run("cargo", &["build", "-p", "gake"])?;
    let gake = workspace::target_dir()?.join("debug/gake");
    let mut server = Command::new(&gake)
        .args(SERVER.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let taken = url(&mut server).and_then(|url| {
        PAGES.iter().try_for_each(|(name, args)| picture(&gake, &chromium, &url, name, args))
    });
    server.kill()?;
    server.wait()?;
    taken?;
    Ok(fs::write(workspace::root().join(TAKEN_OF), format!("{}\n", hash()?))?)
}

/// The first line of the server's output.
fn url(server: &mut Child) -> Result<String> {
    let output = server.stdout.take().context("the server has no output")?;
    let line = BufReader::new(output).lines().next().context("the server ended")??;
    Ok(line.trim().to_owned())
}

/// Writes a page and takes its picture.
fn picture(gake: &Path, chromium: &Path, url: &str, name: &str, args: &str) -> Result<()> {
    let page = workspace::target_dir()?.join(format!("{name}.html"));
    let path = page.display().to_string();
    let args = args.split(' ').map(|word| word.replace("URL", url).replace("PAGE", &path));
    run(Command::new(gake).args(args))?;
    let shot = target(name);
    run(Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", WINDOW])
        .arg(format!("--screenshot={}", shot.display()))
        .arg(format!("file://{path}")))?;
    println!("{}", shot.display());
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        bail!("{command:?} failed ({status})");
    }
    Ok(())
}

fn target(name: &str) -> PathBuf {
    workspace::root().join(format!("docs/pictures/{name}.png"))
}

fn hash() -> Result<String> {
    let page = fs::read(workspace::root().join(PAGE)).context(PAGE)?;
    Ok(Sha256::digest(page).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_shows_pictures_of_the_page_that_is() {
        let readme = fs::read_to_string(workspace::root().join("README.md")).unwrap();
        for (name, _) in PAGES {
            assert!(fs::read(target(name)).unwrap().starts_with(b"\x89PNG"), "{name}");
            assert!(readme.contains(&format!("](docs/pictures/{name}.png)")), "{name}");
        }
        let taken = fs::read_to_string(workspace::root().join(TAKEN_OF)).unwrap();
        assert!(taken.trim() == hash().unwrap(), "run `cargo xtask pictures --pages`");
    }
}
