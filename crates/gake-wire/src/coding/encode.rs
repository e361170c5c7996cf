//! Compresses bodies of requests.

use std::io::{self, Write};
use std::thread;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// A body in the codings of a comma-separated list, as k6 takes it.
///
/// # Errors
/// When one is unknown, in k6's words.
pub fn encoded(mut body: Vec<u8>, list: &str) -> Result<Vec<u8>, String> {
    for coding in list.split(',').map(str::trim) {
        let written = match coding {
            "gzip" => written(GzEncoder::new(Vec::new(), Compression::default()), &body),
            "deflate" => written(ZlibEncoder::new(Vec::new(), Compression::default()), &body),
            "zstd" => zstd(&body),
            "br" => Ok(stored_brotli(&body)),
            other => {
                return Err(format!(
                    "unknown compression algorithm {other}, supported algorithms are [gzip \
                     deflate zstd br]"
                ));
            }
        };
        body = written.map_err(|error| format!("the body cannot be compressed: {error}"))?;
    }
    Ok(body)
}

/// A brotli stream (RFC 7932) of uncompressed meta-blocks.
fn stored_brotli(body: &[u8]) -> Vec<u8> {
    const BLOCK_MAX: usize = 1 << 16;
    let mut out = Vec::with_capacity(body.len() + body.len() / BLOCK_MAX * 3 + 4);
    for (number, block) in body.chunks(BLOCK_MAX).enumerate() {
        // ISLAST = 0, four nibbles of the length less one, ISUNCOMPRESSED = 1, least bit first.
        let header = ((block.len() as u32 - 1) << 3) | (1 << 19);
        // Only the first follows WBITS, whose shortest code is one bit 0.
        let header = if number == 0 { header << 1 } else { header };
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    // ISLAST and ISLASTEMPTY.
    out.push(if body.is_empty() { 0b110 } else { 0b11 });
    out
}

/// Compresses on a thread of its own: the encoder takes some 190 KB of stack, more than a user's
/// coroutine has. Not inlined, so that other requests do not reserve that stack.
#[cold]
#[inline(never)]
fn zstd(body: &[u8]) -> io::Result<Vec<u8>> {
    thread::scope(|scope| {
        let encoder = thread::Builder::new()
            .spawn_scoped(scope, || compress_to_vec(body, CompressionLevel::Fastest))?;
        encoder.join().map_err(|_| io::Error::other("the zstd encoder panicked"))
    })
}

trait FinishEncoder: Write {
    fn finish(self) -> io::Result<Vec<u8>>;
}

impl FinishEncoder for GzEncoder<Vec<u8>> {
    fn finish(self) -> io::Result<Vec<u8>> {
        Self::finish(self)
    }
}

impl FinishEncoder for ZlibEncoder<Vec<u8>> {
    fn finish(self) -> io::Result<Vec<u8>> {
        Self::finish(self)
    }
}

fn written(mut encoder: impl FinishEncoder, body: &[u8]) -> io::Result<Vec<u8>> {
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::super::decoded;
    use super::*;

    #[test]
    fn compressed_bodies_can_be_decoded() {
        let text = b"some text, some text, some text".to_vec();
        for list in ["gzip", "deflate", "zstd", "br", "gzip, deflate", "gzip, br"] {
            let sent = encoded(text.clone(), list).unwrap();
            assert_ne!(sent, text, "{list}");
            assert_eq!(decoded(&sent, list, 999_999), Ok(text.clone()), "{list}");
        }
        for length in [0, 1, 255, 65_535, 65_536, 65_537, 200_000] {
            let body: Vec<u8> = (0..length).map(|i: u32| i.to_le_bytes()[0]).collect();
            assert_eq!(decoded(&encoded(body.clone(), "br").unwrap(), "br", 999_999), Ok(body));
        }
        assert!(encoded(text, "zip").unwrap_err().contains("zip"));
    }
}
