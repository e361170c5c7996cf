//! Compresses bodies of requests.

use std::io::{self, Write};
use std::thread;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// A body in the codings of a comma-separated list.
pub(super) fn compressed(mut body: Vec<u8>, list: &str) -> Result<Vec<u8>, String> {
    for coding in list.split(',').map(str::trim) {
        let written = match coding {
            "gzip" => written(GzEncoder::new(Vec::new(), Compression::default()), &body),
            "deflate" => written(ZlibEncoder::new(Vec::new(), Compression::default()), &body),
            "zstd" => zstd(&body),
            "br" => {
                return Err(
                    "the compression br is not supported; use gzip, deflate or zstd".to_owned()
                );
            }
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
    use super::super::decode::decoded;
    use super::*;

    #[test]
    fn compressed_bodies_can_be_decoded() {
        let text = b"some text, some text, some text".to_vec();
        for list in ["gzip", "deflate", "zstd", "gzip, deflate"] {
            let sent = compressed(text.clone(), list).unwrap();
            assert_ne!(sent, text, "{list}");
            assert_eq!(decoded(sent, list), Ok(text.clone()), "{list}");
        }
        assert!(compressed(text.clone(), "br").unwrap_err().contains("br"));
        assert!(compressed(text, "zip").unwrap_err().contains("zip"));
    }
}
