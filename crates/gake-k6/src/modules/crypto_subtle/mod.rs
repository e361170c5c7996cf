//! `crypto.subtle`: hashes, HMAC and AES of the Web Cryptography API.
//!
//! Keys and promises are JavaScript (`subtle.js`) on the functions here, which work on bytes.

mod aes;

use aws_lc_rs::{constant_time, digest, hmac};
use rquickjs::function::Func;
use rquickjs::{ArrayBuffer, Ctx, Function, Object, Value};

use super::crypto::random;
use super::value;
use crate::errors::go_error;

/// Makes the object of what is native.
const SUBTLE: &str = include_str!("subtle.js");

/// The object `crypto.subtle`.
pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let hash = |ctx: Ctx<'js>, name: String, data: Value<'js>| {
        let data = bytes(&ctx, &data)?;
        let hash = digest::digest(hash_named(&ctx, &name)?.0, &data);
        buffer(ctx, hash.as_ref().to_vec())
    };
    native.set("digest", Func::from(hash))?;
    let sign = |ctx: Ctx<'js>, name: String, key: Value<'js>, data: Value<'js>| {
        let signed = signed(&ctx, &name, &key, &data)?;
        buffer(ctx, signed)
    };
    native.set("sign", Func::from(sign))?;
    let verify =
        |ctx: Ctx<'js>, name: String, key: Value<'js>, signature: Value<'js>, data: Value<'js>| {
            let signed = signed(&ctx, &name, &key, &data)?;
            let is_same =
                constant_time::verify_slices_are_equal(&signed, &bytes(&ctx, &signature)?);
            Ok::<_, rquickjs::Error>(is_same.is_ok())
        };
    native.set("verify", Func::from(verify))?;
    let crypt = |ctx: Ctx<'js>,
                 mode: String,
                 encrypts: bool,
                 key: Value<'js>,
                 start: Value<'js>,
                 aside: Value<'js>,
                 data: Value<'js>| {
        let (key, start) = (bytes(&ctx, &key)?, bytes(&ctx, &start)?);
        let (aside, data) = (bytes(&ctx, &aside)?, bytes(&ctx, &data)?);
        let done = aes::run(&mode, encrypts, &key, &start, &aside, data);
        buffer(ctx.clone(), done.map_err(|why| go_error(&ctx, why))?)
    };
    native.set("aes", Func::from(crypt))?;
    let fresh = |ctx: Ctx<'js>, count: usize| {
        let fresh = random(&ctx, count)?;
        buffer(ctx, fresh)
    };
    native.set("random", Func::from(fresh))?;
    // A copy: what the script changes later does not change a key.
    let copy = |ctx: Ctx<'js>, data: Value<'js>| {
        let copy = bytes(&ctx, &data)?;
        buffer(ctx, copy)
    };
    native.set("copy", Func::from(copy))?;
    let make: Function<'js> = value::evaluate(ctx, SUBTLE)?;
    make.call((native,))
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
    let key = hmac::Key::new(hash_named(ctx, name)?.1, &bytes(ctx, key)?);
    Ok(hmac::sign(&key, &bytes(ctx, data)?).as_ref().to_vec())
}

fn hash_named(
    ctx: &Ctx<'_>,
    name: &str,
) -> rquickjs::Result<(&'static digest::Algorithm, hmac::Algorithm)> {
    Ok(match name {
        "SHA-1" => (&digest::SHA1_FOR_LEGACY_USE_ONLY, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        "SHA-256" => (&digest::SHA256, hmac::HMAC_SHA256),
        "SHA-384" => (&digest::SHA384, hmac::HMAC_SHA384),
        "SHA-512" => (&digest::SHA512, hmac::HMAC_SHA512),
        other => return Err(go_error(ctx, &format!("unsupported algorithm: {other}"))),
    })
}
