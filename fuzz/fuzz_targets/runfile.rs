//! Run files: a run with warnings or one error, in bounded memory (`-malloc_limit_mb`).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok((run, warnings)) = gake_report::runfile::read(data) {
        assert!(warnings.len() <= 1_001);
        // What was read can be merged and shown.
        let _ = gake_report::merge_runs(vec![run]);
    }
});
