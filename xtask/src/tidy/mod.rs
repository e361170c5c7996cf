//! `cargo xtask tidy`: the rules of the house as a test, so that reviews discuss design.
//!
//! The rules and their exceptions are data ([`table`]); the checks are pure
//! functions over text and JSON ([`arrows`], [`circles`], [`language`], [`map`], [`names`],
//! [`sizes`], [`words`]); only this file touches the disk.

mod arrows;
mod circles;
mod language;
mod map;
mod mask;
mod names;
mod sizes;
mod source;
mod table;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace;
use language::Text;
use source::Source;

/// One thing that is wrong, or nearly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The file (with its line, from 1) or the crate it is about.
    pub place: String,
    /// The rule's name, as the allow-list has it.
    pub rule: &'static str,
    /// One sentence.
    pub message: String,
    /// A warning does not fail the task.
    pub warning: bool,
}

impl Complaint {
    fn error(place: impl Into<String>, rule: &'static str, message: impl Into<String>) -> Self {
        Self { place: place.into(), rule, message: message.into(), warning: false }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.warning { "warning" } else { "error" };
        write!(f, "{word}: {} [{}] {}", self.place, self.rule, self.message)
    }
}

/// The task.
pub fn main(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("usage: cargo xtask tidy");
    }
    let (complaints, files) = check(workspace::root())?;
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    let errors = complaints.iter().filter(|complaint| !complaint.warning).count();
    let warnings = complaints.len() - errors;
    println!("tidy: {files} files, {errors} errors, {warnings} warnings");
    if errors > 0 {
        bail!("tidy found {errors} errors");
    }
    Ok(())
}

/// Everything tidy has to say about the repository, and how many files it read.
fn check(root: &Path) -> Result<(Vec<Complaint>, usize)> {
    let mut complaints = arrows::check_table();
    complaints.extend(arrows::check(&workspace::metadata()?)?);
    let sources = read_sources(root)?;
    let test_files: BTreeSet<PathBuf> =
        sources.iter().flat_map(Source::test_module_files).collect();
    // What is in the folder of a test module belongs to it.
    let is_within = |source: &Source| {
        let mut folders = source.path.ancestors().skip(1);
        folders.any(|folder| test_files.contains(&folder.join("mod.rs")))
    };
    let is_test = |source: &Source| {
        source.is_test_path() || test_files.contains(&source.path) || is_within(source)
    };
    let mut found = Vec::new();
    let mut types = Vec::new();
    for source in &sources {
        let is_test = is_test(source);
        found.extend(sizes::check(source, is_test));
        found.extend(words::check(source, is_test));
        types.extend(names::public_types(source, is_test));
    }
    let code = |source: &&Source| !is_test(source);
    let of_products: Vec<_> = sources.iter().filter(code).collect();
    complaints.extend(circles::check(&of_products, &table::ROOMS));
    complaints.extend(names::check(&types));
    let architecture = root.join("ARCHITECTURE.md");
    let page = fs::read_to_string(&architecture).context("ARCHITECTURE.md")?;
    let drawn = map::drawn(&page, &table::ROOMS).unwrap_or_default();
    if std::env::var_os("GAKE_BLESS").is_some() && !drawn.is_empty() {
        fs::write(&architecture, drawn).context("ARCHITECTURE.md")?;
    } else {
        complaints.extend(map::check(&page, &table::ROOMS, &sources));
    }
    let documents = read_documents(root)?;
    complaints.extend(map::unlisted(&documents));
    // The list of words itself is not read.
    let is_read = |source: &&Source| !source.path.ends_with("tidy/language.rs");
    let rust = sources.iter().filter(is_read).map(Text::Rust);
    let texts: Vec<_> =
        rust.chain(documents.iter().map(|(path, text)| Text::Document(path, text))).collect();
    complaints.extend(language::check(&texts, language::EXCEPTIONS));
    complaints.extend(found);
    Ok((complaints, sources.len()))
}

/// The documents and examples that users and contributors read: each one's path and text.
fn read_documents(root: &Path) -> Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for folder in ["docs", "examples/k6"] {
        let entries = fs::read_dir(root.join(folder)).context(folder)?.flatten();
        let entries = entries.map(|one| format!("{folder}/{}", one.file_name().to_string_lossy()));
        names.extend(entries.filter(|name| name.ends_with(".md") || name.ends_with(".js")));
    }
    names.sort();
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "fuzz/README.md"];
    names.extend(pages.map(str::to_owned));
    let read = |name: String| {
        let text = fs::read_to_string(root.join(&name)).with_context(|| name.clone())?;
        Ok((name, text))
    };
    names.into_iter().map(read).collect()
}

/// Every Rust file of ours, in order of its path.
fn read_sources(root: &Path) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    for dir in ["bench", "crates", "packaging", "xtask", "fuzz"] {
        collect(&root.join(dir), &mut files)?;
    }
    files.sort();
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Ok(Source::new(file.strip_prefix(root).unwrap_or(file), text))
    };
    files.iter().map(read).collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
