//! The functions, read from their table.

use std::collections::BTreeMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("functions.txt");

/// A function.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) category: &'static str,
    pub(super) name: &'static str,
    pub(super) parameters: Vec<Parameter>,
    pub(super) source: Source,
}

/// A parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) default: Option<&'static str>,
    pub(super) is_optional: bool,
}

/// What makes the value of a function.
#[derive(Debug)]
pub(super) enum Source {
    /// One of these.
    Words(Vec<&'static str>),
    /// One of these templates.
    Templates(Vec<&'static str>),
    /// A function of Rust.
    Code,
}

/// All functions by name; names that begin with `_` are for templates only.
pub(super) fn functions() -> &'static BTreeMap<&'static str, Function> {
    static FUNCTIONS: OnceLock<BTreeMap<&str, Function>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.filter_map(parse).map(|function| (function.name, function)).collect()
    })
}

fn parse(line: &'static str) -> Option<Function> {
    let (category, rest) = line.split_once(' ')?;
    let end = rest.find([':', ' ', '('])?;
    let (name, rest) = rest.split_at(end);
    let (parameters, rest) = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?,
        None => ("", rest),
    };
    let parameters = parameters.split(", ").filter(|text| !text.is_empty()).map(parameter);
    let source = match rest.trim_start().split_at_checked(1)? {
        (":", words) => Source::Words(words.trim().split(", ").collect()),
        ("=", templates) => Source::Templates(templates.trim().split(" | ").collect()),
        _ => Source::Code,
    };
    Some(Function { category, name, parameters: parameters.collect(), source })
}

fn parameter(text: &'static str) -> Parameter {
    let (name, default) = match text.split_once('=') {
        Some((name, default)) => (name, Some(default)),
        None => (text, None),
    };
    let is_optional = name.ends_with('?');
    Parameter { name: name.trim_end_matches('?'), default, is_optional }
}

/// The names of the categories.
pub(super) fn categories() -> Vec<&'static str> {
    let mut names: Vec<_> = functions().values().map(|function| function.category).collect();
    names.push(ALL);
    names.sort_unstable();
    names.dedup();
    names
}

/// The category of all functions.
const ALL: &str = "zen";

/// The function of a category.
pub(super) fn find(category: &str, name: &str) -> Option<&'static Function> {
    let function = functions().get(name).filter(|_| !name.starts_with('_'))?;
    (category == ALL || function.category == category).then_some(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(
            functions().len(),
            lines.count(),
            "a line is not valid, or a name is there twice"
        );
        let public = functions().keys().filter(|name| !name.starts_with('_'));
        // As many as the extension has.
        assert_eq!(public.count(), 303);
        assert_eq!(categories().len(), 29);
        assert!(find("zen", "firstName").is_some() && find("person", "city").is_none());
        let password = &functions()["password"].parameters;
        assert_eq!(
            password[5],
            Parameter { name: "length", default: Some("12"), is_optional: false }
        );
        assert!(functions()["creditCardNumber"].parameters[1].is_optional);
    }

    #[test]
    fn templates_name_functions_that_exist() {
        for function in functions().values() {
            let Source::Templates(templates) = &function.source else { continue };
            for part in templates.iter().flat_map(|template| template.split('{').skip(1)) {
                let name = part.split('}').next().unwrap_or_default();
                let name = name.rsplit(':').next().unwrap_or_default();
                let source = functions().get(name).map(|function| &function.source);
                let is_text = source.is_some_and(|source| !matches!(source, Source::Code));
                assert!(is_text, "{}: {name}", function.name);
            }
        }
    }
}
