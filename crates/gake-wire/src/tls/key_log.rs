//! The secrets of TLS sessions, for programs that decrypt captured traffic.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;

use gake_files::Access;

/// A file of session secrets in the format of SSLKEYLOGFILE. It allows decrypting the traffic.
pub struct TlsKeyLog {
    file: Mutex<File>,
}

impl TlsKeyLog {
    /// Opens the file for appending, or creates it, readable by its owner only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(gake_files::append(path, Access::Owner)?) })
    }
}

impl rustls::KeyLog for TlsKeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} ");
        put_hex(&mut line, client_random);
        line.push(' ');
        put_hex(&mut line, secret);
        line.push('\n');
        // A handshake does not fail because of its log: on a full disk, lines are missing.
        if let Ok(mut file) = self.file.lock() {
            let _ = file.write_all(line.as_bytes());
        }
    }
}

fn put_hex(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(line, "{byte:02x}");
    }
}

impl fmt::Debug for TlsKeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsKeyLog").finish_non_exhaustive()
    }
}
