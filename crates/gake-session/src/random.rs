//! The system's randomness.

use std::fs::File;
use std::io::{self, Read};

/// Bytes that nobody can guess.
///
/// # Errors
/// When the system has none.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
