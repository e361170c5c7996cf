//! The faults of QUIC connections.

use gake_core::record::{ErrorCode, Fault, Phase};
use quinn::{ConnectionError, TransportErrorCode, VarInt};

/// The error codes that stand for TLS alerts (RFC 9001, section 4.8).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;

/// The names of the error codes from 0 (RFC 9000, section 20.1).
const NAMES: [&str; 17] = [
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
];

/// The fault of a connection lost in a phase of an exchange, [`Phase::Connect`] while it opens.
pub(crate) fn of_lost(error: &ConnectionError, phase: Phase) -> Fault {
    match error {
        ConnectionError::VersionMismatch => Fault::Quic("version_negotiation"),
        // Detected by this side, for example a bad certificate.
        ConnectionError::TransportError(error) => of_code(error.code, phase, false),
        ConnectionError::ConnectionClosed(close) => of_code(close.error_code, phase, true),
        ConnectionError::ApplicationClosed(close) => of_application(close.error_code, phase),
        ConnectionError::Reset => Fault::Reset,
        ConnectionError::TimedOut if phase == Phase::Connect => Fault::ConnectTimeout,
        ConnectionError::TimedOut => Fault::Quic("idle_timeout"),
        ConnectionError::LocallyClosed => Fault::ClosedEarly(phase),
        ConnectionError::CidsExhausted => Fault::Quic("connection_ids_exhausted"),
    }
}

/// The fault of a connection that the server's application closed.
fn of_application(code: VarInt, phase: Phase) -> Fault {
    match ErrorCode::from_http3(code.into_inner()) {
        ErrorCode::H3NoError => Fault::ClosedEarly(phase),
        ErrorCode::Unknown => Fault::Quic("unknown application error"),
        code => Fault::Quic(code.name()),
    }
}

fn of_code(code: TransportErrorCode, phase: Phase, is_peers: bool) -> Fault {
    let code = u64::from(code);
    if ALERTS.contains(&code) {
        return Fault::Tls(alert(code - ALERTS.start, is_peers));
    }
    match usize::try_from(code).ok().and_then(|code| NAMES.get(code)) {
        Some(&"NO_ERROR") if is_peers => Fault::ClosedEarly(phase),
        Some(&"CONNECTION_REFUSED") if is_peers => Fault::ConnectRefused,
        Some(name) => Fault::Quic(name),
        None => Fault::Quic("unknown error"),
    }
}

/// The reason for a TLS alert, in the words of `net/fault.rs`. This side reports a bad certificate by
/// an alert, too.
fn alert(number: u64, is_peers: bool) -> &'static str {
    match (number, is_peers) {
        (42, false) => "the certificate is not valid",
        (44, false) => "the certificate is revoked",
        (45, false) => "the certificate has expired or is not valid yet",
        (46, false) => "the certificate is not valid",
        (48, false) => "the certificate's issuer is not trusted",
        (51, false) => "the certificate has a bad signature",
        (42 | 45 | 46 | 48 | 49, true) => "the peer rejects the client certificate",
        (116, true) => "the peer requires a client certificate",
        (40, true) => "the peer refused the handshake",
        (112, true) => "the peer does not know the server name",
        (121, false) => "the peer rejected the encrypted hello (ECH)",
        (120, _) => "the peer does not offer the requested HTTP version",
        (_, true) => "the peer sent an alert",
        (_, false) => "the handshake failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names() {
        let lost = |error| of_lost(&error, Phase::FirstByte);
        assert_eq!(lost(ConnectionError::Reset), Fault::Reset);
        assert_eq!(lost(ConnectionError::TimedOut), Fault::Quic("idle_timeout"));
        assert_eq!(of_lost(&ConnectionError::TimedOut, Phase::Connect), Fault::ConnectTimeout);
        let code = |code, is_peers| of_code(code, Phase::FirstByte, is_peers);
        assert_eq!(code(TransportErrorCode::CONNECTION_REFUSED, true), Fault::ConnectRefused);
        assert_eq!(code(TransportErrorCode::NO_VIABLE_PATH, false), Fault::Quic("NO_VIABLE_PATH"));
        assert_eq!(
            code(TransportErrorCode::crypto(48), false),
            Fault::Tls("the certificate's issuer is not trusted")
        );
        assert_eq!(
            code(TransportErrorCode::crypto(121), false),
            Fault::Tls("the peer rejected the encrypted hello (ECH)")
        );
        let closed = |code: u32| of_application(VarInt::from_u32(code), Phase::Body);
        assert_eq!(closed(0x100), Fault::ClosedEarly(Phase::Body));
        assert_eq!(closed(0x107), Fault::Quic("H3_EXCESSIVE_LOAD"));
    }
}
