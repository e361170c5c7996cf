//! SCRAM-SHA-256 (RFC 5802, RFC 7677): proves a password without sending it.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Maximum iterations, more than any server requests: they block the thread.
const ROUNDS_MAX: u32 = 1_000_000;

const HEADER: &str = "n,,";

/// The client's side of an exchange.
#[derive(Debug)]
pub(super) struct Scram {
    first_bare: String,
    nonce: String,
    /// The server's expected signature.
    expected: Option<Vec<u8>>,
}

impl Scram {
    /// The user name is empty: PostgreSQL takes it from the startup message.
    pub(super) fn new(nonce: &str) -> Self {
        Self { first_bare: format!("n=,r={nonce}"), nonce: nonce.to_owned(), expected: None }
    }

    /// The client's first message.
    pub(super) fn first(&self) -> String {
        format!("{HEADER}{}", self.first_bare)
    }

    /// The client's final message, in reply to the server's first.
    pub(super) fn proof(&mut self, server: &str, password: &str) -> Result<String, String> {
        let attribute = |name: &str| {
            server
                .split(',')
                .find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
                .ok_or_else(|| "the server's challenge is malformed".to_owned())
        };
        let nonce = attribute("r")?;
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err("the server's challenge belongs to another exchange".to_owned());
        }
        let salt = attribute("s")?;
        let salt = BASE64.decode(salt).map_err(|_| "the server's salt is malformed".to_owned())?;
        let rounds = attribute("i")?.parse().ok().filter(|rounds| *rounds <= ROUNDS_MAX);
        let rounds = rounds
            .and_then(NonZeroU32::new)
            .ok_or_else(|| format!("the server requests 0 or more than {ROUNDS_MAX} rounds"))?;
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut salted);
        let last = format!("c={},r={nonce}", BASE64.encode(HEADER));
        let message = format!("{},{server},{last}", self.first_bare);
        let client_key = signed(&salted, b"Client Key");
        let stored = digest::digest(&digest::SHA256, &client_key);
        let signature = signed(stored.as_ref(), message.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        self.expected = Some(signed(&signed(&salted, b"Server Key"), message.as_bytes()));
        Ok(format!("{last},p={}", BASE64.encode(proof)))
    }

    /// Whether the server's final message proves that it knows the password.
    pub(super) fn is_proven_by(&self, server: &str) -> bool {
        let signature = server.strip_prefix("v=").and_then(|text| BASE64.decode(text).ok());
        signature.is_some() && signature == self.expected
    }
}

fn signed(key: &[u8], message: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, message).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    #[test]
    fn the_exchange_of_the_rfc() {
        // The RFC's example has a user name.
        let mut scram = Scram { first_bare: format!("n=user,r={NONCE}"), ..Scram::new(NONCE) };
        let proof = scram.proof(CHALLENGE, "pencil").unwrap();
        assert!(proof.ends_with(",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), "{proof}");
        assert!(scram.is_proven_by("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        assert!(!scram.is_proven_by("v=AAAA"));
        assert!(!Scram::new(NONCE).is_proven_by("v=AAAA"));
    }

    #[test]
    fn invalid_challenges_are_rejected() {
        for challenge in [
            "",
            "r=other,s=AA==,i=1",
            &format!("r={NONCE},s=AA==,i=1"),
            &format!("r={NONCE}x,s=*,i=1"),
            &format!("r={NONCE}x,s=AA==,i=0"),
            &format!("r={NONCE}x,s=AA==,i=4000000000"),
        ] {
            assert!(Scram::new(NONCE).proof(challenge, "p").is_err(), "{challenge}");
        }
    }
}
