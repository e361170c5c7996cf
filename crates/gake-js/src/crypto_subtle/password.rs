//! Keys derived from passwords: PBKDF2 (RFC 8018), in slices, for a script decides the rounds.

use std::num::NonZeroU32;

use aws_lc_rs::hmac;

/// Rounds between polls: less than a millisecond.
const SLICE: u32 = 500;

/// How much to derive.
#[derive(Debug, Clone, Copy)]
pub(super) struct PasswordRounds {
    iterations: NonZeroU32,
}

impl PasswordRounds {
    pub(super) fn new(iterations: u32, length: usize) -> Result<Self, &'static str> {
        let iterations = NonZeroU32::new(iterations);
        let iterations = iterations.ok_or("there must be at least one iteration")?;
        if length == 0 {
            return Err("there must be at least 8 bits to derive");
        }
        Ok(Self { iterations })
    }

    /// Fills `made`; `poll` may end it early.
    pub(super) fn derive<E>(
        self,
        algorithm: hmac::Algorithm,
        password: &[u8],
        salt: &[u8],
        made: &mut [u8],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let key = hmac::Key::new(algorithm, password);
        let size = algorithm.digest_algorithm().output_len();
        for (index, block) in made.chunks_mut(size).enumerate() {
            let mut first = hmac::Context::with_key(&key);
            first.update(salt);
            first.update(&(index as u32 + 1).to_be_bytes());
            let mut last = first.sign();
            xor(block, last.as_ref());
            for round in 1..self.iterations.get() {
                if round % SLICE == 0 {
                    poll()?;
                }
                last = hmac::sign(&key, last.as_ref());
                xor(block, last.as_ref());
            }
            poll()?;
        }
        Ok(())
    }
}

fn xor(into: &mut [u8], bytes: &[u8]) {
    into.iter_mut().zip(bytes).for_each(|(into, byte)| *into ^= byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_derives_what_aws_lc_does_and_can_be_ended() {
        use aws_lc_rs::pbkdf2;
        for (ours, theirs) in [
            (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, pbkdf2::PBKDF2_HMAC_SHA1),
            (hmac::HMAC_SHA256, pbkdf2::PBKDF2_HMAC_SHA256),
            (hmac::HMAC_SHA512, pbkdf2::PBKDF2_HMAC_SHA512),
        ] {
            for (iterations, length) in [(1, 1), (2, 20), (1_000, 64), (1_001, 100)] {
                let rounds = PasswordRounds::new(iterations, length).unwrap();
                let (mut made, mut expected) = (vec![0; length], vec![0; length]);
                rounds.derive(ours, b"pass", b"salt", &mut made, || Ok::<_, ()>(())).unwrap();
                pbkdf2::derive(theirs, rounds.iterations, b"salt", b"pass", &mut expected);
                assert_eq!(made, expected, "{iterations} rounds, {length} bytes");
            }
        }
        let endless = PasswordRounds::new(u32::MAX, 64).unwrap();
        let mut polls = 0;
        let ended = endless.derive(hmac::HMAC_SHA256, b"pass", b"salt", &mut [0; 64], || {
            polls += 1;
            if polls == 3 { Err("ended") } else { Ok(()) }
        });
        assert_eq!((ended, polls), (Err("ended"), 3));
    }
}
