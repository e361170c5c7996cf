//! What a script imports, and the versions that it asks for.

use std::collections::BTreeMap;
use std::path::Path;

use super::LoadedScript;

/// The scheme of modules on disk.
const FILE: &str = "file://";

/// Any version.
const ANY: &str = "*";

impl LoadedScript {
    /// The modules that it imports, itself included, sorted: k6's by name, others by URL. Those that
    /// `require` loads are left out, as in k6.
    #[must_use]
    pub fn imports(&self) -> Vec<String> {
        let mut imports = self.test.imports();
        imports.push(self.test.main.clone());
        imports.sort();
        imports.dedup();
        imports
    }

    /// The versions of k6 and of its extensions that it needs, by name.
    #[must_use]
    pub fn dependencies(&self) -> BTreeMap<String, String> {
        let imports = self.imports();
        let mut needed = BTreeMap::from([("k6".to_owned(), ANY.to_owned())]);
        let extensions = imports.iter().filter(|name| name.starts_with("k6/x/"));
        needed.extend(extensions.map(|name| (name.clone(), ANY.to_owned())));
        for (path, text) in self.test.files.all() {
            let path = path.to_string_lossy();
            let is_imported =
                imports.iter().any(|name| name.strip_prefix(FILE).unwrap_or(name) == path);
            if !is_imported {
                continue;
            }
            for (name, version) in directives(&String::from_utf8_lossy(&text)) {
                needed.insert(name, version);
            }
        }
        needed
    }

    /// The modules that came from the network, by URL, with their texts.
    pub(super) fn remote_modules(&self) -> impl Iterator<Item = (String, std::sync::Arc<[u8]>)> {
        let all = self.test.files.all().into_iter();
        let remote = all.filter(|(path, _)| Path::new(path).starts_with("https:"));
        remote.map(|(path, text)| (path.to_string_lossy().into_owned(), text))
    }
}

/// The versions in directives such as `"use k6 >= 1.0"` and `"use k6 with k6/x/sql > 1"`, which stand
/// before any statement.
fn directives(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let after = if rest.starts_with("//") || rest.starts_with("#!") {
            rest.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, rest)| rest)
        } else if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            let Some((directive, rest)) = rest[1..].split_once(quote) else { return found };
            found.extend(version(directive));
            rest.trim_start().strip_prefix(';').unwrap_or(rest)
        } else {
            return found;
        };
        rest = after.trim_start();
    }
}

fn version(directive: &str) -> Option<(String, String)> {
    let asked = directive.strip_prefix("use k6")?.trim_start();
    let (name, version) = match asked.strip_prefix("with ") {
        Some(extension) => {
            let extension = extension.trim();
            extension.split_once(char::is_whitespace).unwrap_or((extension, ANY))
        }
        None => ("k6", asked),
    };
    let version: String = version.split_whitespace().collect();
    (!version.is_empty()).then(|| (name.to_owned(), version))
}

#[cfg(test)]
mod tests {
    use super::directives;

    #[test]
    fn directives_stand_before_statements() {
        let text = "// a\n/* b */ \"use strict\";\n'use k6 >= 1.0'\n\
            \"use k6 with k6/x/sql > 1\";\"use k6 with k6/x/dns\"\nimport x from 'y';\n\
            \"use k6 > 9\"";
        let found = directives(text);
        let found: Vec<_> = found.iter().map(|(name, version)| (&**name, &**version)).collect();
        assert_eq!(found, [("k6", ">=1.0"), ("k6/x/sql", ">1"), ("k6/x/dns", "*")]);
        for text in ["", "'use k6 > 1", "/* ", "//", "\"use k6\""] {
            assert!(directives(text).is_empty(), "{text}");
        }
    }
}
