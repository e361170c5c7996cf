//! Archives of k6: files or one error. What is read can be written and read again.
#![no_main]

use gake_k6::archive::Archive;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(archive) = Archive::read(data) {
        assert!(Archive::read(&archive.write(0)).is_ok());
    }
});
