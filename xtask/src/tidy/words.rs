//! Words that have their place: printing, exiting, argv, environment, clocks.

use super::Complaint;
use super::source::Source;
use super::table::{WORDS, Words};

/// The words of the table that stand where they may not.
pub fn check(source: &Source, is_test: bool) -> Vec<Complaint> {
    let name = source.name();
    // A build script speaks to cargo through stdout.
    if is_test || name.ends_with("/build.rs") {
        return Vec::new();
    }
    let covers = |rule: &&Words| {
        (rule.within.is_empty() || rule.within.iter().any(|prefix| name.starts_with(prefix)))
            && !rule.except.iter().any(|prefix| name.starts_with(prefix))
    };
    WORDS.iter().filter(covers).flat_map(|rule| check_rule(source, rule)).collect()
}

fn check_rule(source: &Source, rule: &Words) -> Vec<Complaint> {
    let found = rule
        .words
        .split_whitespace()
        .flat_map(|word| source.find_word(word).map(move |at| (at, word)));
    found
        .map(|(at, word)| {
            let place = format!("{}:{}", source.name(), source.line_of(at));
            Complaint::error(place, rule.rule, format!("`{word}`: {}", rule.why))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn found(path: &str, text: &str) -> Vec<Complaint> {
        check(&Source::new(Path::new(path), text.to_owned()), false)
    }

    #[test]
    fn only_the_binary_prints_and_exits() {
        let text =
            "fn a() { println!(\"x\"); std::process::exit(1) }\nfn b() { std::env::var(\"X\"); }";
        let complaints = found("crates/gake-wire/src/a.rs", text);
        let places: Vec<_> = complaints.iter().map(|c| c.place.as_str()).collect();
        assert_eq!(
            places,
            [
                "crates/gake-wire/src/a.rs:1",
                "crates/gake-wire/src/a.rs:1",
                "crates/gake-wire/src/a.rs:2"
            ]
        );
        assert!(found("crates/gake-session/src/console.rs", text).is_empty());
        let printing = found("crates/gake/src/main.rs", text);
        assert_eq!(printing.iter().map(|c| c.rule).collect::<Vec<_>>(), ["stream-door"]);
        assert!(found("xtask/src/main.rs", text).is_empty());
    }

    #[test]
    fn lookalikes_are_kept() {
        let text = "//! println!\nfn a() { env!(\"X\"); \"println!\"; writeln!(x); let y = env::variant; }";
        assert!(found("crates/gake-wire/src/a.rs", text).is_empty());
    }

    #[test]
    fn the_pure_crates_read_no_clock() {
        let text = "fn a() { Instant::now(); }";
        assert_eq!(found("crates/gake-core/src/a.rs", text).len(), 1);
        assert_eq!(found("crates/gake-report/src/a.rs", text).len(), 1);
        assert!(found("crates/gake-engine/src/a.rs", text).is_empty());
    }
}
