//! What a release holds: the binary, its manual pages, completions, documentation and licence.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::workspace;

use crate::tarball::{Entry, gzip};
use crate::target::Target;
use crate::{VERSION, output};

/// Pages beside that of `gake` itself.
const PAGES: &str = "run find watch serve shadow report compare history doctor experiment convert \
     dashboard agent fleet as schema completions";

/// Files of the repository that the archive holds.
const FILES: [&str; 4] = ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"];

/// A folder with the contents of a release, and what packing them needs.
pub struct Contents {
    /// The folder; its name is that of the archive.
    pub folder: PathBuf,
    /// What the binary runs on.
    pub target: Target,
    /// The instant of all files, in Unix seconds.
    pub epoch: u32,
    /// The level of gzip and xz.
    pub compression: u32,
}

impl Contents {
    /// Puts everything into an empty folder in `out`.
    ///
    /// # Errors
    /// When the binary cannot be run or a file cannot be copied.
    pub fn lay_out(
        binary: &Path,
        target: Target,
        epoch: u32,
        compression: u32,
        out: &Path,
    ) -> Result<Self> {
        let folder = out.join(format!("gake-{VERSION}-{}", target.triple));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        for part in ["man", "completions", "docs/cliffs"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let gake = folder.join("gake");
        fs::copy(binary, &gake)
            .with_context(|| format!("{} cannot be copied", binary.display()))?;
        print_pages(&gake, &target, &folder)?;
        let root = workspace::root();
        for file in FILES {
            fs::copy(root.join(file), folder.join(file)).with_context(|| file.to_owned())?;
        }
        for (part, endings) in [("docs", &["md", "json"][..]), ("docs/cliffs", &["svg", "png"])] {
            for entry in fs::read_dir(root.join(part))? {
                let path = entry?.path();
                let ending = path.extension().and_then(|ending| ending.to_str());
                if ending.is_some_and(|ending| endings.contains(&ending)) {
                    let name = path.file_name().context("a file has no name")?;
                    fs::copy(&path, folder.join(part).join(name))?;
                }
            }
        }
        Ok(Self { folder, target, epoch, compression })
    }

    /// A file of the folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(self.folder.join(path)).with_context(|| path.to_owned())
    }

    /// The files as a distribution of Linux installs them, in order of their paths.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn installed(&self) -> Result<Vec<Entry>> {
        let mut files = vec![Entry::program("usr/bin/gake", self.read("gake")?)];
        for (path, from) in [
            ("usr/share/bash-completion/completions/gake", "completions/gake.bash"),
            ("usr/share/fish/vendor_completions.d/gake.fish", "completions/gake.fish"),
            ("usr/share/zsh/vendor-completions/_gake", "completions/_gake"),
        ] {
            files.push(Entry::file(path, self.read(from)?));
        }
        for page in fs::read_dir(self.folder.join("man"))? {
            let name = page?.file_name().to_string_lossy().into_owned();
            let page = gzip(&self.read(&format!("man/{name}"))?, self.compression)?;
            files.push(Entry::file(&format!("usr/share/man/man1/{name}.gz"), page));
        }
        files.push(Entry::file("usr/share/doc/gake/copyright", self.read("LICENSE")?));
        let changes = gzip(&self.read("CHANGELOG.md")?, self.compression)?;
        files.push(Entry::file("usr/share/doc/gake/changelog.gz", changes));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

/// Writes what gake prints about itself: manual pages and completions. A binary for another
/// processor cannot be run; the one that cargo has built for this machine prints them then.
fn print_pages(gake: &Path, target: &Target, folder: &Path) -> Result<()> {
    let program = if target.machine.kernel == std::env::consts::ARCH {
        gake.to_owned()
    } else {
        workspace::target_dir()?.join("debug/gake")
    };
    let program = program.display().to_string();
    for shell in ["bash", "zsh", "fish"] {
        let text = output(&program, &["completions", shell])?;
        let name = match shell {
            "zsh" => "_gake".to_owned(),
            shell => format!("gake.{shell}"),
        };
        fs::write(folder.join("completions").join(name), text)?;
    }
    fs::write(folder.join("man/gake.1"), output(&program, &["man"])?)?;
    for page in PAGES.split_whitespace() {
        let text = output(&program, &["man", page])?;
        fs::write(folder.join(format!("man/gake-{page}.1")), text)?;
    }
    Ok(())
}
