//! Vegeta's results in every encoding: records, and then one error or the end.
#![no_main]

use gake_report::vegeta::ResultReader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut results) = ResultReader::detect(data) else { return };
    while let Ok(Some(_)) = results.next_record() {}
});
