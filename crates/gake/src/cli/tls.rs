//! Flags of TLS beyond trust.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use gake_core::spec::TlsVersion;

use super::values;

/// TLS versions, sessions and logs.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// The oldest version of TLS to speak (default 1.2)
    #[arg(long, value_name = "VERSION", value_parser = values::TLS)]
    pub tls_min: Option<TlsVersion>,

    /// The newest version of TLS to speak (default 1.3)
    #[arg(long, value_name = "VERSION", value_parser = values::TLS)]
    pub tls_max: Option<TlsVersion>,

    /// Offer only these cipher suites, the preferred one first:
    /// TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub ciphers: Vec<String>,

    /// Resume sessions; otherwise every connection makes a full handshake
    #[arg(long)]
    pub session_tickets: bool,

    /// Resume sessions, and send GET, HEAD and OPTIONS without a body before the end of the handshake
    /// where the server allows it (0-RTT; servers may be made to see such a request twice). TLS 1.3
    /// with HTTP/1.1, or HTTP/3
    #[arg(long)]
    pub tls_early_data: bool,

    /// Encrypt the hello, with the server's name in it, by the configurations in FILE (ECH, as in
    /// DNS: binary, base64 or PEM); `grease` sends a decoy. Only with TLS 1.3
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ech: Option<PathBuf>,

    /// Write the secrets of sessions to FILE, as the variable SSLKEYLOGFILE does, for Wireshark
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_log: Option<PathBuf>,
}
