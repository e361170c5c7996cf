//! A formula of Homebrew, on the release archives: `brew install ./gake.rb`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::contents::Contents;
use crate::tarball::sha256;
use crate::target::MACHINES;
use crate::{LICENSE, SUMMARY, VERSION};

/// Writes the formula for the static archives that are in `out`, which may be of several targets.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(contents: &Contents, repository: &str, out: &Path) -> Result<PathBuf> {
    let mut blocks = String::new();
    for (machine, block) in MACHINES.iter().zip(["on_intel", "on_arm"]) {
        let mut archive = format!("gake-{VERSION}-{}-unknown-linux-musl.tar.gz", machine.kernel);
        if *machine == *contents.target.machine {
            archive = crate::archive::name(contents) + ".tar.gz";
        }
        let Ok(bytes) = fs::read(out.join(&archive)) else { continue };
        blocks += &format!(
            "    {block} do\n      url \"{repository}/releases/download/v{VERSION}/{archive}\"\n      \
             sha256 \"{}\"\n    end\n",
            sha256(&bytes)
        );
    }
    let formula = format!(
        r##"class Gake < Formula
  desc "{SUMMARY}"
  homepage "{repository}"
  version "{VERSION}"
  license "{LICENSE}"

  on_linux do
{blocks}  end

  def install
    bin.install "gake"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/gake.bash" => "gake"
    zsh_completion.install "completions/_gake"
    fish_completion.install "completions/gake.fish"
  end

  test do
    system bin/"gake", "run", "demo", "-d", "1s"
  end
end
"##
    );
    crate::write(out, "gake.rb", formula.as_bytes())
}
