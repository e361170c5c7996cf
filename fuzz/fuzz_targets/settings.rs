//! The proxy's settings and rules of comparison: values or one error.
#![no_main]

use std::path::Path;

use gake_shadow::compare::ComparisonRules;
use gake_shadow::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(config) = Config::parse(text, Path::new("fuzz.toml")) {
        let _ = config.check();
    }
    let _ = ComparisonRules::parse(text);
});
