//! Maps system errors to faults.

use std::io;

use gake_codec::http1::Malformed;
use gake_core::record::{Fault, Phase};

use crate::tls::trusted_ca::is_of_ca;

/// Why a request has no response when its proxy refuses connections.
pub const PROXY_REFUSED: &str = "it refused the connection";

/// The fault of an error while opening a connection.
#[must_use]
pub fn of_connect(error: &io::Error) -> Fault {
    match error.raw_os_error() {
        // ENOENT and EAGAIN: a Unix socket does not exist, or its backlog is full.
        Some(libc::ECONNREFUSED | libc::ENOENT | libc::EAGAIN) => Fault::ConnectRefused,
        Some(libc::ETIMEDOUT) => Fault::ConnectTimeout,
        Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => Fault::NoLocalPort,
        Some(libc::EMFILE | libc::ENFILE) => Fault::NoDescriptors,
        Some(libc::ECONNRESET | libc::ECONNABORTED | libc::EPIPE) => Fault::ConnectReset,
        Some(
            errno @ (libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN | libc::ENETDOWN),
        ) => Fault::Unreachable(errno),
        errno => Fault::Other(errno.unwrap_or(0)),
    }
}

/// A system error without its number: `Network is unreachable`. Where C libraries differ, the words are
/// glibc's, which other tools have.
#[must_use]
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = match error.raw_os_error() {
        Some(libc::ENETUNREACH) => "Network is unreachable",
        Some(libc::EHOSTUNREACH) => "No route to host",
        Some(libc::EADDRNOTAVAIL) => "Cannot assign requested address",
        Some(libc::EADDRINUSE) => "Address already in use",
        Some(libc::ETIMEDOUT) => "Connection timed out",
        Some(libc::EMFILE) => "Too many open files",
        _ => text.split(" (os error").next().unwrap_or_default(),
    };
    text.to_owned()
}

/// A system error in Go's words: `network is unreachable`.
#[must_use]
pub fn go_text(error: &io::Error) -> String {
    system_text(error).to_lowercase()
}

/// As [`go_text`], of an error by its number.
#[must_use]
pub fn go_errno_text(errno: i32) -> String {
    go_text(&io::Error::from_raw_os_error(errno))
}

/// The fault of an error while reading a response, in the given phase.
#[must_use]
pub fn of_read(error: &io::Error, phase: Phase) -> Fault {
    if let Some(reason) = tls_reason(error) {
        return Fault::Tls(reason);
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::ClosedEarly(phase),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => Fault::Reset,
        io::ErrorKind::TimedOut => Fault::Timeout(phase),
        _ => Fault::Other(error.raw_os_error().unwrap_or(0)),
    }
}

/// The fault of an error while writing a request.
#[must_use]
pub fn of_write(error: &io::Error) -> Fault {
    tls_reason(error).map_or(Fault::Write, Fault::Tls)
}

/// The fault of an error in a TLS handshake.
#[must_use]
pub fn of_handshake(error: &io::Error) -> Fault {
    match (tls_reason(error), error.kind()) {
        (Some(reason), _) => Fault::Tls(reason),
        (None, io::ErrorKind::UnexpectedEof) => Fault::Tls("the peer closed during the handshake"),
        (None, io::ErrorKind::ConnectionReset) => Fault::Tls("the peer reset the handshake"),
        (None, _) => Fault::Tls("the handshake failed"),
    }
}

/// The fault of a response that is not HTTP.
pub(crate) fn of_malformed(malformed: Malformed) -> Fault {
    if malformed.is_too_large() {
        Fault::TooLarge(malformed.name())
    } else {
        Fault::Malformed(malformed.name())
    }
}

/// The reason of [`Fault::Tls`] in the words of Go's `crypto/tls`, where Go has the same case.
#[must_use]
pub fn go_tls_text(reason: &str) -> Option<&'static str> {
    Some(match reason {
        UNKNOWN_ISSUER | OF_CA => {
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        }
        NO_TLS => "tls: first record does not look like a TLS handshake",
        "the peer refused the TLS version" => "remote error: tls: protocol version not supported",
        "the peer refused the handshake" => "remote error: tls: handshake failure",
        "the peer requires a client certificate" => "remote error: tls: certificate required",
        _ => return None,
    })
}

/// As [`go_tls_text`]; where Go has no such case, `tls: REASON`.
#[must_use]
pub fn go_tls_error(reason: &str) -> String {
    go_tls_text(reason).map_or_else(|| format!("tls: {reason}"), str::to_owned)
}

const UNKNOWN_ISSUER: &str = "the certificate's issuer is not trusted";
const OF_CA: &str = "the certificate is one of a CA and not trusted itself";
const NO_TLS: &str = "the peer does not speak TLS";

/// The reason of a certificate that does not have the name of the host.
pub const OTHER_NAME: &str = "the certificate is for another name";

/// A stable text for an error of rustls.
fn tls_reason(error: &io::Error) -> Option<&'static str> {
    use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(reason) => match reason {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet"
            }
            CertificateError::UnknownIssuer => UNKNOWN_ISSUER,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                OTHER_NAME
            }
            CertificateError::Revoked => "the certificate is revoked",
            CertificateError::BadSignature => "the certificate has a bad signature",
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "the certificate is not for servers"
            }
            CertificateError::UnhandledCriticalExtension => {
                "the certificate has an unknown critical extension"
            }
            CertificateError::BadEncoding => "the certificate is malformed",
            reason if is_of_ca(reason) => OF_CA,
            CertificateError::Other(why) if why.to_string().contains("UnsupportedCertVersion") => {
                "the certificate is of an X.509 version before 3"
            }
            _ => "the certificate is not valid",
        },
        Error::NoCertificatesPresented => "the peer has no certificate",
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the peer requires a client certificate"
        }
        Error::AlertReceived(AlertDescription::HandshakeFailure) => {
            "the peer refused the handshake"
        }
        Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the peer refused the TLS version"
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the peer does not know the server name"
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the peer does not offer the requested HTTP version"
        }
        Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::AccessDenied,
        ) => "the peer rejects the client certificate",
        Error::AlertReceived(_) => "the peer sent an alert",
        Error::InvalidMessage(_) => NO_TLS,
        Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(_)) => {
            "the peer rejected the encrypted hello (ECH)"
        }
        Error::PeerIncompatible(_) => "the peer supports no common TLS parameters",
        _ => "the TLS session failed",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_have_the_same_words_with_every_c_library() {
        for (errno, text) in [
            (libc::ENETUNREACH, "Network is unreachable"),
            (libc::EHOSTUNREACH, "No route to host"),
            (libc::ECONNREFUSED, "Connection refused"),
            (libc::EADDRNOTAVAIL, "Cannot assign requested address"),
            (libc::EADDRINUSE, "Address already in use"),
            (libc::ETIMEDOUT, "Connection timed out"),
            (libc::EMFILE, "Too many open files"),
            (libc::ENOENT, "No such file or directory"),
        ] {
            assert_eq!(system_text(&io::Error::from_raw_os_error(errno)), text);
            assert_eq!(go_errno_text(errno), text.to_lowercase());
        }
    }
}
