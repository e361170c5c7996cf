//! One Rust file as tidy sees it: its code and its tests.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::mask::mask;

/// A file, with what is needed to judge it.
pub struct Source {
    /// Relative to the repository's root.
    pub path: PathBuf,
    /// As it is on the disk.
    pub text: String,
    /// The code alone, byte for byte in the same place.
    pub code: String,
    /// The byte ranges of the items under `#[cfg(test)]`.
    pub tests: Vec<Range<usize>>,
}

impl Source {
    /// Reads the structure out of the text.
    pub fn new(path: &Path, text: String) -> Self {
        let code = mask(&text);
        let tests = test_items(&code);
        Self { path: path.to_owned(), text, code, tests }
    }

    /// The path with `/`, for comparisons.
    pub fn name(&self) -> String {
        self.path.to_string_lossy().replace('\\', "/")
    }

    /// Whether the path says that the whole file is test code.
    pub fn is_test_path(&self) -> bool {
        let name = self.name();
        name.split('/').any(|part| part == "tests" || part == "benches" || part == "tests.rs")
            || name.ends_with("_tests.rs")
    }

    /// The files of `#[cfg(test)] mod name;`.
    pub fn test_module_files(&self) -> Vec<PathBuf> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let dir = self.path.parent().unwrap_or(Path::new(""));
        let dir = match stem.as_ref() {
            "mod" | "lib" | "main" => dir.to_owned(),
            own => dir.join(own),
        };
        let names = self.tests.iter().filter_map(|range| {
            let item = self.code[range.clone()].trim_end().strip_suffix(';')?;
            item.rsplit_once("mod ").map(|(_, name)| name.trim().to_owned())
        });
        names
            .flat_map(|name| [dir.join(format!("{name}.rs")), dir.join(name).join("mod.rs")])
            .collect()
    }

    /// The line, from 1, of a byte.
    pub fn line_of(&self, byte: usize) -> usize {
        self.code[..byte].bytes().filter(|byte| *byte == b'\n').count() + 1
    }

    /// Whether a byte belongs to a test.
    pub fn in_tests(&self, byte: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&byte))
    }

    /// The lines of the file that are not tests.
    pub fn lines_without_tests(&self) -> usize {
        let tests: usize =
            self.tests.iter().map(|range| self.text[range.clone()].lines().count()).sum();
        self.text.lines().count().saturating_sub(tests)
    }

    /// Where a word stands in the code, tests left out.
    pub fn find_word<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        words(&self.code, word).filter(|at| !self.in_tests(*at))
    }
}

/// The byte ranges of the items whose attribute begins `cfg(test` or `cfg(all(test`.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let starts = code.match_indices("#[cfg(").map(|(at, _)| at);
    for at in starts.filter(|at| {
        let rest = &code[at + "#[cfg(".len()..];
        rest.starts_with("test)") || rest.starts_with("all(test")
    }) {
        if ranges.last().is_none_or(|last| at >= last.end) {
            ranges.push(at..item_end(code, at));
        }
    }
    ranges
}

/// Where the item that begins at `at` ends: after its block, or its semicolon.
fn item_end(code: &str, at: usize) -> usize {
    let mut nested = 0_usize; // Within (...) or [...].
    let mut braces = 0_usize;
    for (offset, byte) in code[at..].bytes().enumerate() {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && nested == 0 {
                    return at + offset + 1;
                }
            }
            b';' if braces == 0 && nested == 0 => return at + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Where a word stands that is not a part of a longer one.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |char: char| char.is_alphanumeric() || char == '_';
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = code[..*at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let open = word.ends_with(|char: char| !part(char));
        !before.is_some_and(part) && (open || !after.is_some_and(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(Path::new(path), text.to_owned())
    }

    #[test]
    fn tests_are_left_out() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { println!(); }\n}\nfn c() {}\n";
        let source = source("a.rs", text);
        assert_eq!(source.find_word("println!").count(), 0);
        assert_eq!(source.lines_without_tests(), 2);
    }

    #[test]
    fn words_are_whole() {
        let source = source("a.rs", "eprintln!(); xprintln!(); // println!\nprintln!()");
        assert_eq!(source.find_word("println!").count(), 1);
        assert_eq!(source.find_word("print").count(), 0);
    }

    #[test]
    fn files_of_test_modules_are_known() {
        let text = "#[cfg(test)]\nmod cases;";
        let files = source("crates/x/src/plan.rs", text).test_module_files();
        assert_eq!(files[0], Path::new("crates/x/src/plan/cases.rs"));
        let files = source("crates/x/src/lib.rs", text).test_module_files();
        assert_eq!(files[1], Path::new("crates/x/src/cases/mod.rs"));
        assert!(source("crates/x/tests/e2e.rs", "").is_test_path());
        assert!(!source("crates/x/src/testing.rs", "").is_test_path());
    }
}
