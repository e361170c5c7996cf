//! The fleet's token, which authenticates and encrypts messages.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac;

use crate::FleetError;

/// Minimum length of a token, in bytes.
const SECRET_MIN: usize = 16;

/// Length of a seal, in bytes.
pub(crate) const SEAL: usize = 32;

/// A secret that coordinator and agents share. Messages are sealed with it (HMAC-SHA-256) for one
/// purpose each, so that none can be used for another.
#[derive(Clone)]
pub struct FleetToken(hmac::Key);

impl FleetToken {
    /// The token `secret`, trimmed.
    ///
    /// # Errors
    /// When it is shorter than 16 bytes.
    pub fn new(secret: &str) -> Result<Self, FleetError> {
        let secret = secret.trim();
        if secret.len() < SECRET_MIN {
            return Err(FleetError::Token("is shorter than 16 bytes"));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())))
    }

    /// Returns a new random token as text.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn random() -> Result<String, FleetError> {
        random_text::<32>()
    }

    /// Seals `body` for `purpose`: the seal, followed by the body.
    pub(crate) fn seal(&self, purpose: &str, body: &[u8]) -> Vec<u8> {
        let mut sealed = self.context(purpose, body).sign().as_ref().to_vec();
        sealed.extend_from_slice(body);
        sealed
    }

    /// The body of `sealed`, if it was sealed with this token for `purpose`.
    pub(crate) fn open<'a>(&self, purpose: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (seal, body) = sealed.split_at_checked(SEAL)?;
        let signed = [&(purpose.len() as u64).to_le_bytes(), purpose.as_bytes(), body].concat();
        hmac::verify(&self.0, &signed, seal).ok().map(|()| body)
    }

    /// Encrypts `body` for `purpose` (AES-256-GCM with a key derived from the token).
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub(crate) fn encrypt(&self, purpose: &str, body: &[u8]) -> Result<Vec<u8>, FleetError> {
        let failed = || FleetError::System("a message cannot be encrypted".to_owned());
        let key = self.cipher().ok_or_else(failed)?;
        let mut sealed = body.to_vec();
        let nonce = key.seal_in_place_append_tag(Aad::from(purpose), &mut sealed);
        let nonce = nonce.map_err(|_| failed())?;
        Ok([nonce.as_ref().as_slice(), &sealed].concat())
    }

    /// Decrypts what was encrypted with this token for `purpose`.
    pub(crate) fn decrypt(&self, purpose: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut body = body.to_vec();
        let length = self.cipher()?.open_in_place(nonce, Aad::from(purpose), &mut body).ok()?.len();
        body.truncate(length);
        Some(body)
    }

    /// The cipher of this token. Its key cannot be the result of a seal: sealed text starts with
    /// the length of a purpose.
    fn cipher(&self) -> Option<RandomizedNonceKey> {
        let key = hmac::sign(&self.0, b"the key of AES-256-GCM");
        RandomizedNonceKey::new(&AES_256_GCM, key.as_ref()).ok()
    }

    fn context(&self, purpose: &str, body: &[u8]) -> hmac::Context {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&(purpose.len() as u64).to_le_bytes());
        context.update(purpose.as_bytes());
        context.update(body);
        context
    }
}

impl std::fmt::Debug for FleetToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetToken")
    }
}

/// `BYTES` random bytes in hexadecimal.
pub(crate) fn random_text<const BYTES: usize>() -> Result<String, FleetError> {
    let mut bytes = [0; BYTES];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| FleetError::System("the system gives no random bytes".to_owned()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_and_purpose_open_it() {
        let token = FleetToken::new(" 0123456789abcdef\n").unwrap();
        let sealed = token.seal("offer 1", b"body");
        assert_eq!(token.open("offer 1", &sealed), Some(&b"body"[..]));
        assert_eq!(token.open("offer 2", &sealed), None);
        assert_eq!(FleetToken::new("fedcba9876543210").unwrap().open("offer 1", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(token.open("offer 1", &changed), None, "byte {at}");
        }
        assert_eq!(token.open("offer 1", &sealed[..20]), None);
        // Text cannot move from the purpose to the body.
        assert_eq!(token.open("offer", &token.seal("offer 1", b"")), None);
    }

    #[test]
    fn decryption_needs_the_same_token_and_purpose() {
        let token = FleetToken::new("0123456789abcdef").unwrap();
        for body in [b"".as_slice(), b"a private key"] {
            let hidden = token.encrypt("file 1", body).unwrap();
            assert!(body.is_empty() || !hidden.windows(body.len()).any(|part| part == body));
            assert_eq!(token.decrypt("file 1", &hidden).as_deref(), Some(body));
            assert_eq!(token.decrypt("file 2", &hidden), None);
            let other = FleetToken::new("fedcba9876543210").unwrap();
            assert_eq!(other.decrypt("file 1", &hidden), None);
            assert_ne!(token.encrypt("file 1", body).unwrap(), hidden, "each has its own nonce");
            assert_eq!(token.decrypt("file 1", &hidden[..10]), None);
        }
    }

    #[test]
    fn short_tokens_are_refused_and_none_is_shown() {
        assert!(FleetToken::new("short").is_err());
        let (one, other) = (FleetToken::random().unwrap(), FleetToken::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(format!("{:?}", FleetToken::new(&one).unwrap()), "FleetToken");
    }
}
