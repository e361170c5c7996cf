//! What the tests of several tools share.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use gake_core::clock::Nanos;
use gake_core::record::{Exchange, ExchangeEnd, Fault, Outcome, ResponseSummary};
use gake_core::spec::file::SpecFile;
use gake_core::spec::{RunSpec, Syntax};
use gake_core::work::Arrival;

pub const MS: Nanos = 1_000_000;

/// The arguments of a command line.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Checks that a tool's spec means the same when it is written and read.
pub fn assert_comes_back(spec: &RunSpec) {
    for (name, syntax) in [("a.toml", Syntax::Toml), ("a.json", Syntax::Json)] {
        let text = spec.draft().write(syntax).unwrap();
        let read = SpecFile::read(name, text.as_bytes()).unwrap().spec();
        assert_eq!(read.as_ref(), Ok(spec), "{text}");
    }
}

/// Compares `text` with the file of that name, or writes the file when `GAKE_BLESS` is set.
pub fn bless(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("GAKE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} differs. Look at the difference, and if it is meant, write the file with: \
         GAKE_BLESS=1 cargo test -p gake-compat\n{text}",
        path.display()
    );
}

pub fn answered(number: u64, due: Nanos, took: Nanos, status: u16) -> Outcome {
    let write = due + 20_000.min(took / 4);
    Outcome {
        arrival: Arrival { number, due },
        blocked: 0,
        fired: write,
        exchange: Exchange {
            write,
            written: true,
            first_byte: Some(due + took - took / 20),
            done: due + took,
            end: ExchangeEnd::Response(ResponseSummary { status, body_bytes: 12 }),
            bytes_in: 212,
            bytes_out: 74,
            ..Exchange::unfinished(0)
        },
    }
}

pub fn faulted(number: u64, due: Nanos, took: Nanos, fault: Fault) -> Outcome {
    let outcome = answered(number, due, took, 0);
    let exchange = Exchange {
        first_byte: None,
        end: ExchangeEnd::Fault(fault),
        bytes_in: 0,
        ..outcome.exchange
    };
    Outcome { exchange, ..outcome }
}
