//! Error messages of `JSON.parse`, by the patched QuickJS.

#![expect(
    unsafe_code,
    reason = "QuickJS calls it for the words about a text that is not JSON: rquickjs does not know it"
)]

use std::ffi::c_char;
use std::sync::OnceLock;
use std::{ptr, slice};

/// The message for a text that is not JSON; `None`: QuickJS's own.
pub type WhyNotJson = fn(&[u8]) -> Option<String>;

static WHY: OnceLock<WhyNotJson> = OnceLock::new();

type JsonErrorText = unsafe extern "C" fn(*const c_char, usize, *mut c_char, usize) -> usize;

unsafe extern "C" {
    fn JS_SetJSONErrorText(text: JsonErrorText);
}

/// Sets the messages of `JSON.parse`, for all scripts of the process. Only the first call has an
/// effect.
pub fn explain_json(why: WhyNotJson) {
    WHY.get_or_init(|| {
        // SAFETY: a function lives as long as the process.
        unsafe { JS_SetJSONErrorText(write_why) };
        why
    });
}

/// Writes a zero-terminated message for `text` to `out`; returns its length, or 0 without a
/// message.
unsafe extern "C" fn write_why(
    text: *const c_char,
    text_len: usize,
    out: *mut c_char,
    out_size: usize,
) -> usize {
    // SAFETY: QuickJS passes a valid text and length.
    let text = unsafe { slice::from_raw_parts(text.cast::<u8>(), text_len) };
    let Some(why) = WHY.get().and_then(|why| why(text)) else { return 0 };
    let room = out_size.saturating_sub(1);
    let len = why.floor_char_boundary(room);
    // SAFETY: `out` has `out_size` bytes, enough for the message and the zero.
    unsafe {
        ptr::copy_nonoverlapping(why.as_ptr(), out.cast(), len);
        out.add(len).write(0);
    }
    len
}
