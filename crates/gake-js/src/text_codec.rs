//! The globals `TextEncoder` and `TextDecoder`, for UTF-8 and UTF-16.

use gake_script::user::aside_above;
use rquickjs::convert::List;
use rquickjs::{ArrayBuffer, Ctx, Function, Object, Value};

use crate::native::named;
use crate::value;

/// Creates the classes from native functions.
const CLASSES: &str = include_str!("text_codec.js");

/// An object of both classes by name.
pub fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let encode = |ctx: Ctx<'js>, text: rquickjs::String<'js>| {
        value::buffer(&ctx, value::lossy(&ctx, &text)?.into_bytes())
    };
    let classes: Function<'js> = value::evaluate(ctx, CLASSES)?;
    classes.call((named("TextEncoder", "encode", encode), named("TextDecoder", "decode", decode)))
}

/// Decodes bytes as far as they are complete, or all of the last ones. Returns the text, whether the
/// bytes are well-formed, and those that are left for the next call.
fn decode<'js>(
    ctx: Ctx<'js>,
    encoding: String,
    bytes: Value<'js>,
    is_last: bool,
) -> rquickjs::Result<List<(String, bool, ArrayBuffer<'js>)>> {
    let bytes = value::bytes(&ctx, &bytes)?.unwrap_or_default();
    let (text, is_valid, left) = aside_above(&ctx, value::AT_ONCE, bytes.len(), move || {
        let (text, is_valid, len) = match encoding.as_str() {
            "utf-16le" => utf16(&bytes, u16::from_le_bytes, is_last),
            "utf-16be" => utf16(&bytes, u16::from_be_bytes, is_last),
            _ => utf8(&bytes, is_last),
        };
        (text, is_valid, bytes[len..].to_vec())
    })?;
    Ok(List((text, is_valid, value::buffer(&ctx, left)?)))
}

/// The text, whether its bytes are well-formed, and their number.
fn utf8(bytes: &[u8], is_last: bool) -> (String, bool, usize) {
    let lead = (1..=bytes.len().min(3)).find(|from_end| bytes[bytes.len() - from_end] >= 0xc0);
    let is_open = |from_end: &usize| {
        let error = std::str::from_utf8(&bytes[bytes.len() - from_end..]).err();
        error.is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    let left = if is_last { 0 } else { lead.filter(is_open).unwrap_or(0) };
    let len = bytes.len() - left;
    let is_valid = std::str::from_utf8(&bytes[..len]).is_ok();
    (String::from_utf8_lossy(&bytes[..len]).into_owned(), is_valid, len)
}

/// As [`utf8`], of units in this order of bytes.
fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, is_last: bool) -> (String, bool, usize) {
    let (pairs, odd) = bytes.as_chunks();
    let mut units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    if !is_last {
        units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
    }
    let mut text = String::from_utf16_lossy(&units);
    let is_torn = is_last && !odd.is_empty();
    if is_torn {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    let is_valid = !is_torn && String::from_utf16(&units).is_ok();
    (text, is_valid, if is_last { bytes.len() } else { units.len() * 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two parts decode to the text of the whole wherever it is cut, malformed bytes included.
    #[test]
    fn parts_decode_as_the_whole() {
        let utf16_le: Vec<u8> = "aé𝄞z".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let texts: [&[u8]; 4] =
            ["aé€𝄞z".as_bytes(), b"\xf0\x9f\x92z\xc3", b"\x80\xe2\x82", &utf16_le];
        for (number, bytes) in texts.iter().enumerate() {
            let decode = |bytes: &[u8], is_last| match number {
                3 => utf16(bytes, u16::from_le_bytes, is_last),
                _ => utf8(bytes, is_last),
            };
            let (whole, is_valid, _) = decode(bytes, true);
            for cut in 0..=bytes.len() {
                let (first, first_valid, len) = decode(&bytes[..cut], false);
                let (second, second_valid, _) = decode(&bytes[len..], true);
                assert_eq!(first + &second, whole, "text {number} cut at {cut}");
                assert_eq!(first_valid && second_valid, is_valid, "text {number} cut at {cut}");
            }
        }
        assert_eq!(utf16(b"\x00\xd8a\x00\x62", u16::from_le_bytes, true).0, "\u{fffd}a\u{fffd}");
        assert_eq!(utf16(b"\x00a", u16::from_be_bytes, true), ("a".to_owned(), true, 2));
    }
}
