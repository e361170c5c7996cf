//! Words that comments, messages and documents do without: plain, idiomatic technical English.

use super::Complaint;
use super::mask::{Kind, prose};
use super::source::Source;

/// Its name.
const RULE: &str = "language";

/// Words and phrases that stand nowhere, and what to write in their place.
const EVERYWHERE: &[(&str, &str)] = &[
    ("nobody", "name who or what does not"),
    ("somebody", "name who: the caller, a client, a user"),
    ("anybody", "name who: the caller, a client, a user"),
    ("whoever", "name who: the caller, a client, a user"),
    ("told", "logged, reported, passed, counted"),
    ("to be had", "available"),
    ("goes on", "continues, runs"),
    ("what came of", "the result, the outcome"),
    ("of nothing", "empty, zero"),
    ("those of", "repeat the noun"),
    ("in turns", "alternately, in turn"),
];

/// Words that comments do without; in messages and identifiers they may be another tool's.
const COMMENTS: &[(&str, &str)] =
    &[("answer", "response"), ("answers", "responses"), ("answered", "responded")];

/// Files that need a word, and what for; one that is no longer needed is an error.
pub const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/gake-k6/src/archive.rs", "nobody", "k6's home folder"),
    ("crates/gake-k6/src/paths.rs", "nobody", "k6's home folder"),
    ("crates/gake-lab/src/database/users.rs", "nobody", "a name"),
    ("crates/gake-compat/src/h2load/options.rs", "those of", "h2load's"),
    ("crates/gake-compat/src/k6/mod.rs", "those of", "k6's"),
];

/// A text: a Rust file or a document.
pub enum Text<'a> {
    /// Its comments and literals are read.
    Rust(&'a Source),
    /// The path and the whole text.
    Document(&'a str, &'a str),
}

/// The places where the texts have a word of the lists that no exception covers, and the exceptions
/// that cover none.
pub fn check(texts: &[Text<'_>], exceptions: &[(&str, &str, &str)]) -> Vec<Complaint> {
    let found: Vec<_> = texts.iter().flat_map(Text::found).collect();
    let covers = |one: &(&str, &str, &str), found: &Found| {
        (found.path.as_str(), found.word) == (one.0, one.1)
    };
    let stale = exceptions.iter().filter(|one| !found.iter().any(|found| covers(one, found)));
    let stale = stale.map(|(path, word, why)| {
        Complaint::error(
            *path,
            RULE,
            format!("the exception for `{word}` ({why}) is no longer needed"),
        )
    });
    let not_excused = |found: &&Found| !exceptions.iter().any(|one| covers(one, found));
    let complaints = found.iter().filter(not_excused).map(|found| {
        Complaint::error(
            format!("{}:{}", found.path, found.line),
            RULE,
            format!("`{}`: {}", found.word, found.instead),
        )
    });
    complaints.chain(stale).collect()
}

/// A word of the lists in a text.
struct Found {
    path: String,
    line: usize,
    word: &'static str,
    instead: &'static str,
}

impl Text<'_> {
    fn found(&self) -> Vec<Found> {
        match self {
            Self::Rust(source) => {
                let path = source.name();
                let comments = prose(&source.text, Kind::Comment);
                let literals = prose(&source.text, Kind::Literal);
                let lists = [EVERYWHERE, COMMENTS];
                let mut found = find(&path, &comments, &lists);
                found.extend(find(&path, &literals, &lists[..1]));
                found
            }
            Self::Document(path, text) => find(path, text, &[EVERYWHERE]),
        }
    }
}

fn find(path: &str, text: &str, lists: &[&[(&'static str, &'static str)]]) -> Vec<Found> {
    let words = words(text);
    let starts = |at: usize, phrase: &str| {
        let mut after: Option<usize> = None;
        phrase.split(' ').enumerate().all(|(n, wanted)| {
            let Some(&(start, word)) = words.get(at + n) else { return false };
            // Nothing but blanks is within a phrase.
            let joined = after.is_none_or(|end| text[end..start].trim().is_empty());
            after = Some(start + word.len());
            joined && word.eq_ignore_ascii_case(wanted)
        })
    };
    let line = |at: usize| text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
    let all = lists.iter().flat_map(|list| list.iter());
    let places = all.flat_map(|(word, instead)| {
        (0..words.len()).filter(|at| starts(*at, word)).map(|at| Found {
            path: path.to_owned(),
            line: line(words[at].0),
            word,
            instead,
        })
    });
    places.collect()
}

/// The words of a text and where they begin.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let inside = c.is_alphanumeric() || c == '_';
        match (inside, start) {
            (true, None) => start = Some(at),
            (false, Some(begun)) => {
                words.push((begun, &text[begun..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn places(text: &str) -> Vec<String> {
        let source = Source::new(Path::new("crates/x/src/a.rs"), text.to_owned());
        let found = check(&[Text::Rust(&source)], &[]);
        found.into_iter().map(|c| format!("{} {}", c.place, c.message)).collect()
    }

    #[test]
    fn words_in_comments_and_literals_are_found() {
        let text = "//! Nobody.\nfn told() { f(\"it is\\ntold\"); } // to be\n// had\n";
        assert_eq!(
            places(text),
            [
                "crates/x/src/a.rs:1 `nobody`: name who or what does not",
                "crates/x/src/a.rs:2 `to be had`: available",
                "crates/x/src/a.rs:2 `told`: logged, reported, passed, counted",
            ]
        );
        assert_eq!(
            places("/// An answer.\nfn f() { \"answer\" }"),
            ["crates/x/src/a.rs:1 `answer`: response"]
        );
    }

    #[test]
    fn parts_of_words_and_code_are_not() {
        assert!(places("// retold, toldo, answering, to be, had\nlet nobody = told;\n").is_empty());
        assert!(places("// what is to be\nlet x = 1; // had\n").is_empty());
    }

    #[test]
    fn an_exception_is_used_or_stale() {
        let text = Text::Document("docs/a.md", "Those of k6.");
        let exception = |word| ("docs/a.md", word, "a reason");
        assert!(check(&[text], &[exception("those of")]).is_empty());
        let text = Text::Document("docs/a.md", "Users.");
        let found = check(&[text], &[exception("those of")]);
        assert!(matches!(found.as_slice(), [one] if !one.warning));
    }
}
