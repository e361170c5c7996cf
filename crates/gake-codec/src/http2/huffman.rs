//! Huffman coding of header strings (RFC 7541, section 5.2).

use std::sync::LazyLock;

use super::hpack_error::HpackError;
use super::huffman_codes::CODES;

/// Codes of at most this many bits are decoded by one table lookup.
const SHORT_BITS: u32 = 10;

struct DecodeTable {
    /// Symbol and length by the next [`SHORT_BITS`] bits; length 0: the code is longer.
    short: Vec<(u8, u8)>,
    /// Longer codes, left-aligned in 32 bits, with symbol and length, sorted.
    long: Vec<(u32, u8, u8)>,
}

static TABLE: LazyLock<DecodeTable> = LazyLock::new(|| {
    let mut table = DecodeTable { short: vec![(0, 0); 1 << SHORT_BITS], long: Vec::new() };
    for (symbol, (code, length)) in (0..=u8::MAX).zip(CODES) {
        let bits = u32::from(length);
        if bits > SHORT_BITS {
            table.long.push((code << (32 - bits), symbol, length));
            continue;
        }
        let first = (code << (SHORT_BITS - bits)) as usize;
        table.short[first..first + (1 << (SHORT_BITS - bits))].fill((symbol, length));
    }
    table.long.sort_unstable();
    table
});

/// Appends the decoded text.
pub(crate) fn decode(coded: &[u8], text: &mut Vec<u8>) -> Result<(), HpackError> {
    let table = &*TABLE;
    // The next bits, left-aligned, and their count.
    let (mut bits, mut count) = (0_u64, 0_u32);
    let mut rest = coded.iter();
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        let (mut symbol, mut length) = table.short[(bits >> (64 - SHORT_BITS)) as usize];
        if length == 0 {
            (symbol, length) = long(table, (bits >> 32) as u32);
        }
        let length = u32::from(length);
        if length == 0 || length > count {
            // The rest must be padding: less than a byte, all ones.
            let is_padding = count < 8 && (bits | (u64::MAX >> count)) == u64::MAX;
            return if is_padding { Ok(()) } else { Err(HpackError::Huffman) };
        }
        text.push(symbol);
        bits <<= length;
        count -= length;
    }
}

/// The symbol whose code `bits` starts with, and its length; 0 for the code that ends a string.
fn long(table: &DecodeTable, bits: u32) -> (u8, u8) {
    let above = table.long.partition_point(|(code, ..)| *code <= bits);
    let Some(&(code, symbol, length)) = above.checked_sub(1).and_then(|at| table.long.get(at))
    else {
        return (0, 0);
    };
    let unused = 32 - u32::from(length);
    if bits >> unused == code >> unused { (symbol, length) } else { (0, 0) }
}

/// The length of the coded `text` in bytes.
pub(crate) fn coded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(CODES[usize::from(*byte)].1)).sum();
    bits.div_ceil(8)
}

/// Appends the code of `text`.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in text {
        let (code, length) = CODES[usize::from(*byte)];
        bits = (bits << length) | u64::from(code);
        count += u32::from(length);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // Padding is the start of the EOS code: ones.
        out.push(((bits << (8 - count)) | (0xff >> count)) as u8);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut text = Vec::new();
        decode(coded, &mut text).map(|()| text)
    }

    #[test]
    fn the_examples_of_the_rfc() {
        let mut coded = Vec::new();
        encode(b"www.example.com", &mut coded);
        let expected = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(coded, expected);
        assert_eq!(decoded(&expected).unwrap(), b"www.example.com");
    }

    #[test]
    fn bad_padding_and_the_end_code_are_refused() {
        // `a` is 00011.
        assert_eq!(decoded(&[0b0001_1111]).unwrap(), b"a");
        assert!(decoded(&[0b0001_1110]).is_err(), "padding of zeros");
        assert!(decoded(&[0b0001_1111, 0xff]).is_err(), "padding of a byte and more");
        assert!(decoded(&[0xff, 0xff, 0xff, 0xff]).is_err(), "the end of a string, spelled out");
    }

    proptest! {
        #[test]
        fn what_is_coded_comes_back(text: Vec<u8>) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            prop_assert_eq!(coded.len(), coded_len(&text));
            prop_assert_eq!(decoded(&coded).unwrap(), text);
        }
    }
}
