//! Sizes and module docs: a file is read in one sitting and begins with its purpose.
//!
//! The length of a function is clippy's `too_many_lines`.

use super::Complaint;
use super::source::Source;
use super::table::{FILE_LINES_BUDGET, FILE_LINES_MAX};

/// The file's module doc and its length.
pub fn check(source: &Source, is_test: bool) -> Vec<Complaint> {
    let complaint = |rule, message, warning| Complaint {
        place: format!("{}:1", source.name()),
        rule,
        message,
        warning,
    };
    let mut complaints = Vec::new();
    if !source.text.starts_with("//!") {
        let message = "does not begin with a `//!` that says what the file is for";
        complaints.push(complaint("module-doc", message.to_owned(), false));
    }
    let lines = source.lines_without_tests();
    // Tests are tables: they may be as long as their cases.
    if !is_test && lines > FILE_LINES_BUDGET {
        let message =
            format!("has {lines} lines (budget {FILE_LINES_BUDGET}, limit {FILE_LINES_MAX})");
        complaints.push(complaint("file-size", message, lines <= FILE_LINES_MAX));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn found(text: String, is_test: bool) -> Vec<(&'static str, bool)> {
        let source = Source::new(Path::new("crates/gake-core/src/a.rs"), text);
        check(&source, is_test).into_iter().map(|c| (c.rule, c.warning)).collect()
    }

    #[test]
    fn a_file_begins_with_its_purpose() {
        assert_eq!(found("fn a() {}\n".to_owned(), false), [("module-doc", false)]);
        assert_eq!(found("//! Doc.\nfn a() {}\n".to_owned(), false), []);
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
