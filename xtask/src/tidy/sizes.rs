//! Sizes and module docs: a file is read in one sitting and begins with its purpose.

use super::Complaint;
use super::source::Source;
use super::table::{FILE_LINES_BUDGET, FILE_LINES_MAX, FUNCTION_LINES_BUDGET, FUNCTION_LINES_MAX};

/// The file's module doc, its length and the lengths of its functions.
pub fn check(source: &Source, is_test: bool) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    if !source.text.starts_with("//!") {
        complaints.push(Complaint {
            place: format!("{}:1", source.name()),
            rule: "module-doc",
            message: "does not begin with a `//!` that says what the file is for".to_owned(),
            warning: false,
        });
    }
    // Tests are tables: they may be as long as their cases.
    if is_test {
        return complaints;
    }
    let lines = source.lines_without_tests();
    let place = format!("{}:1", source.name());
    complaints.extend(size(
        place,
        "file-size",
        "the file",
        lines,
        (FILE_LINES_BUDGET, FILE_LINES_MAX),
    ));
    for function in source.functions() {
        let place = format!("{}:{}", source.name(), function.line);
        let what = format!("fn {}", function.name);
        let limits = (FUNCTION_LINES_BUDGET, FUNCTION_LINES_MAX);
        complaints.extend(size(place, "function-size", &what, function.lines, limits));
    }
    complaints
}

fn size(
    place: String,
    rule: &'static str,
    what: &str,
    lines: usize,
    (budget, max): (usize, usize),
) -> Option<Complaint> {
    (lines > budget).then(|| Complaint {
        place,
        rule,
        message: format!("{what} has {lines} lines (budget {budget}, limit {max})"),
        warning: lines <= max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn found(text: String, is_test: bool) -> Vec<(&'static str, bool)> {
        let source = Source::new(Path::new("crates/gake-core/src/a.rs"), text);
        check(&source, is_test).into_iter().map(|c| (c.rule, c.warning)).collect()
    }

    fn function_of(lines: usize) -> String {
        format!("//! Doc.\nfn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_begins_with_its_purpose() {
        assert_eq!(found("fn a() {}\n".to_owned(), false), [("module-doc", false)]);
        assert_eq!(found("//! Doc.\nfn a() {}\n".to_owned(), false), []);
    }

    #[test]
    fn a_function_over_the_budget_warns_and_over_the_limit_fails() {
        assert_eq!(found(function_of(70), false), []);
        assert_eq!(found(function_of(71), false), [("function-size", true)]);
        assert_eq!(found(function_of(101), false), [("function-size", false)]);
    }

    #[test]
    fn a_file_over_the_limit_fails_unless_it_is_a_test() {
        let text = format!("//! Doc.\n{}", "const A: u8 = 1;\n".repeat(500));
        assert_eq!(found(text.clone(), false), [("file-size", false)]);
        assert_eq!(found(text, true), []);
    }

    #[test]
    fn its_test_module_does_not_count() {
        let tests = "    const A: u8 = 1;\n".repeat(600);
        let text = format!("//! Doc.\n#[cfg(test)]\nmod tests {{\n{tests}}}\n");
        assert_eq!(found(text, false), []);
    }
}
