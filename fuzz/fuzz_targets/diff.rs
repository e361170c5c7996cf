//! Files of comparisons: whatever is read can be redacted, joined, judged and shown.
#![no_main]

use gake_text::redact::{SecretNames, Redactor};
use gake_shadow::compare::judge::{Terms, judge};
use gake_shadow::compare::{ComparisonRules, file, show};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut read) = file::parse(data) else { return };
    let redactor = Redactor::new([1; 16], SecretNames::default());
    read.iter_mut().for_each(|one| one.redact(&redactor));
    for one in file::join(read) {
        let _ = show::text(&judge(&one, &ComparisonRules::default(), Terms::default()));
    }
});
