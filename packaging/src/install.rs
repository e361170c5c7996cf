//! Installs a package from its file into an empty folder, by its own client, without a network;
//! returns the command that starts what was installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use gake_testkit::find;
use serde_json::Value;

use crate::image;

/// A wheel, by pip into a virtual environment.
///
/// # Errors
/// When Python's `venv` is missing or the wheel is refused.
pub fn wheel(wheel: &Path, into: &Path) -> Result<Command> {
    let python = need("python3", "python3-venv")?;
    // Debian's python3 lacks venv's pip without the package python3-venv.
    run(Command::new(python).args(["-m", "venv"]).arg(into))
        .context("is the Debian package python3-venv installed?")?;
    let pip = ["install", "--quiet", "--no-index", "--disable-pip-version-check"];
    run(Command::new(into.join("bin/pip")).args(pip).arg(wheel))?;
    Ok(clean(into.join("bin/gake")))
}

/// npm packages, by npm into a prefix. The packages of other processors are not there, and npm has
/// to do without them as it does on a user's machine.
///
/// # Errors
/// When npm is missing or a package is refused.
pub fn npm(packages: &[&Path], into: &Path) -> Result<Command> {
    let npm = need("npm", "npm")?;
    let node = need("node", "nodejs")?;
    let mut install = Command::new(npm);
    install.args(["install", "--global", "--offline", "--no-audit", "--no-fund"]);
    install.arg("--loglevel=error").arg("--prefix").arg(into).args(packages);
    run(install.env("npm_config_cache", into.join("cache")))?;
    let mut gake = clean(into.join("bin/gake"));
    if let Some(folder) = node.parent() {
        gake.env("PATH", folder);
    }
    Ok(gake)
}

/// A package of Debian, by dpkg into a root of its own.
///
/// # Errors
/// When dpkg is missing or refuses the package.
pub fn deb(package: &Path, into: &Path) -> Result<Command> {
    let dpkg = need("dpkg", "dpkg")?;
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"] {
        fs::create_dir_all(into.join(folder))?;
    }
    for file in ["status", "available"] {
        fs::write(into.join("var/lib/dpkg").join(file), "")?;
    }
    let mut install = Command::new(dpkg);
    // An empty root has no C library, which a build for this machine asks for.
    install.args(["--force-not-root", "--force-script-chrootless", "--force-depends"]);
    install.arg("--log=/dev/null").arg("--root").arg(into).arg("--install").arg(package);
    // dpkg looks for programs that packages with scripts need.
    run(install.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))?;
    Ok(clean(into.join("usr/bin/gake")))
}

/// A package of RPM, by rpm into a root of its own.
///
/// # Errors
/// When rpm is missing or refuses the package.
pub fn rpm(package: &Path, into: &Path) -> Result<Command> {
    let rpm = need("rpm", "rpm")?;
    fs::create_dir_all(into)?;
    let mut install = Command::new(rpm);
    install.args(["--install", "--nodeps", "--root"]).arg(into).arg(package);
    run(&mut install)?;
    Ok(clean(into.join("usr/bin/gake")))
}

/// A container image: its layers unpacked, each after its digest was compared, and started as the
/// image says, in a root of its own.
///
/// # Errors
/// When a digest differs or `unshare` is missing.
pub fn image(archive: &Path, into: &Path) -> Result<Command> {
    let layout = into.join("layout");
    let root = into.join("root");
    tar::Archive::new(fs::File::open(archive)?).unpack(&layout)?;
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let manifest: Value = serde_json::from_slice(&blob(&layout, &index["manifests"][0])?)?;
    let config: Value = serde_json::from_slice(&blob(&layout, &manifest["config"])?)?;
    let layers = manifest["layers"].as_array().context("the manifest lists no layers")?;
    let sums = config["rootfs"]["diff_ids"].as_array().context("no sums of layers")?;
    for (layer, sum) in layers.iter().zip(sums) {
        let packed = blob(&layout, layer)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut bytes)?;
        if *sum != format!("sha256:{}", crate::tarball::sha256(&bytes)) {
            bail!("the layer is not the one of the configuration");
        }
        let mut unpacked = tar::Archive::new(&bytes[..]);
        unpacked.set_preserve_permissions(true);
        unpacked.unpack(&root)?;
    }
    let entry = config["config"]["Entrypoint"][0].as_str().context("no entrypoint")?;
    if entry.trim_start_matches('/') != image::PROGRAM {
        bail!("the entrypoint {entry} is not where the binary is");
    }
    // A runtime provides these.
    for folder in ["dev", "proc"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let user = config["config"]["User"].as_str().context("no user")?;
    let mut gake = clean(need("unshare", "util-linux")?);
    gake.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").arg("--mount");
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        gake.arg("--map-root-user");
    }
    // Only root has other users to give.
    let user = if is_root { format!("--userspec={user}") } else { "--userspec=0:0".to_owned() };
    gake.args(["--", "sh", "-euc", ENTER, "sh"]).arg(&root).args([&user, entry]);
    Ok(gake)
}

/// Starts a program in a root with the devices and processes of this machine.
const ENTER: &str = r#"root=$1 user=$2; shift 2
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
exec chroot "$user" "$root" "$@""#;

/// A blob of an image, which its descriptor names by its digest.
fn blob(layout: &Path, descriptor: &Value) -> Result<Vec<u8>> {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    let sum = digest.strip_prefix("sha256:").context("a descriptor without a digest")?;
    let bytes = fs::read(layout.join("blobs/sha256").join(sum))?;
    if crate::tarball::sha256(&bytes) != sum || descriptor["size"] != bytes.len() {
        bail!("{digest} is not the blob that its descriptor names");
    }
    Ok(bytes)
}

/// A command that finds nothing of this machine in its environment.
fn clean(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}

fn need(program: &str, package: &str) -> Result<std::path::PathBuf> {
    find(program).with_context(|| format!("{program} is missing: sudo apt-get install {package}"))
}

fn run(command: &mut Command) -> Result<()> {
    let out = command.output().with_context(|| format!("{command:?} could not be started"))?;
    if !out.status.success() {
        let text = [out.stdout, out.stderr].concat();
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}
