//! AES on bytes, in the modes of the Web Cryptography API.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;

/// Bytes of the iv of AES-GCM.
const GCM_IV: usize = 12;

/// Encrypts or decrypts `data`; `iv` is the initialisation vector or counter, `aad` the additional
/// authenticated data of AES-GCM.
pub(super) fn run(
    mode: &str,
    encrypts: bool,
    key: &[u8],
    iv: &[u8],
    aad: &[u8],
    data: Vec<u8>,
) -> Result<Vec<u8>, &'static str> {
    let failed = |_: Unspecified| match encrypts {
        true => "the data cannot be encrypted",
        false => "the data cannot be decrypted: wrong key, parameters or data",
    };
    match mode {
        "AES-CBC" => cbc(encrypts, cipher_key(key)?, block(iv)?, data).map_err(failed),
        "AES-CTR" => ctr(encrypts, cipher_key(key)?, block(iv)?, data).map_err(failed),
        "AES-GCM" => {
            if iv.len() != GCM_IV {
                return Err("AES-GCM takes an iv of 12 bytes here");
            }
            gcm(encrypts, key, iv, aad, data).map_err(failed)
        }
        _ => Err("unsupported algorithm: use AES-CBC, AES-CTR or AES-GCM"),
    }
}

fn block(iv: &[u8]) -> Result<FixedLength<16>, &'static str> {
    let iv: [u8; 16] = iv.try_into().map_err(|_| "the iv or counter must be 16 bytes long")?;
    Ok(FixedLength::from(iv))
}

fn cipher_key(key: &[u8]) -> Result<UnboundCipherKey, &'static str> {
    let algorithm = match key.len() {
        16 => &cipher::AES_128,
        24 => &cipher::AES_192,
        32 => &cipher::AES_256,
        _ => return Err("the key must have 128, 192 or 256 bits"),
    };
    UnboundCipherKey::new(algorithm, key).map_err(|_| "the key cannot be used")
}

fn cbc(
    encrypts: bool,
    key: UnboundCipherKey,
    iv: FixedLength<16>,
    mut data: Vec<u8>,
) -> Result<Vec<u8>, Unspecified> {
    if encrypts {
        let key = PaddedBlockEncryptingKey::cbc_pkcs7(key)?;
        key.less_safe_encrypt(&mut data, EncryptionContext::Iv128(iv))?;
        return Ok(data);
    }
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key)?;
    key.decrypt(&mut data, DecryptionContext::Iv128(iv)).map(|plain| plain.to_vec())
}

fn ctr(
    encrypts: bool,
    key: UnboundCipherKey,
    iv: FixedLength<16>,
    mut data: Vec<u8>,
) -> Result<Vec<u8>, Unspecified> {
    if encrypts {
        EncryptingKey::ctr(key)?.less_safe_encrypt(&mut data, EncryptionContext::Iv128(iv))?;
        return Ok(data);
    }
    let key = DecryptingKey::ctr(key)?;
    key.decrypt(&mut data, DecryptionContext::Iv128(iv)).map(|plain| plain.to_vec())
}

fn gcm(
    encrypts: bool,
    key: &[u8],
    iv: &[u8],
    aad: &[u8],
    mut data: Vec<u8>,
) -> Result<Vec<u8>, Unspecified> {
    let algorithm = match key.len() {
        16 => &aead::AES_128_GCM,
        24 => &aead::AES_192_GCM,
        32 => &aead::AES_256_GCM,
        _ => return Err(Unspecified),
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key)?);
    let nonce = Nonce::try_assume_unique_for_key(iv)?;
    if encrypts {
        key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut data)?;
        return Ok(data);
    }
    key.open_in_place(nonce, Aad::from(aad), &mut data).map(|plain| plain.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_data_can_be_decrypted() {
        let text = b"a text of more than one block".to_vec();
        for (mode, iv) in [("AES-CBC", 16), ("AES-CTR", 16), ("AES-GCM", 12)] {
            for length in [16, 24, 32] {
                let (key, iv) = (vec![7; length], vec![9; iv]);
                let secret = run(mode, true, &key, &iv, b"aad", text.clone()).unwrap();
                assert_ne!(secret, text, "{mode}");
                let plain = run(mode, false, &key, &iv, b"aad", secret.clone());
                assert_eq!(plain.as_deref(), Ok(&text[..]), "{mode}");
                if mode == "AES-GCM" {
                    assert!(run(mode, false, &key, &iv, b"other", secret).is_err());
                }
            }
            assert!(run(mode, true, &[1; 15], &[0; 16], &[], text.clone()).is_err());
        }
        assert!(run("AES-XTS", true, &[1; 16], &[0; 16], &[], text).is_err());
    }
}
