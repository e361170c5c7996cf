//! Recordings in all formats: every request that is read is redacted, written and read again.
#![no_main]

use gake_text::redact::{SecretNames, Redactor};
use gake_shadow::traffic::{Traffic, gakerec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(traffic) = Traffic::read(std::io::Cursor::new(data.to_vec())) else { return };
    let redactor = Redactor::new([1; 16], SecretNames::default());
    let head = gakerec::RecordingHead { started_unix_ns: 0 };
    let mut out = Vec::new();
    let mut writer = gakerec::RecordingWriter::new(&mut out, head, redactor, 1 << 20).expect("a vector");
    for record in traffic.map_while(Result::ok) {
        // One that is too large is left out.
        let _ = writer.write(record);
    }
    let written = writer.records();
    drop(writer);
    let again = Traffic::read(std::io::Cursor::new(out)).expect("what was written");
    assert_eq!(again.map_while(Result::ok).count() as u64, written);
});
