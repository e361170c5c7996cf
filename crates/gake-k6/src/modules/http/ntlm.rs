//! NTLM authentication, version 2 ([MS-NLMP]): two messages of the client around a challenge.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gake_js::hash::{hmac_md5, md4};

use super::digest::Credentials;

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// NEGOTIATE_UNICODE: texts are UTF-16.
const UNICODE: u32 = 1;

/// The flags of NEGOTIATE: Unicode, NTLM, always sign, extended session security, target
/// information, version, keys of 128 and 56 bits.
const OFFERED: u32 = 0xa088_8201;

/// k6's version in NEGOTIATE: 6.1.7601, revision 15.
const VERSION: [u8; 8] = [6, 1, 0xb1, 0x1d, 0, 0, 0, 15];

/// Bytes of NEGOTIATE.
const NEGOTIATE_BYTES: usize = 40;

/// Bytes before the payload of AUTHENTICATE.
const AUTHENTICATE_HEAD: usize = 64;

/// MsvAvEOL, the end of the target information.
const END_PAIR: u16 = 0;

/// MsvAvTimestamp, the server's time.
const TIME_PAIR: u16 = 7;

/// Seconds from 1601, the epoch of Windows, to 1970.
const EPOCH_SECONDS: u64 = 11_644_473_600;

/// The schemes of offers, the preferred one first.
const SCHEMES: [&str; 2] = ["NTLM", "Negotiate"];

/// The client's random input.
struct ClientChallenge {
    nonce: [u8; 8],
    /// In units of 100 ns since 1601, for servers without a timestamp.
    now: u64,
}

/// The `Authorization` header for a 401: NEGOTIATE for an offer, AUTHENTICATE for a challenge.
/// `None` if the server does not offer NTLM, or its challenge is invalid.
pub(super) fn respond(credentials: &Credentials, offers: &str, is_first: bool) -> Option<String> {
    let scheme = SCHEMES.into_iter().find(|scheme| offer(offers, scheme).is_some())?;
    let message = match is_first {
        true => negotiate(),
        false => {
            let challenge = STANDARD.decode(offer(offers, scheme)?).ok()?;
            authenticate(credentials, &challenge, &ClientChallenge::random()?)?
        }
    };
    Some(format!("{scheme} {}", STANDARD.encode(message)))
}

/// The text after a scheme in a list of offers.
fn offer<'a>(offers: &'a str, scheme: &str) -> Option<&'a str> {
    offers.split(',').find_map(|offer| {
        let (name, rest) = offer.trim().split_once(' ').unwrap_or((offer.trim(), ""));
        name.eq_ignore_ascii_case(scheme).then_some(rest.trim())
    })
}

impl ClientChallenge {
    fn random() -> Option<Self> {
        let mut nonce = [0; 8];
        aws_lc_rs::rand::fill(&mut nonce).ok()?;
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let hundreds = u64::from(since.subsec_nanos()) / 100;
        Some(Self { nonce, now: (since.as_secs() + EPOCH_SECONDS) * 10_000_000 + hundreds })
    }
}

fn negotiate() -> Vec<u8> {
    let mut message = head(1);
    message.extend(OFFERED.to_le_bytes());
    // No domain and no workstation.
    for _ in 0..2 {
        message.extend(field(0, NEGOTIATE_BYTES));
    }
    message.extend(VERSION);
    message
}

fn authenticate(
    credentials: &Credentials,
    challenge: &[u8],
    choice: &ClientChallenge,
) -> Option<Vec<u8>> {
    if challenge.get(..8)? != SIGNATURE || number(challenge, 8)? != 2 {
        return None;
    }
    let flags = number(challenge, 20)?;
    let server_nonce = challenge.get(24..32)?;
    if flags & UNICODE == 0 {
        return None;
    }
    let target = payload(challenge, 40).unwrap_or_default();
    let (domain, user) = match credentials.user.split_once('\\') {
        Some((domain, user)) => (domain, user),
        None => ("", credentials.user.as_str()),
    };
    let password = md4(&utf16(&credentials.password));
    let key = hmac_md5(&password, &utf16(&format!("{}{domain}", user.to_uppercase())));
    let time = server_time(target).unwrap_or(choice.now);
    let mut blob = vec![1, 1, 0, 0, 0, 0, 0, 0];
    blob.extend(time.to_le_bytes());
    blob.extend(choice.nonce);
    blob.extend([0; 4]);
    blob.extend(target);
    blob.extend([0; 4]);
    let proof = hmac_md5(&key, &[server_nonce, &blob].concat());
    let nt_response = [proof, blob].concat();
    let lm_response = match target.is_empty() {
        true => {
            let both = [server_nonce, &choice.nonce].concat();
            [hmac_md5(&key, &both), choice.nonce.to_vec()].concat()
        }
        false => Vec::new(),
    };
    // No workstation and no session key.
    let payloads = [lm_response, nt_response, utf16(domain), utf16(user), Vec::new(), Vec::new()];
    let mut message = head(3);
    let mut at = AUTHENTICATE_HEAD;
    for payload in &payloads {
        message.extend(field(payload.len(), at));
        at += payload.len();
    }
    message.extend(flags.to_le_bytes());
    message.extend(payloads.concat());
    Some(message)
}

fn head(kind: u32) -> Vec<u8> {
    [SIGNATURE.as_slice(), &kind.to_le_bytes()].concat()
}

/// A field that refers to a payload: its length twice, and its offset.
fn field(len: usize, at: usize) -> Vec<u8> {
    let len = u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes();
    let at = u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes();
    [len.as_slice(), &len, &at].concat()
}

/// The payload of the field at `offset`.
fn payload(message: &[u8], offset: usize) -> Option<&[u8]> {
    let len = usize::from(short(message, offset)?);
    let start = usize::try_from(number(message, offset + 4)?).ok()?;
    message.get(start..start.checked_add(len)?)
}

/// The server's time in its target information.
fn server_time(mut pairs: &[u8]) -> Option<u64> {
    loop {
        let (kind, len) = (short(pairs, 0)?, usize::from(short(pairs, 2)?));
        let value = pairs.get(4..4 + len)?;
        match kind {
            TIME_PAIR => return Some(u64::from_le_bytes(value.try_into().ok()?)),
            END_PAIR => return None,
            _ => pairs = &pairs[4 + len..],
        }
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|pair| byte(pair).unwrap()).collect()
    }

    fn credentials(user: &str, password: &str) -> Credentials {
        Credentials { user: user.to_owned(), password: password.to_owned() }
    }

    /// [MS-NLMP], section 4.2.4: User in Domain, whose password is Password; every byte of the
    /// client's nonce is 0xaa, and the time is 0.
    #[test]
    fn the_example_of_the_standard_has_its_proof() {
        let mut challenge = head(2);
        challenge.extend(field(12, 56));
        challenge.extend(0xe28a_8233_u32.to_le_bytes());
        challenge.extend(bytes("0123456789abcdef"));
        challenge.extend([0; 8]);
        challenge.extend(field(36, 68));
        challenge.extend([6, 0, 0x70, 0x17, 0, 0, 0, 15]);
        challenge.extend(utf16("Server"));
        let pairs =
            bytes("02000c0044006f006d00610069006e0001000c005300650072007600650072000000 0000");
        challenge.extend(&pairs);
        let choice = ClientChallenge { nonce: [0xaa; 8], now: 0 };
        let message =
            authenticate(&credentials("Domain\\User", "Password"), &challenge, &choice).unwrap();
        let response = payload(&message, 20).unwrap();
        assert_eq!(response[..16], bytes("68cd0ab851e51c96aabc927bebef6a1c"));
        assert_eq!(payload(&message, 28).unwrap(), utf16("Domain"));
        assert_eq!(payload(&message, 36).unwrap(), utf16("User"));
    }

    #[test]
    fn invalid_challenges_get_no_response() {
        let someone = credentials("ann", "pass");
        for offers in ["Basic realm=\"x\"", "NTLM !", "NTLM AAAA", "NTLM TlRMTVNTUAACAAAA"] {
            assert_eq!(respond(&someone, offers, false), None, "{offers}");
        }
        let mut out_of_bounds = head(2);
        out_of_bounds.extend(field(0, 0));
        out_of_bounds.extend(UNICODE.to_le_bytes());
        out_of_bounds.extend([7; 16]);
        out_of_bounds.extend(field(60_000, 4_000_000_000));
        let choice = ClientChallenge { nonce: [0; 8], now: 0 };
        let message = authenticate(&someone, &out_of_bounds, &choice).unwrap();
        assert_eq!(payload(&message, 12).unwrap().len(), 24, "no target information");
    }

    #[test]
    fn the_offer_decides_the_scheme() {
        let someone = credentials("ann", "pass");
        let first = respond(&someone, "Negotiate, NTLM", true).unwrap();
        // The header of k6 1.8.1.
        assert_eq!(first, "NTLM TlRMTVNTUAABAAAAAYKIoAAAAAAoAAAAAAAAACgAAAAGAbEdAAAADw==");
        assert!(respond(&someone, "Negotiate", true).unwrap().starts_with("Negotiate TlRM"));
        assert_eq!(respond(&someone, "Digest realm=\"x\"", true), None);
    }
}
