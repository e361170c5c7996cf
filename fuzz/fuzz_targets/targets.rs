//! The targets parser: any bytes give targets or one fault with its line, the same through a
//! small read buffer as through a large one, and every target is fit to be sent.
//!
//! The first byte of an input chooses the format.
#![no_main]

#[allow(dead_code, missing_docs, reason = "compiled from source, as the other target is")]
#[path = "../../crates/gake-run/src/targets/mod.rs"]
mod targets;

use std::io::{BufRead, BufReader};

use libfuzzer_sys::{Corpus, fuzz_target};
use targets::{Target, TargetFormat, Targets};

fn read(reader: impl BufRead, choice: u8) -> (Vec<Target>, Option<String>) {
    let mut found = Vec::new();
    let targets = match choice % 3 {
        0 => Targets::new(reader, TargetFormat::Http),
        1 => Targets::new(reader, TargetFormat::Json),
        _ => match Targets::detect(reader) {
            Ok(targets) => targets,
            Err(error) => return (found, Some(error.to_string())),
        },
    };
    for target in targets {
        match target {
            Ok(target) => found.push(target),
            Err(error) => {
                assert!(error.line > found.last().map_or(0, |t| t.line));
                return (found, Some(error.to_string()));
            }
        }
    }
    (found, None)
}

fuzz_target!(|data: &[u8]| -> Corpus {
    let [choice, text @ ..] = data else { return Corpus::Reject };
    let whole = read(text, *choice);
    assert_eq!(whole, read(BufReader::with_capacity(1, text), *choice));
    let lines = text.split(|&b| b == b'\n').count();
    for target in &whole.0 {
        assert!(target.weight > 0 && target.line > 0 && target.line <= lines);
        assert!(!target.method.is_empty() && !target.url.is_empty());
        assert!(target.label.as_ref().is_none_or(|label| !label.is_empty()));
        for (name, value) in &target.headers {
            assert!(!name.is_empty() && !name.contains([':', '\r', '\n', ' ']));
            assert!(!value.contains(['\r', '\n', '\0']));
        }
    }
    Corpus::Keep
});
