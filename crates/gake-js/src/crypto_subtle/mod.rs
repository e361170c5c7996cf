//! `crypto.subtle`: hashes, HMAC, AES and key pairs of the Web Cryptography API.
//!
//! Keys and promises are JavaScript (`subtle.js`, `key_pairs.js`); native functions work on bytes.

mod aes;
mod key_pairs;
mod password;

use aws_lc_rs::{constant_time, hmac};
use gake_script::user::{aside, aside_above, poll};
use rquickjs::{ArrayBuffer, Ctx, Function, Object, Value};

use self::key_pairs::{KeyPairBytes, SignatureScheme};
use self::password::PasswordRounds;
use crate::crypto::random;
use crate::errors::go_error;
use crate::hash::{Algorithm, Hash};
use crate::native::named;
use crate::value;

/// Creates the object from native functions.
const SUBTLE: &str = include_str!("subtle.js");

/// Creates its functions for key pairs.
const PAIRS: &str = include_str!("key_pairs.js");

/// The object `crypto.subtle`.
pub fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let hash = |ctx: Ctx<'js>, name: String, data: Value<'js>| {
        let data = bytes(&ctx, &data)?;
        let mut hash = Hash::new(hash_named(&ctx, &name)?.0);
        hash.update(&data, || poll(&ctx))?;
        buffer(ctx, hash.finish())
    };
    native.set("digest", named("crypto.subtle", "digest", hash))?;
    let sign = |ctx: Ctx<'js>, name: String, key: Value<'js>, data: Value<'js>| {
        let signed = signed(&ctx, &name, &key, &data)?;
        buffer(ctx, signed)
    };
    native.set("sign", named("crypto.subtle", "sign", sign))?;
    let verify =
        |ctx: Ctx<'js>, name: String, key: Value<'js>, signature: Value<'js>, data: Value<'js>| {
            let signed = signed(&ctx, &name, &key, &data)?;
            let is_same =
                constant_time::verify_slices_are_equal(&signed, &bytes(&ctx, &signature)?);
            Ok::<_, rquickjs::Error>(is_same.is_ok())
        };
    native.set("verify", named("crypto.subtle", "verify", verify))?;
    let crypt = |ctx: Ctx<'js>,
                 mode: String,
                 encrypts: bool,
                 key: Value<'js>,
                 iv: Value<'js>,
                 aad: Value<'js>,
                 data: Value<'js>| {
        let (key, iv) = (bytes(&ctx, &key)?, bytes(&ctx, &iv)?);
        let (aad, data) = (bytes(&ctx, &aad)?, bytes(&ctx, &data)?);
        let length = aad.len() + data.len();
        let crypt = move || aes::run(&mode, encrypts, &key, &iv, &aad, data);
        let done = aside_above(&ctx, value::AT_ONCE, length, crypt)?;
        buffer(ctx.clone(), or_throw(&ctx, done)?)
    };
    native.set("aes", named("crypto.subtle", "encrypt", crypt))?;
    let fresh = |ctx: Ctx<'js>, count: usize| {
        let fresh = random(&ctx, count)?;
        buffer(ctx, fresh)
    };
    native.set("random", named("crypto.subtle", "generateKey", fresh))?;
    // A copy protects a key from later changes by the script.
    let copy = |ctx: Ctx<'js>, data: Value<'js>| {
        let copy = bytes(&ctx, &data)?;
        buffer(ctx, copy)
    };
    native.set("copy", named("crypto.subtle", "importKey", copy))?;
    make_keys(&native)?;
    use_keys(&native)?;
    let make: Function<'js> = value::evaluate(ctx, SUBTLE)?;
    make.call((native, value::evaluate::<Value<'js>>(ctx, PAIRS)?))
}

fn or_throw<T>(ctx: &Ctx<'_>, made: Result<T, &'static str>) -> rquickjs::Result<T> {
    made.map_err(|why| go_error(ctx, why))
}

/// Adds functions that generate, import and export key pairs.
fn make_keys<'js>(native: &Object<'js>) -> rquickjs::Result<()> {
    let give = |ctx: &Ctx<'js>, pair: Result<KeyPairBytes, &'static str>| {
        let pair = or_throw(ctx, pair)?;
        let halves = Object::new(ctx.clone())?;
        halves.set("private", buffer(ctx.clone(), pair.private)?)?;
        halves.set("public", buffer(ctx.clone(), pair.public)?)?;
        Ok::<_, rquickjs::Error>(halves)
    };
    // The primes of a large key take a minute.
    let rsa =
        move |ctx: Ctx<'js>, bits: u32| give(&ctx, aside(&ctx, move || key_pairs::new_rsa(bits))?);
    native.set("newRsa", named("crypto.subtle", "generateKey", rsa))?;
    let on_curve = move |ctx: Ctx<'js>, curve: String| give(&ctx, key_pairs::new_on_curve(&curve));
    native.set("newOnCurve", named("crypto.subtle", "generateKey", on_curve))?;
    for (name, make) in [
        ("private", key_pairs::private as fn(&str, &[u8]) -> Result<Vec<u8>, &'static str>),
        ("privateOfNumber", key_pairs::private_of_number),
        ("number", key_pairs::number),
        ("public", key_pairs::public),
    ] {
        let made = move |ctx: Ctx<'js>, curve: String, key: Value<'js>| {
            let made = make(&curve, &bytes(&ctx, &key)?);
            buffer(ctx.clone(), or_throw(&ctx, made)?)
        };
        native.set(name, named("crypto.subtle", "importKey", made))?;
    }
    let point = |ctx: Ctx<'js>, curve: String, is_private: bool, key: Value<'js>| {
        let point = key_pairs::point(&curve, is_private, &bytes(&ctx, &key)?);
        buffer(ctx.clone(), or_throw(&ctx, point)?)
    };
    native.set("point", named("crypto.subtle", "exportKey", point))?;
    let bits = |ctx: Ctx<'js>, is_private: bool, key: Value<'js>| {
        or_throw(&ctx, key_pairs::rsa_bits(is_private, &bytes(&ctx, &key)?))
    };
    native.set("rsaBits", named("crypto.subtle", "importKey", bits))
}

/// Adds functions that sign, encrypt, agree and derive keys.
fn use_keys<'js>(native: &Object<'js>) -> rquickjs::Result<()> {
    let sign = |ctx: Ctx<'js>,
                curve: String,
                is_pss: bool,
                hash: String,
                key: Value<'js>,
                data: Value<'js>| {
        let (key, data) = (bytes(&ctx, &key)?, bytes(&ctx, &data)?);
        let signed = aside_above(&ctx, value::AT_ONCE, data.len(), move || {
            key_pairs::sign(&SignatureScheme::of(&curve, is_pss), &hash, &key, &data)
        });
        buffer(ctx.clone(), or_throw(&ctx, signed?)?)
    };
    native.set("signPair", named("crypto.subtle", "sign", sign))?;
    let verify = |ctx: Ctx<'js>,
                  curve: String,
                  is_pss: bool,
                  hash: String,
                  key: Value<'js>,
                  signature: Value<'js>,
                  data: Value<'js>| {
        let (key, signature) = (bytes(&ctx, &key)?, bytes(&ctx, &signature)?);
        let data = bytes(&ctx, &data)?;
        let is_valid = aside_above(&ctx, value::AT_ONCE, data.len(), move || {
            let scheme = SignatureScheme::of(&curve, is_pss);
            key_pairs::verify(&scheme, &hash, &key, &signature, &data)
        });
        or_throw(&ctx, is_valid?)
    };
    native.set("verifyPair", named("crypto.subtle", "verify", verify))?;
    let crypt = |ctx: Ctx<'js>,
                 encrypts: bool,
                 hash: String,
                 key: Value<'js>,
                 label: Value<'js>,
                 data: Value<'js>| {
        let (key, label) = (bytes(&ctx, &key)?, bytes(&ctx, &label)?);
        let (label_length, data) = (label.len(), bytes(&ctx, &data)?);
        let crypt = move || key_pairs::crypt(encrypts, &hash, &key, &label, &data);
        let done = aside_above(&ctx, value::AT_ONCE, label_length, crypt)?;
        buffer(ctx.clone(), or_throw(&ctx, done)?)
    };
    native.set("oaep", named("crypto.subtle", "encrypt", crypt))?;
    let agree = |ctx: Ctx<'js>, curve: String, private: Value<'js>, public: Value<'js>| {
        let secret = key_pairs::agree(&curve, &bytes(&ctx, &private)?, &bytes(&ctx, &public)?);
        buffer(ctx.clone(), or_throw(&ctx, secret)?)
    };
    native.set("agree", named("crypto.subtle", "deriveBits", agree))?;
    let of_password = |ctx: Ctx<'js>,
                       hash: String,
                       password: Value<'js>,
                       salt: Value<'js>,
                       iterations: u32,
                       length: usize| {
        let (password, salt) = (bytes(&ctx, &password)?, bytes(&ctx, &salt)?);
        let algorithm = hash_named(&ctx, &hash)?.1;
        let rounds = or_throw(&ctx, PasswordRounds::new(iterations, length))?;
        let mut made = value::zeroes(&ctx, length)?;
        rounds.derive(algorithm, &password, &salt, &mut made, || poll(&ctx))?;
        buffer(ctx.clone(), made)
    };
    native.set("ofPassword", named("crypto.subtle", "deriveBits", of_password))
}

fn buffer(ctx: Ctx<'_>, bytes: Vec<u8>) -> rquickjs::Result<ArrayBuffer<'_>> {
    value::buffer(&ctx, bytes)
}

fn bytes<'js>(ctx: &Ctx<'js>, data: &Value<'js>) -> rquickjs::Result<Vec<u8>> {
    let bytes = if data.is_string() { None } else { value::bytes(ctx, data)? };
    bytes.ok_or_else(|| go_error(ctx, "data must be an ArrayBuffer, TypedArray, or DataView"))
}

fn signed<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    key: &Value<'js>,
    data: &Value<'js>,
) -> rquickjs::Result<Vec<u8>> {
    let mut hash = Hash::keyed(hash_named(ctx, name)?.0, &bytes(ctx, key)?, || poll(ctx))?;
    hash.update(&bytes(ctx, data)?, || poll(ctx))?;
    Ok(hash.finish())
}

/// The hash of this name, and how keys are derived by it.
fn hash_named(ctx: &Ctx<'_>, name: &str) -> rquickjs::Result<(Algorithm, hmac::Algorithm)> {
    Ok(match name {
        "SHA-1" => (Algorithm::Sha1, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        "SHA-256" => (Algorithm::Sha256, hmac::HMAC_SHA256),
        "SHA-384" => (Algorithm::Sha384, hmac::HMAC_SHA384),
        "SHA-512" => (Algorithm::Sha512, hmac::HMAC_SHA512),
        other => return Err(go_error(ctx, &format!("unsupported algorithm: {other}"))),
    })
}
