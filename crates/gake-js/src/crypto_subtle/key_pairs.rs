//! Key pairs of the Web Cryptography API, and keys derived from passwords.
//!
//! Private keys are PKCS #8, public keys SubjectPublicKeyInfo, both DER. `curve` is empty for RSA.

use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521};
use aws_lc_rs::encoding::{AsBigEndian, AsDer, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OAEP_SHA384_MGF1SHA384,
    OAEP_SHA512_MGF1SHA512, OaepAlgorithm, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, ParsedPublicKey};
use aws_lc_rs::signature::{RsaEncoding, RsaKeyPair, VerificationAlgorithm};

/// Bytes, or an error message.
type KeyResult<T = Vec<u8>> = Result<T, &'static str>;

const NO_CURVE: &str = "unsupported curve: use P-256, P-384 or P-521";
const NO_HASH: &str = "unsupported hash for this kind of key";
const NO_PRIVATE_KEY: &str = "the bytes are not a private key of this kind";
const NO_PUBLIC_KEY: &str = "the bytes are not a public key of this kind";
const FAILED: &str = "the operation failed";

pub(super) struct KeyPairBytes {
    pub(super) private: Vec<u8>,
    pub(super) public: Vec<u8>,
}

fn ecdh(curve: &str) -> KeyResult<&'static agreement::Algorithm> {
    match curve {
        "P-256" => Ok(&ECDH_P256),
        "P-384" => Ok(&ECDH_P384),
        "P-521" => Ok(&ECDH_P521),
        _ => Err(NO_CURVE),
    }
}

fn ecdsa(curve: &str, hash: &str) -> KeyResult<&'static dyn VerificationAlgorithm> {
    match (curve, hash) {
        ("P-256", "SHA-256") => Ok(&signature::ECDSA_P256_SHA256_FIXED),
        ("P-384", "SHA-384") => Ok(&signature::ECDSA_P384_SHA384_FIXED),
        ("P-521", "SHA-1") => Ok(&signature::ECDSA_P521_SHA1_FIXED),
        ("P-521", "SHA-256") => Ok(&signature::ECDSA_P521_SHA256_FIXED),
        ("P-521", "SHA-384") => Ok(&signature::ECDSA_P521_SHA384_FIXED),
        ("P-521", "SHA-512") => Ok(&signature::ECDSA_P521_SHA512_FIXED),
        ("P-256" | "P-384" | "P-521", _) => Err(NO_HASH),
        _ => Err(NO_CURVE),
    }
}

fn ecdsa_signing(curve: &str, hash: &str) -> KeyResult<&'static EcdsaSigningAlgorithm> {
    match (curve, hash) {
        ("P-256", "SHA-256") => Ok(&signature::ECDSA_P256_SHA256_FIXED_SIGNING),
        ("P-384", "SHA-384") => Ok(&signature::ECDSA_P384_SHA384_FIXED_SIGNING),
        ("P-521", "SHA-256") => Ok(&signature::ECDSA_P521_SHA256_FIXED_SIGNING),
        ("P-521", "SHA-384") => Ok(&signature::ECDSA_P521_SHA384_FIXED_SIGNING),
        ("P-521", "SHA-512") => Ok(&signature::ECDSA_P521_SHA512_FIXED_SIGNING),
        ("P-256" | "P-384" | "P-521", _) => Err(NO_HASH),
        _ => Err(NO_CURVE),
    }
}

fn rsa(is_pss: bool, hash: &str) -> KeyResult<&'static dyn VerificationAlgorithm> {
    match (is_pss, hash) {
        (false, "SHA-1") => Ok(&signature::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY),
        (false, "SHA-256") => Ok(&signature::RSA_PKCS1_2048_8192_SHA256),
        (false, "SHA-384") => Ok(&signature::RSA_PKCS1_2048_8192_SHA384),
        (false, "SHA-512") => Ok(&signature::RSA_PKCS1_2048_8192_SHA512),
        (true, "SHA-256") => Ok(&signature::RSA_PSS_2048_8192_SHA256),
        (true, "SHA-384") => Ok(&signature::RSA_PSS_2048_8192_SHA384),
        (true, "SHA-512") => Ok(&signature::RSA_PSS_2048_8192_SHA512),
        _ => Err(NO_HASH),
    }
}

fn rsa_signing(is_pss: bool, hash: &str) -> KeyResult<&'static dyn RsaEncoding> {
    match (is_pss, hash) {
        (false, "SHA-256") => Ok(&signature::RSA_PKCS1_SHA256),
        (false, "SHA-384") => Ok(&signature::RSA_PKCS1_SHA384),
        (false, "SHA-512") => Ok(&signature::RSA_PKCS1_SHA512),
        (true, "SHA-256") => Ok(&signature::RSA_PSS_SHA256),
        (true, "SHA-384") => Ok(&signature::RSA_PSS_SHA384),
        (true, "SHA-512") => Ok(&signature::RSA_PSS_SHA512),
        _ => Err(NO_HASH),
    }
}

fn oaep(hash: &str) -> KeyResult<&'static OaepAlgorithm> {
    match hash {
        "SHA-1" => Ok(&OAEP_SHA1_MGF1SHA1),
        "SHA-256" => Ok(&OAEP_SHA256_MGF1SHA256),
        "SHA-384" => Ok(&OAEP_SHA384_MGF1SHA384),
        "SHA-512" => Ok(&OAEP_SHA512_MGF1SHA512),
        _ => Err(NO_HASH),
    }
}

/// A supported hash of a curve: parsing a key needs one.
fn hash_of(curve: &str) -> &'static str {
    if curve == "P-384" { "SHA-384" } else { "SHA-256" }
}

/// A new pair of RSA keys with the public exponent 65,537.
pub(super) fn new_rsa(bits: u32) -> KeyResult<KeyPairBytes> {
    let size = match bits {
        2048 => KeySize::Rsa2048,
        3072 => KeySize::Rsa3072,
        4096 => KeySize::Rsa4096,
        8192 => KeySize::Rsa8192,
        _ => return Err("an RSA key has 2048, 3072, 4096 or 8192 bits here"),
    };
    let pair = RsaKeyPair::generate(size).map_err(|_| FAILED)?;
    let private: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| FAILED)?;
    let public = pair.public_key().as_der().map_err(|_| FAILED)?;
    Ok(KeyPairBytes { private: private.as_ref().to_vec(), public: public.as_ref().to_vec() })
}

/// The bits of the modulus of an RSA key.
pub(super) fn rsa_bits(is_private: bool, key: &[u8]) -> KeyResult<u32> {
    let bytes = if is_private {
        RsaKeyPair::from_pkcs8(key).map_err(|_| NO_PRIVATE_KEY)?.public_modulus_len()
    } else {
        PublicEncryptingKey::from_der(key).map_err(|_| NO_PUBLIC_KEY)?.key_size_bytes()
    };
    u32::try_from(bytes * 8).map_err(|_| FAILED)
}

pub(super) fn new_on_curve(curve: &str) -> KeyResult<KeyPairBytes> {
    let private = agreement::PrivateKey::generate(ecdh(curve)?).map_err(|_| FAILED)?;
    let public = private.compute_public_key().map_err(|_| FAILED)?;
    let public = public.as_der().map_err(|_| FAILED)?;
    Ok(KeyPairBytes { private: private_bytes(&private)?, public: public.as_ref().to_vec() })
}

fn private_bytes(private: &agreement::PrivateKey) -> KeyResult {
    let bytes: Pkcs8V1Der<'_> = private.as_der().map_err(|_| FAILED)?;
    Ok(bytes.as_ref().to_vec())
}

fn on_curve(curve: &str, private: &[u8]) -> KeyResult<agreement::PrivateKey> {
    agreement::PrivateKey::from_private_key_der(ecdh(curve)?, private).map_err(|_| NO_PRIVATE_KEY)
}

/// Imports a private key.
pub(super) fn private(curve: &str, bytes: &[u8]) -> KeyResult {
    if curve.is_empty() {
        let pair = RsaKeyPair::from_pkcs8(bytes).map_err(|_| NO_PRIVATE_KEY)?;
        let bytes: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| FAILED)?;
        return Ok(bytes.as_ref().to_vec());
    }
    private_bytes(&on_curve(curve, bytes)?)
}

/// A private key from its big-endian number.
pub(super) fn private_of_number(curve: &str, number: &[u8]) -> KeyResult {
    let key = agreement::PrivateKey::from_private_key(ecdh(curve)?, number);
    private_bytes(&key.map_err(|_| NO_PRIVATE_KEY)?)
}

/// The big-endian number of a private key.
pub(super) fn number(curve: &str, private: &[u8]) -> KeyResult {
    let number: EcPrivateKeyBin<'_> =
        on_curve(curve, private)?.as_be_bytes().map_err(|_| FAILED)?;
    Ok(number.as_ref().to_vec())
}

/// The uncompressed point of a key.
pub(super) fn point(curve: &str, is_private: bool, key: &[u8]) -> KeyResult {
    if is_private {
        let public = on_curve(curve, key)?.compute_public_key().map_err(|_| FAILED)?;
        return Ok(public.as_ref().to_vec());
    }
    // It ends the key, which `public` has normalised.
    let length = match curve {
        "P-256" => 65,
        "P-384" => 97,
        _ => 133,
    };
    let start = key.len().checked_sub(length).ok_or(NO_PUBLIC_KEY)?;
    Ok(key[start..].to_vec())
}

/// Imports a public key: a SubjectPublicKeyInfo or, on a curve, a point.
pub(super) fn public(curve: &str, bytes: &[u8]) -> KeyResult {
    let algorithm = match curve {
        "" => rsa(false, "SHA-256")?,
        curve => ecdsa(curve, hash_of(curve))?,
    };
    let key = ParsedPublicKey::new(algorithm, bytes).map_err(|_| NO_PUBLIC_KEY)?;
    Ok(key.as_der().map_err(|_| FAILED)?.as_ref().to_vec())
}

pub(super) enum SignatureScheme<'a> {
    Curve(&'a str),
    Rsa { is_pss: bool },
}

impl<'a> SignatureScheme<'a> {
    pub(super) fn of(curve: &'a str, is_pss: bool) -> Self {
        if curve.is_empty() { Self::Rsa { is_pss } } else { Self::Curve(curve) }
    }
}

/// Signs; on a curve the signature is its two numbers concatenated.
pub(super) fn sign(
    scheme: &SignatureScheme<'_>,
    hash: &str,
    private: &[u8],
    data: &[u8],
) -> KeyResult {
    let random = SystemRandom::new();
    match scheme {
        SignatureScheme::Curve(curve) => {
            let pair = EcdsaKeyPair::from_pkcs8(ecdsa_signing(curve, hash)?, private);
            let signature = pair.map_err(|_| NO_PRIVATE_KEY)?.sign(&random, data);
            Ok(signature.map_err(|_| FAILED)?.as_ref().to_vec())
        }
        SignatureScheme::Rsa { is_pss } => {
            let pair = RsaKeyPair::from_pkcs8(private).map_err(|_| NO_PRIVATE_KEY)?;
            let mut signature = vec![0; pair.public_modulus_len()];
            let encoding = rsa_signing(*is_pss, hash)?;
            pair.sign(encoding, &random, data, &mut signature).map_err(|_| FAILED)?;
            Ok(signature)
        }
    }
}

/// Whether a signature is valid; an error if hash or key are not supported.
pub(super) fn verify(
    scheme: &SignatureScheme<'_>,
    hash: &str,
    public: &[u8],
    signature: &[u8],
    data: &[u8],
) -> KeyResult<bool> {
    let algorithm = match scheme {
        SignatureScheme::Curve(curve) => ecdsa(curve, hash)?,
        SignatureScheme::Rsa { is_pss } => rsa(*is_pss, hash)?,
    };
    let key = ParsedPublicKey::new(algorithm, public).map_err(|_| NO_PUBLIC_KEY)?;
    Ok(key.verify_sig(data, signature).is_ok())
}

/// RSA-OAEP: encrypts with a public key or decrypts with a private one.
pub(super) fn crypt(
    encrypts: bool,
    hash: &str,
    key: &[u8],
    label: &[u8],
    data: &[u8],
) -> KeyResult {
    let algorithm = oaep(hash)?;
    let label = (!label.is_empty()).then_some(label);
    let mut whole;
    let done = if encrypts {
        let key = PublicEncryptingKey::from_der(key).map_err(|_| NO_PUBLIC_KEY)?;
        let key = OaepPublicEncryptingKey::new(key).map_err(|_| NO_PUBLIC_KEY)?;
        whole = vec![0; key.ciphertext_size()];
        key.encrypt(algorithm, data, &mut whole, label)
    } else {
        let key = PrivateDecryptingKey::from_pkcs8(key).map_err(|_| NO_PRIVATE_KEY)?;
        let key = OaepPrivateDecryptingKey::new(key).map_err(|_| NO_PRIVATE_KEY)?;
        whole = vec![0; key.min_output_size()];
        key.decrypt(algorithm, data, &mut whole, label)
    };
    let why = match encrypts {
        true => "the data cannot be encrypted: it may be too long for the key",
        false => "the data cannot be decrypted: wrong key, parameters or data",
    };
    Ok(done.map_err(|_| why)?.to_vec())
}

/// ECDH: the secret of a private key and another's public key.
pub(super) fn agree(curve: &str, private: &[u8], public: &[u8]) -> KeyResult {
    let private = on_curve(curve, private)?;
    let peer = agreement::UnparsedPublicKey::new(ecdh(curve)?, public);
    agreement::agree(&private, peer, NO_PUBLIC_KEY, |secret| Ok(secret.to_vec()))
}
