//! Values of a script, given to everything that takes them: each is taken or refused.
#![no_main]

#[path = "border/harness.rs"]
mod harness;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(expression) = std::str::from_utf8(data) {
        let _ = harness::cross(expression);
    }
});
