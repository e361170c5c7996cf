//! Sizes from a script, given to everything that takes them: each call returns or throws.
#![no_main]

#[path = "border/harness.rs"]
mod harness;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (calls, _) = data.as_chunks::<3>();
    let _ = harness::call_with_sizes(&calls[..calls.len().min(8)]);
});
