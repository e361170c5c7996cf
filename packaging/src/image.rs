//! A container image from scratch, as an archive of the OCI image layout: `docker load`,
//! `podman load` and `skopeo copy oci-archive:` read it.
//!
//! It holds the binary and an empty /tmp. It has no certificates of its own: gake then trusts
//! Mozilla's, which are built in.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::contents::Contents;
use crate::tarball::{Entry, gzip, sha256, tar};
use crate::{LICENSE, SUMMARY, VERSION};

/// The user of the image, the same as of the pods that `gake fleet manifest` starts.
const USER: u32 = 65_532;

/// Where the binary is.
pub const PROGRAM: &str = "usr/local/bin/gake";

/// Writes the image.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(contents: &Contents, out: &Path) -> Result<PathBuf> {
    let machine = contents.target.machine.debian;
    // Everyone may write to /tmp; a pod mounts its own there.
    let files = [Entry::folder("tmp", 0o1777), Entry::program(PROGRAM, contents.read("gake")?)];
    let layer = tar(&files, contents.epoch)?;
    let packed = gzip(&layer, contents.compression)?;
    let created = jiff::Timestamp::from_second(contents.epoch.into())?.to_string();
    let config = json!({
        "created": created,
        "architecture": machine,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
            "Entrypoint": ["/usr/local/bin/gake"],
            "WorkingDir": "/tmp",
            "Labels": labels(),
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    });
    let config = serde_json::to_vec(&config)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
        "annotations": labels(),
    });
    let manifest = serde_json::to_vec(&manifest)?;
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["platform"] = json!({ "architecture": machine, "os": "linux" });
    entry["annotations"] = json!({
        "io.containerd.image.name": format!("docker.io/library/gake:{VERSION}"),
        "org.opencontainers.image.ref.name": VERSION,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    let blob = |bytes: Vec<u8>| Entry::file(&format!("blobs/sha256/{}", sha256(&bytes)), bytes);
    let files = [
        Entry::file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::file("index.json", serde_json::to_vec(&index)?),
        blob(config),
        blob(manifest),
        blob(packed),
    ];
    let archive = tar(&files, contents.epoch)?;
    crate::write(out, &format!("gake-{VERSION}-linux-{machine}.oci.tar"), &archive)
}

fn labels() -> Value {
    json!({
        "org.opencontainers.image.title": "gake",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.licenses": LICENSE,
        "org.opencontainers.image.version": VERSION,
    })
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    let digest = format!("sha256:{}", sha256(bytes));
    json!({ "mediaType": kind, "digest": digest, "size": bytes.len() })
}
