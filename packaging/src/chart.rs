//! The Helm chart of a fleet, against `gake fleet manifest` and the types of Kubernetes' API.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xtask::workspace;

/// A fleet: the values of the chart, and the flags of `gake fleet manifest` that mean the same.
const FLEETS: [(&str, &str); 2] = [
    (
        "--set agents=50,image=example.org/gake:1.0,allow={10.0.0.0/8}",
        "--agents 50 --image example.org/gake:1.0 --allow 10.0.0.0/8",
    ),
    (
        "--set agents=2,image=i,allow={a,b},maxRate=2000000,scripts=true,cores=1,memory=1Gi,\
         natsImage=n:1",
        "--agents 2 --image i --allow a --allow b --max-rate 2M --scripts --cores 1 --memory 1Gi \
         --nats-image n:1",
    ),
];

/// The client of Kubernetes, whose types are generated from the API.
const CLIENT: &str = "kubernetes==37.0.2";

/// Renders the chart and compares it.
///
/// # Errors
/// When it differs, or Helm is missing.
pub fn check(gake: &Path, scratch: &Path) -> Result<()> {
    let helm = gake_testkit::find("helm").context(
        "helm is missing: GOBIN=/usr/local/bin go install helm.sh/helm/v3/cmd/helm@latest",
    )?;
    for (values, flags) in FLEETS {
        let rendered = render(&helm, values)?;
        let manifest = Command::new(gake)
            .args(["fleet", "manifest", "--namespace", "load"])
            .args(flags.split_whitespace())
            .output()?;
        compare(&objects(&rendered)?, &objects(&String::from_utf8(manifest.stdout)?)?)?;
    }
    let (values, _) = FLEETS[0];
    let with_run = render(&helm, &format!("{values},run.args={{http://10.0.0.9/,-r,1k}}"))?;
    if objects(&with_run)?.len() != objects(&render(&helm, values)?)?.len() + 1 {
        bail!("run.args does not add a job");
    }
    strict(&with_run, scratch)?;
    println!("chart    as `gake fleet manifest` prints it, and as {CLIENT} reads it");
    Ok(())
}

fn render(helm: &Path, values: &str) -> Result<String> {
    let chart: PathBuf = workspace::root().join("packaging/helm/gake");
    let mut template = Command::new(helm);
    template.args(["template", "fleet"]).arg(chart).args(["--namespace", "load"]);
    let out = template.args(values.split_whitespace()).output()?;
    if !out.status.success() {
        bail!("helm template: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(String::from_utf8(out.stdout)?)
}

/// The objects of a YAML stream, by kind and name.
fn objects(yaml: &str) -> Result<BTreeMap<String, Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml)?;
    let named = all
        .into_iter()
        .map(|object| (format!("{} {}", object["kind"], object["metadata"]["name"]), object));
    Ok(named.collect())
}

fn compare(chart: &BTreeMap<String, Value>, manifest: &BTreeMap<String, Value>) -> Result<()> {
    if chart.keys().ne(manifest.keys()) {
        bail!("the chart has {:?}, the manifest {:?}", chart.keys(), manifest.keys());
    }
    for (name, object) in manifest {
        if chart[name] != *object {
            bail!("{name} is in the chart\n{:#}\nand in the manifest\n{object:#}", chart[name]);
        }
    }
    Ok(())
}

/// Reads the objects into the API's types: an unknown field is an error.
fn strict(objects: &str, scratch: &Path) -> Result<()> {
    let venv = scratch.join("kubernetes");
    let python = venv.join("bin/python");
    let run = |program: &Path, args: &[&str]| {
        let status = Command::new(program).args(args).status()?;
        if status.success() { Ok(()) } else { bail!("{} {args:?}: {status}", program.display()) }
    };
    run(Path::new("python3"), &["-m", "venv", &venv.display().to_string()])?;
    let quiet = ["-m", "pip", "install", "--quiet", "--no-compile", CLIENT];
    run(&python, &quiet)?;
    let script = workspace::root().join("packaging/helm/strict.py");
    let mut read = Command::new(python).arg(script).stdin(Stdio::piped()).spawn()?;
    read.stdin.take().context("no pipe")?.write_all(objects.as_bytes())?;
    if !read.wait()?.success() {
        bail!("the API has other fields than the chart");
    }
    Ok(())
}
