//! Files of a crate that import each other in circles.
//!
//! Two files that need each other are one idea in two places: neither can be read first. A folder's
//! front and what lies in it are one place, so imports between a module and those below it do not
//! count. A name that a front re-exports leads to the file that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Complaint;
use super::source::Source;
use super::table::Room;

const RULE: &str = "circle";

/// A module by its path from the crate's root.
type Module = Vec<String>;

/// The files of a crate.
struct Files<'a> {
    sources: BTreeMap<Module, &'a Source>,
    /// What each re-exports: the name, and the path to it.
    exports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

/// The circles among the files of each crate; test files do not count.
pub fn check(sources: &[&Source], crates: &[Room]) -> Vec<Complaint> {
    crates.iter().flat_map(|room| check_crate(sources, room.name)).collect()
}

fn check_crate(sources: &[&Source], name: &str) -> Vec<Complaint> {
    let root = match name {
        "xtask" => Path::new(name).to_owned(),
        "gake-bench" => Path::new("bench").to_owned(),
        "gake-packaging" => Path::new("packaging").to_owned(),
        _ => Path::new("crates").join(name),
    };
    let root = root.join("src");
    let sources: BTreeMap<Module, &Source> = sources
        .iter()
        .filter_map(|source| Some((module(source.path.strip_prefix(&root).ok()?), *source)))
        .collect();
    let exports =
        sources.iter().map(|(module, source)| (module.clone(), exports(source))).collect();
    let files = Files { sources, exports };
    let arrows: BTreeMap<&Module, BTreeSet<&Module>> = files
        .sources
        .iter()
        .map(|(module, source)| (module, imports(module, source, &files)))
        .collect();
    circles(&arrows).iter().map(|circle| complaint(name, circle)).collect()
}

/// `spec/decide/mod.rs` is `spec::decide`, `lib.rs` the root.
fn module(path: &Path) -> Module {
    let mut parts: Module =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The modules in other files that a file names by `crate::` or `super::`.
fn imports<'a>(module: &Module, source: &Source, files: &'a Files<'_>) -> BTreeSet<&'a Module> {
    let is_apart = |other: &Module| !other.starts_with(module) && !module.starts_with(other);
    paths(source)
        .iter()
        .filter_map(|path| target(module, path, files))
        .filter(|other| is_apart(other))
        .collect()
}

/// Re-exports of re-exports that are followed; more would be a circle of them.
const EXPORTS_MAX: usize = 8;

/// The file that a path leads to: the longest beginning of it that is one, or where that file's
/// front has what comes next from.
fn target<'a>(from: &Module, path: &[String], files: &'a Files<'_>) -> Option<&'a Module> {
    let mut found = None;
    let (mut from, mut path) = (from.clone(), path.to_vec());
    for _ in 0..EXPORTS_MAX {
        let Some((at, rest)) = resolve(&from, &path, files) else { break };
        let exported = rest.first().and_then(|name| files.exports[at].get(name));
        found = Some(at);
        let Some(exported) = exported else { break };
        path = [exported, &rest[1..]].concat();
        from = at.clone();
    }
    found
}

/// The file that a path leads to, and what is left of the path.
fn resolve<'a>(
    from: &Module,
    path: &[String],
    files: &'a Files<'_>,
) -> Option<(&'a Module, Vec<String>)> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (mut at, mut rest) = match path.first().map(String::as_str)? {
        "crate" => (Module::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        _ if ups > 0 => (from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..]),
        _ => return None,
    };
    while let Some(part) = rest.first() {
        at.push(part.clone());
        if !files.sources.contains_key(&at) {
            at.pop();
            break;
        }
        rest = &rest[1..];
    }
    files.sources.get_key_value(&at).map(|(module, _)| (module, rest.to_vec()))
}

/// What a file re-exports: each name, and the path to it from the file.
fn exports(source: &Source) -> BTreeMap<String, Vec<String>> {
    let mut exports = BTreeMap::new();
    for at in source.find_word("use") {
        let before = source.code[..at].rsplit(['\n', ';', '}']).next().unwrap_or_default();
        if !before.trim_start().starts_with("pub") {
            continue;
        }
        let mut tree = Vec::new();
        expand(&source.code[at + "use".len()..], &[], &mut tree);
        for mut path in tree {
            if !matches!(path.first().map(String::as_str), Some("crate" | "self" | "super")) {
                path.insert(0, "self".to_owned());
            }
            if let Some(name) = path.last() {
                exports.insert(name.clone(), path);
            }
        }
    }
    exports
}

/// Every path from `crate` or `super` in the code outside tests, groups in braces taken apart.
fn paths(source: &Source) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in source.code.match_indices(start) {
            let before = source.code[..at].chars().next_back();
            let continues = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':'));
            if !continues && !source.in_tests(at) {
                expand(&source.code[at..], &[], &mut paths);
            }
        }
    }
    paths
}

/// Reads one path, or a tree of them, and says how many bytes it has.
fn expand(text: &str, before: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    loop {
        at += blanks(&text[at..]);
        let name: usize = text[at..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .map(char::len_utf8)
            .sum();
        if name > 0 {
            path.push(text[at..at + name].to_owned());
            at += name;
            at += blanks(&text[at..]);
            if !text[at..].starts_with("::") {
                break;
            }
            at += 2;
        } else if text[at..].starts_with('{') {
            at += 1;
            loop {
                at += expand(&text[at..], &path, paths);
                // What an item has after its path, as `as Name` or `*`.
                at += text[at..].find([',', '}']).unwrap_or(text.len() - at);
                let ends = !text[at..].starts_with(',');
                at += usize::from(at < text.len());
                at += blanks(&text[at..]);
                if ends || text[at..].starts_with('}') {
                    return at + usize::from(!ends);
                }
            }
        } else {
            break;
        }
    }
    paths.push(path);
    at
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Groups of two or more modules in which each can be reached from each.
fn circles(arrows: &BTreeMap<&Module, BTreeSet<&Module>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        arrows.keys().map(|from| (*from, reach(from, arrows))).collect();
    let mut listed = BTreeSet::new();
    let mut circles = Vec::new();
    for (from, there) in &reached {
        if !there.contains(*from) || listed.contains(from) {
            continue;
        }
        let circle: Vec<&Module> =
            there.iter().copied().filter(|other| reached[*other].contains(*from)).collect();
        listed.extend(circle.iter().copied());
        circles.push(circle.iter().map(|module| module.join("::")).collect());
    }
    circles
}

fn reach<'a>(
    from: &Module,
    arrows: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = arrows.get(from).into_iter().flatten().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(arrows.get(next).into_iter().flatten());
        }
    }
    reached
}

fn complaint(name: &str, circle: &[String]) -> Complaint {
    let message = format!("{} import each other in a circle", circle.join(", "));
    Complaint::error(name, RULE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| {
                Source::new(&Path::new("crates/gake-x/src").join(path), (*text).to_owned())
            })
            .collect();
        let sources: Vec<_> = sources.iter().collect();
        let room = Room { name: "gake-x", level: 0, may_use: Vec::new(), strangers: Vec::new() };
        check(&sources, &[room]).into_iter().map(|complaint| complaint.message).collect()
    }

    #[test]
    fn files_that_need_each_other_are_reported() {
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use crate::{c::C, b::{B, D}};", "fn f() { crate::a::g() }"),
            ("use super::b;", "use super::{c, a as first};"),
        ] {
            let messages = found(&[("a.rs", a), ("b.rs", b), ("c.rs", "")]);
            assert_eq!(messages, ["a, b import each other in a circle"], "{a} {b}");
        }
    }

    #[test]
    fn a_circle_of_three_is_one() {
        let messages = found(&[
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "use crate::c::C;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ]);
        assert_eq!(messages, ["a, b, c import each other in a circle"]);
    }

    #[test]
    fn a_name_leads_through_the_front_that_exports_it() {
        let messages = found(&[
            ("a.rs", "pub use crate::d::E; use crate::b::Name;"),
            ("b/mod.rs", "mod inner; mod other; pub use inner::{Name, Second}; pub use other::F;"),
            ("b/inner.rs", "use crate::a::A;"),
            ("b/other.rs", ""),
            ("c.rs", "use crate::b::F; use crate::a::E;"),
            ("d.rs", "use crate::c::C;"),
        ]);
        assert_eq!(
            messages,
            ["a, b::inner import each other in a circle", "c, d import each other in a circle"]
        );
    }

    #[test]
    fn arrows_one_way_and_folders_are_silent() {
        let messages = found(&[
            ("lib.rs", "pub use a::A; use crate::a::B;"),
            ("a/mod.rs", "mod b; pub use b::C; use crate::a::b::C;"),
            ("a/b.rs", "use super::A; use crate::d::D;"),
            (
                "d.rs",
                "use other::a::A; // use crate::a::A;\n#[cfg(test)]\nmod t { use crate::a::A; }",
            ),
        ]);
        assert_eq!(messages, Vec::<String>::new());
    }
}
