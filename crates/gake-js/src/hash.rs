//! Hashes and HMACs of inputs of any length, in slices, for a script decides the length.

use aws_lc_rs::digest;
use md4::Md4;
use md5::{Digest, Md5};
use ripemd::Ripemd160;
use sha2::Sha512_224;

/// Bytes between polls: less than a millisecond.
const SLICE: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md4,
    Md5,
    Ripemd160,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    Sha512To224,
    Sha512To256,
}

impl Algorithm {
    /// Bytes of a block.
    const fn block(self) -> usize {
        match self {
            Self::Md4 | Self::Md5 | Self::Ripemd160 | Self::Sha1 | Self::Sha256 => 64,
            Self::Sha384 | Self::Sha512 | Self::Sha512To224 | Self::Sha512To256 => 128,
        }
    }
}

/// The state of a hash.
#[derive(Clone)]
enum HashState {
    Common(digest::Context),
    Md4(Md4),
    Md5(Md5),
    Ripemd160(Ripemd160),
    Sha512To224(Sha512_224),
}

impl HashState {
    fn new(algorithm: Algorithm) -> Self {
        Self::Common(digest::Context::new(match algorithm {
            Algorithm::Md4 => return Self::Md4(Md4::new()),
            Algorithm::Md5 => return Self::Md5(Md5::new()),
            Algorithm::Ripemd160 => return Self::Ripemd160(Ripemd160::new()),
            Algorithm::Sha512To224 => return Self::Sha512To224(Sha512_224::new()),
            Algorithm::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => &digest::SHA256,
            Algorithm::Sha384 => &digest::SHA384,
            Algorithm::Sha512 => &digest::SHA512,
            Algorithm::Sha512To256 => &digest::SHA512_256,
        }))
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Common(state) => state.update(bytes),
            Self::Md4(state) => state.update(bytes),
            Self::Md5(state) => state.update(bytes),
            Self::Ripemd160(state) => state.update(bytes),
            Self::Sha512To224(state) => state.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Common(state) => state.finish().as_ref().to_vec(),
            Self::Md4(state) => state.finalize().to_vec(),
            Self::Md5(state) => state.finalize().to_vec(),
            Self::Ripemd160(state) => state.finalize().to_vec(),
            Self::Sha512To224(state) => state.finalize().to_vec(),
        }
    }
}

/// A hash, or an HMAC (RFC 2104) if it has a key, that takes its input in parts.
#[derive(Clone)]
pub(crate) struct Hash {
    state: HashState,
    /// Of an HMAC: what hashes the hash.
    outer: Option<HashState>,
}

impl Hash {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        Self { state: HashState::new(algorithm), outer: None }
    }

    /// An HMAC; `poll` may end the hash of a long key.
    pub(crate) fn keyed<E>(
        algorithm: Algorithm,
        key: &[u8],
        poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut block = match key.len() > algorithm.block() {
            true => {
                let mut hash = Self::new(algorithm);
                hash.update(key, poll)?;
                hash.finish()
            }
            false => key.to_vec(),
        };
        block.resize(algorithm.block(), 0);
        let padded = |pad: u8| {
            let mut state = HashState::new(algorithm);
            state.update(&block.iter().map(|byte| byte ^ pad).collect::<Vec<_>>());
            state
        };
        Ok(Self { state: padded(0x36), outer: Some(padded(0x5c)) })
    }

    /// Adds input; `poll` may end it early.
    pub(crate) fn update<E>(
        &mut self,
        bytes: &[u8],
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        for (number, slice) in bytes.chunks(SLICE).enumerate() {
            if number > 0 {
                poll()?;
            }
            self.state.update(slice);
        }
        Ok(())
    }

    /// The hash of the input.
    pub(crate) fn finish(self) -> Vec<u8> {
        let hash = self.state.finish();
        let Some(mut outer) = self.outer else { return hash };
        outer.update(&hash);
        outer.finish()
    }
}

fn never() -> Result<(), std::convert::Infallible> {
    Ok(())
}

/// The MD4 digest, for NTLM.
pub fn md4(bytes: &[u8]) -> Vec<u8> {
    Md4::digest(bytes).to_vec()
}

/// HMAC-MD5, for NTLM.
pub fn hmac_md5(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let Ok(mut hash) = Hash::keyed(Algorithm::Md5, key, never);
    let Ok(()) = hash.update(bytes, never);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::hmac;

    use super::*;
    use crate::crypto::hex;

    fn keyed(algorithm: Algorithm, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let Ok(mut hash) = Hash::keyed(algorithm, key, never);
        let Ok(()) = hash.update(bytes, never);
        hash.finish()
    }

    /// RFC 2202, and the results of aws-lc-rs.
    #[test]
    fn hmacs_follow_the_standard() {
        let made = hmac_md5(&[0x0b; 16], b"Hi There");
        assert_eq!(hex(&made), "9294727a3638bb1c13f48ef8158bfc9d");
        for key in [&[7_u8; 20][..], &[9; 200]] {
            for (algorithm, theirs) in [
                (Algorithm::Sha1, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
                (Algorithm::Sha256, hmac::HMAC_SHA256),
                (Algorithm::Sha384, hmac::HMAC_SHA384),
                (Algorithm::Sha512, hmac::HMAC_SHA512),
            ] {
                let expected = hmac::sign(&hmac::Key::new(theirs, key), b"text");
                assert_eq!(keyed(algorithm, key, b"text"), expected.as_ref(), "{algorithm:?}");
            }
        }
    }

    #[test]
    fn long_inputs_are_hashed_in_slices_that_can_be_ended() {
        let bytes = vec![7; 3 * SLICE + 1];
        let mut hash = Hash::new(Algorithm::Sha256);
        let mut polls = 0;
        let ended = hash.update(&bytes, || {
            polls += 1;
            Ok::<_, ()>(())
        });
        assert_eq!((ended, polls), (Ok(()), 3));
        assert_eq!(hash.finish(), digest::digest(&digest::SHA256, &bytes).as_ref());
        let ended = Hash::keyed(Algorithm::Md4, &bytes, || Err("ended"));
        assert_eq!(ended.err(), Some("ended"));
    }
}
