//! Decodes compressed responses.

use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

/// The buffer of the brotli decoder.
const BUFFER: usize = 4096;

/// The most codings of one body.
const CODINGS_MAX: usize = 4;

/// Undoes the codings of a `Content-Encoding` header, the last applied first.
///
/// # Errors
/// When one is unknown or the body is not of it, or a result has more than `most` bytes.
pub fn decoded(body: &[u8], codings: &str, most: u64) -> Result<Vec<u8>, String> {
    let mut plain: Option<Vec<u8>> = None;
    for (depth, coding) in codings.rsplit(',').enumerate() {
        if depth >= CODINGS_MAX {
            return Err(format!("more than {CODINGS_MAX} codings"));
        }
        let bytes = plain.as_deref().unwrap_or(body);
        plain = Some(match coding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => read(bytes, most)?,
            "gzip" | "x-gzip" => read(MultiGzDecoder::new(bytes), most)?,
            // Most servers send zlib's format, some raw deflate.
            "deflate" => read(ZlibDecoder::new(bytes), most)
                .or_else(|_| read(DeflateDecoder::new(bytes), most))?,
            "br" => read(Decompressor::new(bytes, BUFFER), most)?,
            "zstd" => {
                let decoder = StreamingDecoder::new(bytes).map_err(|error| error.to_string())?;
                read(decoder, most)?
            }
            other => return Err(format!("unsupported Content-Encoding: {other}")),
        });
    }
    Ok(plain.unwrap_or_else(|| body.to_vec()))
}

fn read(decoder: impl Read, most: u64) -> Result<Vec<u8>, String> {
    let decoded = gake_files::bounded(decoder, most).map_err(|error| error.to_string())?;
    decoded.ok_or_else(|| format!("the decoded body is larger than {} MiB", most >> 20))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn codings_are_undone_in_their_order() {
        let text = &b"some text, ".repeat(20)[..];
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
            assert_eq!(decoded(&body, encoding, 220).as_deref(), Ok(text), "{encoding}");
            assert!(decoded(&body, encoding, 219).is_err(), "{encoding}");
        }
        assert!(decoded(text, "gzip", 99).is_err());
        let five = (0..5).fold(text.to_vec(), |body, _| gzip(&body));
        assert!(decoded(&five, "gzip,gzip,gzip,gzip,gzip", 9_999).is_err());
        assert!(decoded(text, "zip", 99).unwrap_err().contains("zip"));
    }
}
