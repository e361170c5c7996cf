//! Archives of k6: a script with its options and everything that it reads, in a tar file.
//!
//! `metadata.json` describes it, `data` is the script, `file/` and `https/` have the files by path
//! and the modules by URL.

mod tar;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::paths::{anonymous, file_path, file_url, normal};

/// A script with all that it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Archive {
    /// The absolute path of the script, which is among the files.
    pub script: PathBuf,
    /// Its options, as scripts write them.
    pub options: Value,
    /// What was added to its environment.
    pub environment: BTreeMap<String, String>,
    /// Files by absolute path, and modules by URL.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Why an archive cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It is no tar file.
    #[error("the tar file is damaged: {0}")]
    Tar(&'static str),
    /// Something that every archive has is missing.
    #[error("it is not an archive of k6: there is no {0}")]
    Missing(&'static str),
    /// The description cannot be read.
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
    /// Whether bytes may be an archive: they begin as a tar file does.
    #[must_use]
    pub fn is_archive(bytes: &[u8]) -> bool {
        tar::is_tar(bytes)
    }

    /// Reads an archive, of gake or of k6.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let (mut metadata, mut data) = (None, None);
        let mut files = Vec::new();
        for (name, content) in tar::entries(bytes)? {
            match name.split_once('/') {
                None if name == "metadata.json" => metadata = Some(content),
                None if name == "data" => data = Some(content),
                Some(("file", path)) => {
                    files.push((normal(&Path::new("/").join(path)), content.to_vec()));
                }
                Some(("https", rest)) => {
                    files.push((format!("https://{rest}").into(), content.to_vec()));
                }
                _ => {}
            }
        }
        let metadata = metadata.ok_or(ArchiveError::Missing("metadata.json"))?;
        let metadata: Metadata = serde_json::from_slice(metadata)
            .map_err(|error| ArchiveError::Metadata(error.to_string()))?;
        let script = file_path(&metadata.filename);
        let data = data.ok_or(ArchiveError::Missing("data"))?;
        files.retain(|(path, _)| *path != script);
        files.push((script.clone(), data.to_vec()));
        let environment = metadata.env.unwrap_or_default();
        Ok(Self { script, options: metadata.options, environment, files })
    }

    /// The archive as a tar file, made at `unix_s` seconds since 1970. Names of users in paths are
    /// left out.
    #[must_use]
    pub fn write(&self, unix_s: u64) -> Vec<u8> {
        self.write_named(unix_s, anonymous)
    }

    /// The same with paths as they are, for other processes that run the same test.
    #[must_use]
    pub fn write_with_paths(&self, unix_s: u64) -> Vec<u8> {
        self.write_named(unix_s, Path::to_owned)
    }

    fn write_named(&self, unix_s: u64, name: impl Fn(&Path) -> PathBuf) -> Vec<u8> {
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
        let mut bytes = Vec::new();
        tar::append(&mut bytes, "metadata.json", format!("{metadata:#}").as_bytes(), unix_s);
        let data = self.files.iter().find(|(path, _)| *path == self.script);
        let data = data.map(|(_, data)| data.as_slice()).unwrap_or_default();
        tar::append(&mut bytes, "data", data, unix_s);
        for (path, content) in &self.files {
            let entry = match path.to_str().and_then(|path| path.strip_prefix("https://")) {
                Some(rest) => format!("https/{rest}"),
                None => format!("file{}", name(path).display()),
            };
            tar::append(&mut bytes, &entry, content, unix_s);
        }
        tar::end(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_come_back_without_names_of_users() {
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
    fn files_of_two_users_stay_two_where_paths_are_kept() {
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
        let tar = |name: &str, content: &[u8]| {
            let mut bytes = Vec::new();
            tar::append(&mut bytes, name, content, 0);
            tar::end(&mut bytes);
            Archive::read(&bytes).unwrap_err().to_string()
        };
        assert!(tar("x", b"").contains("no metadata.json"));
        assert!(tar("metadata.json", b"{}").contains("filename"));
        assert!(tar("metadata.json", b"{\"filename\":\"/a.js\"}").contains("no data"));
        // Nothing leaves the root.
        let mut bytes = Vec::new();
        tar::append(&mut bytes, "metadata.json", b"{\"filename\":\"../../a.js\"}", 0);
        tar::append(&mut bytes, "data", b"", 0);
        assert_eq!(Archive::read(&bytes).unwrap().script, Path::new("/a.js"));
    }
}
