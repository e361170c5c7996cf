//! HAR, curl, Postman, OpenAPI, JMeter: a script or one error.
#![no_main]

use gake_convert::{ConvertOptions, convert};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = convert(text, ConvertOptions::default());
    let _ = gake_convert::how_to_run(text);
});
