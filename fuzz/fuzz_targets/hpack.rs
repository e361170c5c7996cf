//! The HPACK decoder, block after block: what it takes, the `h2` crate takes with the same fields;
//! what it refuses, `h2` refuses; a block that is remembered means the same as one that is decoded.
//!
//! The first byte of a block is its length.
#![no_main]

#[allow(dead_code, missing_docs, reason = "compiled from source, to do without TLS")]
#[path = "../../crates/gake-codec/src/http2/mod.rs"]
mod http2;
#[allow(dead_code, reason = "shared with the codec's target")]
mod oracle;

use http2::{ResponseFields, HeaderDecoder};
use libfuzzer_sys::{Corpus, fuzz_target};
use oracle::Answer;

/// Streams that the oracle opens.
const BLOCKS_MAX: usize = 64;

/// A block that both take: its status and fields.
type Taken = (ResponseFields, Vec<(String, Vec<u8>)>);

fuzz_target!(|data: &[u8]| -> Corpus {
    let blocks = blocks(data);
    if blocks.is_empty() {
        return Corpus::Reject;
    }
    let mut shown = HeaderDecoder::new(1 << 20);
    let mut remembering = HeaderDecoder::new(1 << 20);
    // An empty SETTINGS first, then each block on a stream of its own.
    let mut bytes = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut taken: Vec<Taken> = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let mut fields = Vec::new();
        let meaning = shown.decode_shown(block, &mut |name, value| {
            fields.push((String::from_utf8_lossy(name).into_owned(), value.to_vec()));
        });
        assert_eq!(meaning, remembering.decode(block), "{block:?}");
        bytes.extend_from_slice(&[0, 0, block.len() as u8, 1, 5]);
        bytes.extend_from_slice(&(2 * number as u32 + 1).to_be_bytes());
        bytes.extend_from_slice(block);
        match meaning {
            // What is HPACK and no response is judged apart by both.
            Ok(meaning) if meaning.error.is_some() || meaning.status < 200 => return Corpus::Keep,
            Ok(meaning) => {
                fields.retain(|(name, _)| !name.starts_with(':'));
                fields.sort();
                taken.push((meaning, fields));
            }
            Err(error) => {
                let verdict = oracle::judge(&bytes, number + 1, 65_535);
                assert!(verdict.broken.is_some(), "{error:?}: {verdict:?}");
                return Corpus::Keep;
            }
        }
    }
    // The oracle also refuses control characters, which RFC 9113 allows in values.
    let is_control = |byte: &u8| (*byte < 0x20 && *byte != b'\t') || *byte == 0x7f;
    if taken.iter().flat_map(|(_, fields)| fields).any(|(_, value)| value.iter().any(is_control)) {
        return Corpus::Keep;
    }
    let verdict = oracle::judge(&bytes, blocks.len(), 65_535);
    assert_eq!(verdict.broken, None, "{taken:?}");
    for ((meaning, fields), answer) in taken.iter().zip(&verdict.answers) {
        // A length without a body is malformed; its judgement is the codec's.
        if meaning.content_length.is_none_or(|length| length == 0) {
            assert_eq!(*answer, Answer::Whole(meaning.status, fields.clone(), 0));
        }
    }
    Corpus::Keep
});

/// The header blocks of an input.
fn blocks(mut data: &[u8]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    while let Some((&length, rest)) = data.split_first() {
        let (block, rest) = rest.split_at(rest.len().min(usize::from(length)));
        blocks.push(block);
        data = rest;
        if blocks.len() == BLOCKS_MAX {
            break;
        }
    }
    blocks
}
