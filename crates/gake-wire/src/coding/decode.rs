//! Decodes compressed responses.

use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

/// Maximum bytes of a decoded body, against decompression bombs.
const DECODED_MAX: u64 = 256 << 20;

/// The buffer of the brotli decoder.
const BUFFER: usize = 4096;

/// Undoes the codings of a `Content-Encoding` header.
pub(super) fn decoded(mut body: Vec<u8>, encoding: &str) -> Result<Vec<u8>, String> {
    for coding in encoding.rsplit(',').map(|coding| coding.trim().to_ascii_lowercase()) {
        let bytes = body.as_slice();
        body = match coding.as_str() {
            "" | "identity" => body,
            "gzip" | "x-gzip" => read(MultiGzDecoder::new(bytes))?,
            // Most servers send zlib's format, some raw deflate.
            "deflate" => {
                read(ZlibDecoder::new(bytes)).or_else(|_| read(DeflateDecoder::new(bytes)))?
            }
            "br" => read(Decompressor::new(bytes, BUFFER))?,
            "zstd" => {
                let decoder = StreamingDecoder::new(bytes).map_err(|error| error.to_string())?;
                read(decoder)?
            }
            other => return Err(format!("unsupported Content-Encoding: {other}")),
        };
    }
    Ok(body)
}

fn read(decoder: impl Read) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::new();
    let length = decoder.take(DECODED_MAX + 1).read_to_end(&mut decoded);
    match length {
        Ok(length) if length as u64 > DECODED_MAX => {
            Err(format!("the decoded body is larger than {} MiB", DECODED_MAX >> 20))
        }
        Ok(_) => Ok(decoded),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn codings_are_undone_in_their_order() {
        let text = b"some text, some text";
        let gzip = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(text).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(text).unwrap();
        for (body, encoding) in [
            (gzip(text), "gzip"),
            (zlib.finish().unwrap(), "deflate"),
            (bare.finish().unwrap(), "Deflate"),
            (gzip(&gzip(text)), "gzip, gzip"),
            (text.to_vec(), "identity"),
        ] {
            assert_eq!(decoded(body, encoding).as_deref(), Ok(&text[..]), "{encoding}");
        }
        assert!(decoded(text.to_vec(), "gzip").is_err());
        assert!(decoded(text.to_vec(), "zip").unwrap_err().contains("zip"));
    }
}
