//! QPACK without a dynamic table (RFC 9204).

use super::static_table;
use crate::http2::huffman;
use crate::http2::integer::{put_integer, put_string, take_integer, take_string};
use crate::http2::{HpackError, ResponseFields};

/// The size of a field beyond its text (RFC 9114, section 4.2.2).
const FIELD_OVERHEAD: usize = 32;

/// Bytes of a 62-bit number after its prefix.
const BASE_BYTES: usize = 9;

pub(super) fn encode<'a>(fields: impl IntoIterator<Item = (&'a str, &'a [u8])>, out: &mut Vec<u8>) {
    // The required insert count and the base are 0.
    out.extend_from_slice(&[0, 0]);
    for (name, value) in fields {
        put_field(name, value, out);
    }
}

pub(super) fn put_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        Some((index, true)) => put_integer(out, 0xc0, 6, index),
        Some((index, false)) => {
            put_integer(out, 0x50, 4, index);
            put_string(out, value);
        }
        None => {
            put_name(out, name.as_bytes());
            put_string(out, value);
        }
    }
}

/// Appends a name that the static table does not have.
fn put_name(out: &mut Vec<u8>, name: &[u8]) {
    let coded = huffman::coded_len(name);
    if coded < name.len() {
        put_integer(out, 0x28, 3, coded);
        huffman::encode(name, out);
    } else {
        put_integer(out, 0x20, 3, name.len());
        out.extend_from_slice(name);
    }
}

/// Decodes a block and passes each field to `keep`. `text` is a reusable buffer. Fields larger than
/// `bytes_max` in total are refused.
pub(super) fn decode(
    mut block: &[u8],
    text: &mut Vec<u8>,
    bytes_max: usize,
    mut keep: impl FnMut(&[u8], &[u8]),
) -> Result<ResponseFields, HpackError> {
    let (mut meaning, mut size) = (ResponseFields::default(), 0);
    let (&required, behind) = block.split_first().ok_or(HpackError::Truncated)?;
    if required != 0 {
        return Err(HpackError::SizeUpdate);
    }
    block = behind;
    skip_base(&mut block)?;
    while let Some(&first) = block.first() {
        text.clear();
        let (name, value) = take_field(&mut block, first, text)?;
        size += name.len() + value.len() + FIELD_OVERHEAD;
        if size > bytes_max {
            return Err(HpackError::TooLarge);
        }
        meaning.add(name, value);
        keep(name, value);
    }
    Ok(meaning)
}

/// Skips the base of a block without a dynamic table: any number up to 62 bits, but not negative
/// (sections 4.1.1 and 4.5.1.2).
fn skip_base(block: &mut &[u8]) -> Result<(), HpackError> {
    let (&first, rest) = block.split_first().ok_or(HpackError::Truncated)?;
    if first & 0x80 != 0 {
        return Err(HpackError::SizeUpdate);
    }
    *block = rest;
    if first == 0x7f {
        let bytes = &rest[..rest.len().min(BASE_BYTES)];
        let last = bytes.iter().position(|byte| byte & 0x80 == 0);
        let is_cut = bytes.len() < BASE_BYTES;
        let fault = if is_cut { HpackError::Truncated } else { HpackError::Integer };
        *block = &rest[last.ok_or(fault)? + 1..];
    }
    Ok(())
}

/// Takes the field line that begins with `first`; literals are put into `text`.
fn take_field<'a>(
    block: &mut &[u8],
    first: u8,
    text: &'a mut Vec<u8>,
) -> Result<(&'a [u8], &'a [u8]), HpackError> {
    if first & 0x80 != 0 {
        let is_static = first & 0x40 != 0;
        let index = take_integer(block, 6)?;
        let (name, value) = static_entry(is_static, index)?;
        return Ok((name.as_bytes(), value.as_bytes()));
    }
    if first & 0x40 != 0 {
        let is_static = first & 0x10 != 0;
        let index = take_integer(block, 4)?;
        let (name, _) = static_entry(is_static, index)?;
        take_string(block, text)?;
        return Ok((name.as_bytes(), text));
    }
    if first & 0x20 == 0 {
        // Post-base indices refer to the dynamic table.
        return Err(HpackError::SizeUpdate);
    }
    let is_coded = first & 0x08 != 0;
    let length = take_integer(block, 3)?;
    let (name, rest) = block.split_at_checked(length).ok_or(HpackError::Truncated)?;
    *block = rest;
    match is_coded {
        true => huffman::decode(name, text)?,
        false => text.extend_from_slice(name),
    }
    let named = text.len();
    take_string(block, text)?;
    Ok(text.split_at(named))
}

fn static_entry(is_static: bool, index: usize) -> Result<(&'static str, &'static str), HpackError> {
    match is_static {
        true => static_table::entry(index).ok_or(HpackError::Index),
        false => Err(HpackError::SizeUpdate),
    }
}
