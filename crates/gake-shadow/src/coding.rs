//! Content decoding with a bound on the output.

use std::io::Read;

/// Bytes of a decoded body.
const DECODED_MAX: u64 = 16 << 20;

/// The decoded body; `None` if the coding is unknown, the data broken or the output too large.
pub(crate) fn decode(coding: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    match coding.trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Some(bytes.to_vec()),
        b"gzip" | b"x-gzip" => read(flate2::read::MultiGzDecoder::new(bytes)),
        // RFC 9110 says zlib; some servers send the bare stream.
        b"deflate" => read(flate2::read::ZlibDecoder::new(bytes))
            .or_else(|| read(flate2::read::DeflateDecoder::new(bytes))),
        b"br" => read(brotli_decompressor::Decompressor::new(bytes, 4096)),
        _ => None,
    }
}

fn read(reader: impl Read) -> Option<Vec<u8>> {
    gake_files::bounded(reader, DECODED_MAX).ok().flatten()
}
