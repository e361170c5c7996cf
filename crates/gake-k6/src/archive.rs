//! k6 archives: tar files of a script, its options, and its files.
//!
//! `metadata.json` describes it; `data`: the script, `file/`: files by path, `https/`: modules.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::paths::{anonymous, file_path, file_url, normal};

/// A script with its options and files.
#[derive(Debug, Clone, PartialEq)]
pub struct Archive {
    /// The absolute path of the script, which is among the files.
    pub script: PathBuf,
    /// Its options, as scripts write them.
    pub options: Value,
    /// Additions to its environment.
    pub environment: BTreeMap<String, String>,
    /// Files by absolute path, and modules by URL.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Why an archive cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a valid tar file.
    #[error("the tar file is damaged: {0}")]
    Tar(String),
    /// A required entry is missing.
    #[error("it is not an archive of k6: there is no {0}")]
    Missing(&'static str),
    /// The description is invalid.
    #[error("its metadata.json cannot be read: {0}")]
    Metadata(String),
}

#[derive(Deserialize)]
struct Metadata {
    filename: String,
    #[serde(default)]
    options: Value,
    env: Option<BTreeMap<String, String>>,
}

impl Archive {
    /// Whether bytes may be an archive: they begin with a tar header.
    #[must_use]
    pub fn is_archive(bytes: &[u8]) -> bool {
        bytes.get(257..262) == Some(b"ustar".as_slice())
    }

    /// Reads an archive of gake or k6.
    ///
    /// # Errors
    /// When it is not a tar file, or lacks the script or its description.
    pub fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let (mut metadata, mut data) = (None, None);
        let mut files = Vec::new();
        let entries = entries(bytes).map_err(|error| ArchiveError::Tar(error.to_string()))?;
        for (name, content) in entries {
            match name.split_once('/') {
                None if name == "metadata.json" => metadata = Some(content),
                None if name == "data" => data = Some(content),
                Some(("file", path)) => files.push((normal(&Path::new("/").join(path)), content)),
                Some(("https", rest)) => files.push((format!("https://{rest}").into(), content)),
                _ => {}
            }
        }
        let metadata = metadata.ok_or(ArchiveError::Missing("metadata.json"))?;
        let metadata: Metadata = serde_json::from_slice(&metadata)
            .map_err(|error| ArchiveError::Metadata(error.to_string()))?;
        let script = file_path(&metadata.filename);
        let data = data.ok_or(ArchiveError::Missing("data"))?;
        files.retain(|(path, _)| *path != script);
        files.push((script.clone(), data));
        let environment = metadata.env.unwrap_or_default();
        Ok(Self { script, options: metadata.options, environment, files })
    }

    /// The archive as a tar file with this timestamp in Unix seconds. Home folders in paths are
    /// anonymous.
    #[must_use]
    pub fn write(&self, unix_s: u64) -> Vec<u8> {
        self.write_named(unix_s, anonymous).unwrap_or_default()
    }

    /// The same with full paths, for other processes that run the same test.
    #[must_use]
    pub fn write_with_paths(&self, unix_s: u64) -> Vec<u8> {
        self.write_named(unix_s, Path::to_owned).unwrap_or_default()
    }

    /// Writing to memory cannot fail.
    fn write_named(&self, unix_s: u64, name: impl Fn(&Path) -> PathBuf) -> io::Result<Vec<u8>> {
        let script = name(&self.script);
        let folder = file_url(script.parent().unwrap_or(Path::new("/")));
        let metadata = json!({
            "type": "js",
            "options": self.options,
            "filename": file_url(&script),
            "pwd": folder,
            "env": self.environment,
            "compatibilityMode": "extended",
            "k6version": concat!("gake/", env!("CARGO_PKG_VERSION")),
            "goos": "linux",
        });
        let mut tar = Builder::new(Vec::new());
        append(&mut tar, "metadata.json", format!("{metadata:#}").as_bytes(), unix_s)?;
        let data = self.files.iter().find(|(path, _)| *path == self.script);
        let data = data.map(|(_, data)| data.as_slice()).unwrap_or_default();
        append(&mut tar, "data", data, unix_s)?;
        for (path, content) in &self.files {
            let entry = match path.to_str().and_then(|path| path.strip_prefix("https://")) {
                Some(rest) => format!("https/{rest}"),
                None => format!("file{}", name(path).display()),
            };
            append(&mut tar, &entry, content, unix_s)?;
        }
        tar.into_inner()
    }
}

/// The names and contents of the regular files of a tar file.
fn entries(tar: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type() == EntryType::Regular {
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            files.push((name, content));
        }
    }
    Ok(files)
}

/// Appends a regular file. The name is a key: it is kept as it is, not normalised as a path.
fn append(tar: &mut Builder<Vec<u8>>, name: &str, content: &[u8], unix_s: u64) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(unix_s);
    let field = &mut header.as_old_mut().name;
    let length = name.len().min(field.len());
    field[..length].copy_from_slice(&name.as_bytes()[..length]);
    if length < name.len() {
        tar.append_pax_extensions([("path", name.as_bytes())])?;
    }
    header.set_cksum();
    tar.append(&header, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_can_be_read_back_without_home_folders() {
        let file = |path: &str, text: &str| (PathBuf::from(path), text.as_bytes().to_vec());
        let archive = Archive {
            script: "/home/ada/t 1%/s.js".into(),
            options: json!({ "vus": 3 }),
            environment: [("A".to_owned(), "b".to_owned())].into(),
            files: vec![
                file("/home/ada/t 1%/data.csv", "1,2"),
                file("https://a.test/x.js", "export default 1"),
                file("/home/ada/t 1%/s.js", "export default function () {}"),
            ],
        };
        let written = archive.write(0);
        let read = Archive::read(&written).unwrap();
        assert_eq!(read.script, Path::new("/home/nobody/t 1%/s.js"));
        let url = "\"filename\": \"file:///home/nobody/t%201%25/s.js\"";
        assert!(String::from_utf8_lossy(&written).contains(url), "as k6 writes it");
        assert_eq!((read.options, read.environment), (archive.options, archive.environment));
        let paths: Vec<_> = read.files.iter().map(|(path, _)| path.to_str().unwrap()).collect();
        let folder = "/home/nobody/t 1%";
        let expected =
            [&format!("{folder}/data.csv"), "https://a.test/x.js", &format!("{folder}/s.js")];
        assert_eq!(paths, expected);
        assert_eq!(read.files[2].1, archive.files[2].1);
    }

    #[test]
    fn full_paths_keep_two_home_folders_apart() {
        let file = |path: &str, text: &str| (PathBuf::from(path), text.as_bytes().to_vec());
        let archive = Archive {
            script: "/home/ada/s.js".into(),
            options: json!({}),
            environment: BTreeMap::new(),
            files: vec![
                file("/home/ada/data.csv", "1"),
                file("/home/bob/data.csv", "2"),
                file("/home/ada/s.js", ""),
            ],
        };
        assert_eq!(Archive::read(&archive.write_with_paths(0)).unwrap(), archive);
    }

    #[test]
    fn other_tar_files_are_refused() {
        let tar = |entries: &[(&str, &str)]| {
            let mut tar = Builder::new(Vec::new());
            for (name, content) in entries {
                append(&mut tar, name, content.as_bytes(), 0).unwrap();
            }
            Archive::read(&tar.into_inner().unwrap())
        };
        let error = |name, content| tar(&[(name, content)]).unwrap_err().to_string();
        assert!(error("x", "").contains("no metadata.json"));
        assert!(error("metadata.json", "{}").contains("filename"));
        assert!(error("metadata.json", r#"{"filename":"/a.js"}"#).contains("no data"));
        // No path leaves the root.
        let read = tar(&[("metadata.json", r#"{"filename":"../../a.js"}"#), ("data", "")]);
        assert_eq!(read.unwrap().script, Path::new("/a.js"));
    }

    #[test]
    fn damaged_archives_are_refused() {
        let long = PathBuf::from(format!("/{}s.js", "folder/".repeat(30)));
        let url = PathBuf::from("https://a.test//b/../c.js");
        let files = vec![(url, b"x".to_vec()), (long.clone(), vec![b'x'; 1000])];
        let archive =
            Archive { script: long, options: json!({}), environment: BTreeMap::new(), files };
        let written = archive.write(1_700_000_000);
        assert!(Archive::is_archive(&written));
        assert_eq!(Archive::read(&written).unwrap(), archive);
        for end in 0..written.len() {
            if let Ok(cut) = Archive::read(&written[..end]) {
                assert!(cut.files.iter().all(|file| archive.files.contains(file)), "cut at {end}");
            }
        }
        let mut broken = written;
        broken[0] ^= 1;
        assert!(matches!(Archive::read(&broken), Err(ArchiveError::Tar(_))));
    }
}
