//! Files of a crate that import each other in circles.
//!
//! Two files that need each other are one idea in two places: neither can be read first. A folder's
//! front and what lies in it are one place, so imports between a module and those below it do not
//! count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Complaint;
use super::source::Source;

const RULE: &str = "circle";

/// A module by its path from the crate's root.
type Module = Vec<String>;

/// The circles among the files of each of `crates`; test files do not count.
pub fn check(sources: &[&Source], crates: &[&str]) -> Vec<Complaint> {
    crates.iter().flat_map(|name| check_crate(sources, name)).collect()
}

fn check_crate(sources: &[&Source], name: &str) -> Vec<Complaint> {
    let root = Path::new("crates").join(name).join("src");
    let modules: BTreeMap<Module, &Source> = sources
        .iter()
        .filter_map(|source| Some((module(source.path.strip_prefix(&root).ok()?), *source)))
        .collect();
    let arrows: BTreeMap<&Module, BTreeSet<&Module>> = modules
        .iter()
        .map(|(module, source)| (module, imports(module, source, &modules)))
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
fn imports<'a>(
    module: &Module,
    source: &Source,
    modules: &'a BTreeMap<Module, &Source>,
) -> BTreeSet<&'a Module> {
    let is_apart = |other: &Module| !other.starts_with(module) && !module.starts_with(other);
    paths(source)
        .iter()
        .filter_map(|path| target(module, path, modules))
        .filter(|other| is_apart(other))
        .collect()
}

/// The file that a path leads to: the longest beginning of it that is one.
fn target<'a>(
    from: &Module,
    path: &[String],
    modules: &'a BTreeMap<Module, &Source>,
) -> Option<&'a Module> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (mut at, rest) = match path.first().map(String::as_str)? {
        "crate" => (Module::new(), &path[1..]),
        _ if ups > 0 => (from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..]),
        _ => return None,
    };
    for part in rest {
        at.push(part.clone());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    modules.get_key_value(&at).map(|(module, _)| module)
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
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for (from, there) in &reached {
        if !there.contains(*from) || told.contains(from) {
            continue;
        }
        let circle: Vec<&Module> =
            there.iter().copied().filter(|other| reached[*other].contains(*from)).collect();
        told.extend(circle.iter().copied());
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
    Complaint { place: name.to_owned(), rule: RULE, message, warning: false }
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
        check(&sources, &["gake-x"]).into_iter().map(|complaint| complaint.message).collect()
    }

    #[test]
    fn files_that_need_each_other_are_told() {
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use crate::{c::C, b::{B, D}};", "fn f() { crate::a::g() }"),
            ("use super::b;", "use super::{c, a as first};"),
        ] {
            let told = found(&[("a.rs", a), ("b.rs", b), ("c.rs", "")]);
            assert_eq!(told, ["a, b import each other in a circle"], "{a} {b}");
        }
    }

    #[test]
    fn a_circle_of_three_is_one() {
        let told = found(&[
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "use crate::c::C;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ]);
        assert_eq!(told, ["a, b, c import each other in a circle"]);
    }

    #[test]
    fn arrows_one_way_and_folders_are_silent() {
        let told = found(&[
            ("lib.rs", "pub use a::A; use crate::a::B;"),
            ("a/mod.rs", "mod b; pub use b::C; use crate::a::b::C;"),
            ("a/b.rs", "use super::A; use crate::d::D;"),
            (
                "d.rs",
                "use other::a::A; // use crate::a::A;\n#[cfg(test)]\nmod t { use crate::a::A; }",
            ),
        ]);
        assert_eq!(told, Vec::<String>::new());
    }
}
