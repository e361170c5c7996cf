//! Files that a spec names are sent with it, each once, by the hash of their contents: certificates
//! and keys, recordings, scripts. Agents keep them in memory, never on disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use gake_core::spec::{RequestSource, RunSpec};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::FleetError;
use crate::message::{FileChunk, from_hex, hex};

/// Maximum bytes of the files of a spec.
pub(crate) const BYTES_MAX: usize = 256 << 20;

/// Prefix of a hash in place of a path.
const BY_HASH: &str = "sha256:";

/// File contents by hash.
pub(crate) type FileContents = BTreeMap<String, Bytes>;

/// The paths in a spec that agents read.
fn paths(spec: &mut RunSpec) -> impl Iterator<Item = &mut PathBuf> {
    let tls = &mut spec.tls;
    let ech = tls.ech.as_mut().filter(|path| path.as_os_str() != "grease");
    let own = tls.certificate.iter_mut().chain(&mut tls.key).chain(ech);
    let tls = tls.ca_certificates.iter_mut().chain(own);
    let recordings = spec.scenarios.iter_mut().filter_map(|one| match &mut one.source {
        RequestSource::Recording(recording) => Some(&mut recording.path),
        _ => None,
    });
    tls.chain(recordings)
}

/// Reads the files that a spec names, and replaces their paths by hashes.
pub(crate) fn collect_files(spec: &mut RunSpec) -> Result<FileContents, FleetError> {
    let mut contents = FileContents::new();
    let mut left = BYTES_MAX;
    for path in paths(spec) {
        let bytes = read(path, left)
            .map_err(|why| FleetError::Spec(format!("{} cannot be sent: {why}", path.display())))?;
        left -= bytes.len();
        let hash = hash(&bytes);
        *path = PathBuf::from(format!("{BY_HASH}{hash}"));
        contents.insert(hash, bytes.into());
    }
    Ok(contents)
}

/// The hashes of a spec's recordings, in order, after [`collect_files`].
pub(crate) fn recordings(sent: &RunSpec) -> Vec<String> {
    let path = |source: &RequestSource| match source {
        RequestSource::Recording(recording) => Some(recording.path.display().to_string()),
        _ => None,
    };
    sent.scenarios.iter().filter_map(|one| path(&one.source)).collect()
}

fn read(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    match bytes.len() <= most {
        true => Ok(bytes),
        false => Err(format!("the files of a spec are at most {} MB together", BYTES_MAX >> 20)),
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

#[derive(Debug, Default)]
pub(crate) struct AgentFiles {
    kept: FileContents,
    /// The hash and content of an incomplete file.
    arriving: (String, Vec<u8>),
}

impl AgentFiles {
    /// Returns which of `hashes` are missing, and drops files with other hashes.
    pub(crate) fn missing(&mut self, hashes: &[String]) -> Vec<String> {
        self.kept.retain(|hash, _| hashes.contains(hash));
        hashes.iter().filter(|hash| !self.kept.contains_key(*hash)).cloned().collect()
    }

    /// Adds a chunk, and returns the number of bytes received.
    pub(crate) fn take(&mut self, part: &FileChunk) -> usize {
        let (name, arriving) = &mut self.arriving;
        if part.at == 0 {
            name.clone_from(&part.hash);
            arriving.clear();
        }
        let kept: usize = self.kept.values().map(Bytes::len).sum();
        let bytes = from_hex(&part.bytes).unwrap_or_default();
        let fits = kept + arriving.len() + bytes.len() <= BYTES_MAX;
        if *name != part.hash || part.at != arriving.len() || !fits {
            return arriving.len();
        }
        arriving.extend(bytes);
        let count = arriving.len();
        if part.is_last && hash(arriving) == part.hash {
            self.kept.insert(part.hash.clone(), std::mem::take(arriving).into());
        }
        count
    }

    /// The complete files.
    pub(crate) fn contents(&self) -> FileContents {
        self.kept.clone()
    }
}

/// Open files of a spec, which can be read by their paths while they are kept.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    _files: Vec<File>,
}

impl OpenFiles {
    /// Replaces hashes in a spec by paths.
    ///
    /// # Errors
    /// When the spec names a file of this machine, or one that is missing from `contents`.
    pub(crate) fn open(spec: &mut RunSpec, contents: &FileContents) -> Result<Self, String> {
        let mut files = Vec::new();
        for path in paths(spec) {
            let hash = path.to_str().and_then(|text| text.strip_prefix(BY_HASH));
            let bytes = hash.and_then(|hash| contents.get(hash));
            let bytes = bytes.ok_or("a file of the spec was not sent with it")?;
            let file = in_memory(bytes).map_err(|error| format!("a file of the spec: {error}"))?;
            *path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            files.push(file);
        }
        Ok(Self { _files: files })
    }
}

fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("gake", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use gake_core::Load;
    use gake_core::spec::ScenarioSpec;

    use super::*;

    fn spec(key: &Path) -> RunSpec {
        let url = RequestSource::Url("https://h/".to_owned());
        let mut spec = RunSpec::new(ScenarioSpec::new(url, Load::closed(1)));
        spec.tls.certificate = Some(key.to_owned());
        spec.tls.key = Some(key.to_owned());
        spec
    }

    #[test]
    fn a_file_is_sent_once_and_read_by_its_path() {
        let folder = std::env::temp_dir().join(format!("gake-files-{}", std::process::id()));
        std::fs::write(&folder, b"a private key").unwrap();
        let mut sent = spec(&folder);
        let contents = collect_files(&mut sent).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(contents.len(), 1, "the same content");
        let mut files = AgentFiles::default();
        let hashes: Vec<_> = contents.keys().cloned().collect();
        assert!(OpenFiles::open(&mut sent.clone(), &files.contents()).is_err(), "not there yet");
        for hash in files.missing(&hashes) {
            let content = &contents[&hash];
            for (at, bytes) in (0..).step_by(4).zip(content.chunks(4)) {
                let is_last = at + bytes.len() == content.len();
                let (nonce, hash, bytes) = (String::new(), hash.clone(), hex(bytes));
                let part = FileChunk { nonce, hash, at, bytes, is_last };
                let there = files.take(&part);
                assert_eq!(files.take(&part), if is_last { 0 } else { there }, "once");
            }
        }
        assert_eq!(files.missing(&hashes), [""; 0]);
        let open = OpenFiles::open(&mut sent, &files.contents()).unwrap();
        assert_eq!(std::fs::read(sent.tls.key.unwrap()).unwrap(), b"a private key");
        drop(open);
        files.missing(&[]);
        assert!(files.contents().is_empty(), "forgotten with the next spec");
    }

    #[test]
    fn an_agent_reads_no_file_of_its_own_machine() {
        let mut sent = spec(Path::new("/etc/hostname"));
        assert!(OpenFiles::open(&mut sent, &FileContents::new()).is_err());
    }
}
