//! One word, one meaning: two crates never have public types of the same name.

use std::collections::{BTreeMap, BTreeSet};

use super::Complaint;
use super::source::Source;

/// What makes a type.
const KEYWORDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// A public type's name, and where it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    name: String,
    place: String,
    package: String,
}

/// The public types of a library's file; the binary's are its own.
pub fn public_types(source: &Source, is_test: bool) -> Vec<Named> {
    let path = source.name();
    let package = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
    let Some((package, _)) = package.filter(|(package, _)| *package != "gake" && !is_test) else {
        return Vec::new();
    };
    let found = KEYWORDS.iter().flat_map(|word| source.find_word(word));
    let found = found.filter_map(|at| {
        let before = source.code[..at].trim_end();
        let line = before.rsplit('\n').next().unwrap_or_default();
        if line.trim_start() != "pub" || is_associated(&source.code[..at]) {
            return None;
        }
        let after = source.code[at..].split_once(char::is_whitespace)?.1;
        let name = after.trim_start();
        let end = name.find(|char: char| !char.is_alphanumeric() && char != '_')?;
        Some(Named {
            name: name[..end].to_owned(),
            place: format!("{path}:{}", source.line_of(at)),
            package: package.to_owned(),
        })
    });
    found.collect()
}

/// Whether the end of `code` is within a trait or an implementation, whose types are its own;
/// types of a macro or module are shared.
fn is_associated(code: &str) -> bool {
    let mut open = Vec::new();
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'{' => open.push(at),
            b'}' => _ = open.pop(),
            _ => {}
        }
    }
    let Some(at) = open.pop() else { return false };
    let head = code[..at].rsplit(['{', '}', ';']).next().unwrap_or_default();
    head.split(|char: char| !char.is_alphanumeric() && char != '_')
        .any(|word| matches!(word, "impl" | "trait"))
}

/// Names that public types of two crates have.
pub fn check(types: &[Named]) -> Vec<Complaint> {
    let mut by_name: BTreeMap<&str, Vec<&Named>> = BTreeMap::new();
    for named in types {
        by_name.entry(&named.name).or_default().push(named);
    }
    let packages = |all: &[&Named]| {
        all.iter().map(|named| named.package.clone()).collect::<BTreeSet<_>>().len()
    };
    let twins = by_name.into_iter().filter(|(_, all)| packages(all) > 1);
    let complaints = twins.map(|(name, all)| {
        let others: Vec<_> = all[1..].iter().map(|named| named.place.as_str()).collect();
        Complaint::error(
            all[0].place.clone(),
            "one-name",
            format!("{name} is also a public type at {}", others.join(", ")),
        )
    });
    complaints.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn types(path: &str, text: &str) -> Vec<Named> {
        public_types(&Source::new(Path::new(path), text.to_owned()), false)
    }

    #[test]
    fn types_in_macros_and_modules_are_seen() {
        let text = "macro_rules! table {\n    ($($name:ident),*) => {\n        \
            #[derive(Debug)]\n        pub struct Inside { $(pub $name: u8),* }\n        \
            impl Inside {\n            pub type Own = u8;\n        }\n    };\n}\n\
            pub mod inner {\n    pub enum Deep { A }\n}\n\
            pub trait Open {\n    pub type Mine;\n}\n";
        let names: Vec<_> =
            types("crates/gake-core/src/a.rs", text).into_iter().map(|named| named.name).collect();
        assert_eq!(names, ["Inside", "Deep", "Open"]);
    }

    #[test]
    fn two_crates_may_not_share_a_name() {
        let text = "pub struct Load;\nstruct Own;\npub(crate) enum Inner {}\n\
            impl Work for X {\n    pub type Load = u8;\n}\n// pub struct Comment\n";
        let mut all = types("crates/gake-core/src/a.rs", text);
        assert_eq!(all.len(), 1);
        assert!(check(&all).is_empty());
        all.extend(types("crates/gake-core/src/b.rs", "pub enum Load {}"));
        assert!(check(&all).is_empty(), "a crate's modules tell their own types apart");
        all.extend(types("crates/gake-judge/src/b.rs", "pub enum Load {}"));
        let found = check(&all);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("crates/gake-judge/src/b.rs:1"), "{}", found[0].message);
        assert!(types("crates/gake/src/a.rs", text).is_empty());
    }
}
