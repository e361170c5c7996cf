//! What `JSON.parse` says of a text that is not JSON.

#![expect(
    unsafe_code,
    reason = "QuickJS calls it for the words about a text that is not JSON: rquickjs does not know it"
)]

use std::ffi::c_char;
use std::sync::OnceLock;
use std::{ptr, slice};

/// Why a text is not JSON, if that is known.
pub type WhyNotJson = fn(&[u8]) -> Option<String>;

static WHY: OnceLock<WhyNotJson> = OnceLock::new();

type JsonErrorText = unsafe extern "C" fn(*const c_char, usize, *mut c_char, usize) -> usize;

unsafe extern "C" {
    fn JS_SetJSONErrorText(text: JsonErrorText);
}

/// Lets `why` say why a text is not JSON, in all scripts of the process. The first call counts.
pub fn explain_json(why: WhyNotJson) {
    WHY.get_or_init(|| {
        // SAFETY: it takes a function, which lasts as long as the process.
        unsafe { JS_SetJSONErrorText(write_why) };
        why
    });
}

/// Writes why `text` is not JSON into `out`, with a zero at the end; returns its length, or 0 if
/// that is not known.
unsafe extern "C" fn write_why(
    text: *const c_char,
    text_len: usize,
    out: *mut c_char,
    out_size: usize,
) -> usize {
    // SAFETY: QuickJS says how long its text is.
    let text = unsafe { slice::from_raw_parts(text.cast::<u8>(), text_len) };
    let Some(why) = WHY.get().and_then(|why| why(text)) else { return 0 };
    let room = out_size.saturating_sub(1);
    let len = why.floor_char_boundary(room);
    // SAFETY: `out` has room for this and the zero, and is QuickJS's own.
    unsafe {
        ptr::copy_nonoverlapping(why.as_ptr(), out.cast(), len);
        out.add(len).write(0);
    }
    len
}
