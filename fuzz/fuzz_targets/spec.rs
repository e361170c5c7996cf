//! Specs, in TOML and JSON: a spec or one error with its place.
#![no_main]

use gake_core::spec::file::SpecFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for name in ["fuzz.toml", "fuzz.json"] {
        if let Ok(file) = SpecFile::read(name, data) {
            let _ = file.spec();
        }
    }
});
