//! Secrets of scripts: their sources, and their redaction in the log.

use std::collections::BTreeMap;
use std::path::PathBuf;

const REDACTED: &str = "***SECRET_REDACTED***";

/// The secrets from the sources that the command line names.
#[derive(Debug, Default)]
pub struct Secrets {
    sources: Vec<SecretSource>,
}

#[derive(Debug)]
struct SecretSource {
    name: String,
    is_default: bool,
    values: BTreeMap<String, String>,
}

impl Secrets {
    /// No secrets.
    #[must_use]
    pub const fn none() -> Self {
        Self { sources: Vec::new() }
    }

    /// Reads the sources of `--secret-source`: `mock=a=1,b=2`, `file=PATH` or
    /// `file=name=N,filename=PATH,default`. `read` reads a file.
    ///
    /// # Errors
    /// When a source is unknown, has the name of another, or cannot be read.
    pub fn read(
        sources: &[String],
        read: impl Fn(&PathBuf) -> std::io::Result<String>,
    ) -> Result<Self, String> {
        let mut secrets = Self::default();
        for text in sources {
            let (kind, config) = text.split_once('=').unwrap_or((text, ""));
            let mut source = SecretSource {
                name: "default".to_owned(),
                is_default: sources.len() == 1,
                values: BTreeMap::new(),
            };
            let mut path = None;
            for part in config.split(',').filter(|part| !part.is_empty()) {
                match part.split_once('=') {
                    None if part == "default" => source.is_default = true,
                    None => path = Some(PathBuf::from(part)),
                    Some(("name", name)) => name.clone_into(&mut source.name),
                    Some(("filename", name)) => path = Some(PathBuf::from(name)),
                    Some((key, value)) => {
                        source.values.insert(key.to_owned(), value.to_owned());
                    }
                }
            }
            match kind {
                "mock" => {}
                "file" => {
                    let path = path.ok_or("--secret-source file: a file is missing")?;
                    let lines = read(&path).map_err(|error| {
                        format!("the secrets in {} cannot be read: {error}", path.display())
                    })?;
                    source.values = pairs(&lines);
                }
                // What is not a kind may be a secret.
                _ => return Err("unknown kind of secret source: use mock or file".to_owned()),
            }
            if secrets.sources.iter().any(|known| known.name == source.name) {
                return Err(format!(
                    "secret source with name {:?} already configured",
                    source.name
                ));
            }
            secrets.sources.push(source);
        }
        Ok(secrets)
    }

    /// The secret of a name; `source` is empty for the default one.
    ///
    /// # Errors
    /// In k6's words, when no secret has that name.
    pub fn get(&self, source: &str, name: &str) -> Result<&str, String> {
        if self.sources.is_empty() {
            return Err("no secret sources are configured".to_owned());
        }
        let found = self.sources.iter().find(|known| match source {
            "" => known.is_default,
            source => known.name == source,
        });
        let found = found.ok_or_else(|| match source {
            "" => "no default secret source is configured".to_owned(),
            source => format!("no secret source with name {source:?} is configured"),
        })?;
        found.values.get(name).map(String::as_str).ok_or_else(|| "no value".to_owned())
    }

    /// The text with its secrets redacted; `None` if it has none.
    #[must_use]
    pub fn redacted(&self, text: &str) -> Option<String> {
        let values = self.sources.iter().flat_map(|source| source.values.values());
        let mut redacted = None;
        for value in values.filter(|value| !value.is_empty()) {
            let shown = redacted.as_deref().unwrap_or(text);
            if shown.contains(value.as_str()) {
                redacted = Some(shown.replace(value.as_str(), REDACTED));
            }
        }
        redacted
    }
}

/// Lines of `key=value`; `#` begins a comment.
fn pairs(lines: &str) -> BTreeMap<String, String> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sources: &[&str]) -> Result<Secrets, String> {
        let sources: Vec<String> = sources.iter().map(|source| (*source).to_owned()).collect();
        Secrets::read(&sources, |path| match path.to_str() {
            Some("there") => Ok("# no\na = one\n\nb=two=2\n".to_owned()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        })
    }

    #[test]
    fn secrets_come_from_their_sources() {
        let secrets = read(&["mock=default,a=1", "file=name=f,filename=there"]).unwrap();
        assert_eq!(secrets.get("", "a"), Ok("1"));
        assert_eq!(secrets.get("f", "b"), Ok("two=2"));
        assert_eq!(secrets.get("", "b"), Err("no value".to_owned()));
        assert!(secrets.get("g", "a").unwrap_err().contains("\"g\""));
        assert!(Secrets::default().get("", "a").is_err());
        assert_eq!(read(&["file=there"]).unwrap().get("", "a"), Ok("one"));
        for wrong in [&["file=nowhere"][..], &["vault=x"], &["mock=a=1", "mock=a=2"], &["file"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn secrets_are_redacted() {
        let secrets = read(&["mock=a=one1,b="]).unwrap();
        assert_eq!(secrets.redacted("x one1 y"), Some(format!("x {REDACTED} y")));
        assert_eq!(secrets.redacted("one"), None);
    }
}
