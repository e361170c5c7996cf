//! Random bytes of the system.

use std::fs::File;
use std::io::{self, Read};

/// Cryptographically secure random bytes.
///
/// # Errors
/// When /dev/urandom cannot be read.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
