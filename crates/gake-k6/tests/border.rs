//! Values that cross the border between script and engine: the seeds of the fuzz target `border`.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)] // the helpers are tests too

#[path = "../../../fuzz/fuzz_targets/border/harness.rs"]
mod harness;

use std::path::Path;

use gake_k6::user::script_user::CallEnd;
use harness::{Crossed, cross};

#[test]
fn every_seed_is_taken_or_refused() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/border");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        let expression = std::fs::read_to_string(seed.unwrap().path()).unwrap();
        let crossed = cross(&expression);
        let is_of_setup = matches!(crossed, Crossed::Ended(CallEnd::NoData(_)));
        assert!(!is_of_setup, "{expression}: only setup's data is judged");
        count += 1;
    }
    assert!(count > 10, "{count} seeds");
    assert_eq!(cross("1"), Crossed::Ended(CallEnd::Returned(None)));
    assert!(matches!(cross("throw 1"), Crossed::Ended(CallEnd::Thrown(_))));
}
