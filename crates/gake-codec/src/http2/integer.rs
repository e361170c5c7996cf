//! Integers and strings of HPACK (RFC 7541, section 5).

use super::hpack_error::HpackError;
use super::huffman;

/// Larger integers are refused: every bounded length or index is smaller.
const INTEGER_MAX: usize = 1 << 28;

/// Takes an integer with a prefix of `bits` from the front of `block`.
#[inline]
pub(crate) fn take_integer(block: &mut &[u8], bits: u32) -> Result<usize, HpackError> {
    let (&first, mut rest) = block.split_first().ok_or(HpackError::Truncated)?;
    let full = (1_usize << bits) - 1;
    let mut value = usize::from(first) & full;
    if value == full {
        let mut shift = 0;
        loop {
            let (&byte, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
            rest = behind;
            value += (usize::from(byte) & 0x7f) << shift;
            if value >= INTEGER_MAX || shift > 28 {
                return Err(HpackError::Integer);
            }
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Ok(value)
}

/// Takes a string from the front of `block` and appends it to `text`.
pub(crate) fn take_string(block: &mut &[u8], text: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_coded = block.first().ok_or(HpackError::Truncated)? & 0x80 != 0;
    let length = take_integer(block, 7)?;
    let (string, rest) = block.split_at_checked(length).ok_or(HpackError::Truncated)?;
    *block = rest;
    if is_coded {
        return huffman::decode(string, text);
    }
    text.extend_from_slice(string);
    Ok(())
}

/// Appends an integer with a prefix of `bits`; `first` has the bits before the prefix.
pub(crate) fn put_integer(out: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let full = (1_usize << bits) - 1;
    if value < full {
        out.push(first | value as u8);
        return;
    }
    out.push(first | full as u8);
    let mut left = value - full;
    while left >= 0x80 {
        out.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Appends a string, coded when that is shorter.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::coded_len(text);
    if coded < text.len() {
        put_integer(out, 0x80, 7, coded);
        huffman::encode(text, out);
    } else {
        put_integer(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (value, bits, bytes) in
            [(10, 5, &[10][..]), (1337, 5, &[31, 154, 10]), (42, 8, &[42]), (31, 5, &[31, 0])]
        {
            let mut out = Vec::new();
            put_integer(&mut out, 0, bits, value);
            assert_eq!(out, bytes);
            let mut rest = bytes;
            assert_eq!(take_integer(&mut rest, bits), Ok(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn an_endless_or_huge_integer_is_refused() {
        for bytes in
            [&[31_u8, 0xff, 0xff, 0xff, 0xff, 0x0f][..], &[31, 0x80, 0x80, 0x80, 0x80, 0x80, 0]]
        {
            assert_eq!(take_integer(&mut { bytes }, 5), Err(HpackError::Integer));
        }
        assert_eq!(take_integer(&mut &[31, 0x80][..], 5), Err(HpackError::Truncated));
        assert_eq!(take_string(&mut &[3, b'a'][..], &mut Vec::new()), Err(HpackError::Truncated));
    }
}
