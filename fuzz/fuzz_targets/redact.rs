//! The redaction: whatever comes, in every place of a message, once and again.
#![no_main]

use gake_text::redact::{SecretNames, Redactor};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let redactor = Redactor::new([1; 16], SecretNames::default());
    let text = String::from_utf8_lossy(data);
    let _ = (redactor.target(&text), redactor.text(&text), redactor.json(&text, true));
    for name in ["cookie", "set-cookie", "authorization", "x-token", "referer"] {
        let _ = redactor.header(name, data);
    }
    for kind in ["", "application/json", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a"]
    {
        let once = redactor.body(kind, data).into_inner().into_owned();
        let _ = redactor.body(kind, &once);
    }
});
