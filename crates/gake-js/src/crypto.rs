//! The module `k6/crypto`: hashes and random bytes.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime"
)]

use std::cell::RefCell;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use gake_script::user::{HeapCharge, aside_above, poll};
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Opt, This};
use rquickjs::{Class, Ctx, IntoJs, JsLifetime, Object, Value};

use crate::errors::go_error;
use crate::hash::{Algorithm, Hash};
use crate::native::named;
use crate::value;

/// Bytes that an incremental hash takes outside of the script's heap, about.
const HASHER: usize = 1 << 10;

/// Random bytes between polls: less than a millisecond.
const RANDOM_SLICE: usize = 64 << 10;

const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("md4", Algorithm::Md4),
    ("md5", Algorithm::Md5),
    ("ripemd160", Algorithm::Ripemd160),
    ("sha1", Algorithm::Sha1),
    ("sha256", Algorithm::Sha256),
    ("sha384", Algorithm::Sha384),
    ("sha512", Algorithm::Sha512),
    ("sha512_224", Algorithm::Sha512To224),
    ("sha512_256", Algorithm::Sha512To256),
];

/// The algorithm of this name.
fn algorithm(ctx: &Ctx<'_>, name: &str) -> rquickjs::Result<Algorithm> {
    let found = ALGORITHMS.iter().find(|(known, _)| *known == name);
    found.map(|(_, algorithm)| *algorithm).ok_or_else(|| {
        let known: Vec<_> = ALGORITHMS.iter().map(|(known, _)| *known).collect();
        let message = format!("invalid algorithm: {name}; supported are {}", known.join(", "));
        go_error(ctx, &message)
    })
}

/// An incremental hash.
struct Hasher {
    hash: RefCell<Hash>,
    _held: HeapCharge,
}

impl Hasher {
    fn new<'js>(ctx: &Ctx<'js>, hash: Hash) -> rquickjs::Result<Class<'js, Self>> {
        let held = HeapCharge::new(ctx, HASHER)?;
        Class::instance(ctx.clone(), Self { hash: RefCell::new(hash), _held: held })
    }
}

impl<'js> Trace<'js> for Hasher {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds no value of a script.
unsafe impl<'js> JsLifetime<'js> for Hasher {
    type Changed<'to> = Self;
}

impl<'js> JsClass<'js> for Hasher {
    const NAME: &'static str = "Hasher";
    type Mutable = Readable;

    fn prototype(ctx: &Ctx<'js>) -> rquickjs::Result<Option<Object<'js>>> {
        let prototype = Object::new(ctx.clone())?;
        prototype.set("update", named("crypto", "update", update))?;
        prototype.set("digest", named("crypto", "digest", finish))?;
        Ok(Some(prototype))
    }

    fn constructor(_: &Ctx<'js>) -> rquickjs::Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// The exports of `k6/crypto`.
pub fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    for (name, algorithm) in ALGORITHMS {
        let hash = move |ctx: Ctx<'js>, input: Opt<Value<'js>>, encoding: Opt<Value<'js>>| {
            let bytes = value::bytes_argument(&ctx, input.0)
                .map_err(|why| why.into_js(&ctx, &format!("{name} failed: ")))?;
            let mut hash = Hash::new(algorithm);
            hash.update(&bytes, || poll(&ctx))?;
            encoded(&ctx, hash.finish(), encoding.0)
        };
        module.set(name, named("crypto", name, hash))?;
    }
    let hmac = |ctx: Ctx<'js>,
                name: Opt<Value<'js>>,
                key: Opt<Value<'js>>,
                input: Opt<Value<'js>>,
                encoding: Opt<Value<'js>>| {
        let (mut hash, bytes) = (keyed(&ctx, name.0, key.0)?, input_bytes(&ctx, input.0)?);
        hash.update(&bytes, || poll(&ctx))?;
        encoded(&ctx, hash.finish(), encoding.0)
    };
    module.set("hmac", named("crypto", "hmac", hmac))?;
    let create = |ctx: Ctx<'js>, name: Opt<Value<'js>>| {
        let algorithm = algorithm(&ctx, &value::text_argument(&ctx, name.0)?)?;
        Hasher::new(&ctx, Hash::new(algorithm))
    };
    module.set("createHash", named("crypto", "createHash", create))?;
    let create = |ctx: Ctx<'js>, name: Opt<Value<'js>>, key: Opt<Value<'js>>| {
        let hash = keyed(&ctx, name.0, key.0)?;
        Hasher::new(&ctx, hash)
    };
    module.set("createHMAC", named("crypto", "createHMAC", create))?;
    let encode = |ctx: Ctx<'js>, input: Opt<Value<'js>>| {
        let bytes = input_bytes(&ctx, input.0)?;
        aside_above(&ctx, value::AT_ONCE, bytes.len(), move || hex(&bytes))
    };
    module.set("hexEncode", named("crypto", "hexEncode", encode))?;
    let bytes = |ctx: Ctx<'js>, count: Opt<Value<'js>>| {
        let count = value::number_argument(&ctx, count.0)?;
        if count.is_nan() || count < 1.0 {
            return Err(go_error(&ctx, "invalid size"));
        }
        let bytes = random(&ctx, count as usize)?;
        value::buffer(&ctx, bytes)
    };
    module.set("randomBytes", named("crypto", "randomBytes", bytes))?;
    Ok(module)
}

/// Cryptographically random bytes.
pub fn random(ctx: &Ctx<'_>, count: usize) -> rquickjs::Result<Vec<u8>> {
    let mut bytes = value::zeroes(ctx, count)?;
    for slice in bytes.chunks_mut(RANDOM_SLICE) {
        aws_lc_rs::rand::fill(slice)
            .map_err(|_| go_error(ctx, "the system gives no random bytes"))?;
        poll(ctx)?;
    }
    Ok(bytes)
}

/// 16 random bytes as a UUID of version 4.
pub fn uuid(mut bytes: Vec<u8>) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn input_bytes<'js>(ctx: &Ctx<'js>, input: Option<Value<'js>>) -> rquickjs::Result<Vec<u8>> {
    value::bytes_argument(ctx, input).map_err(|why| why.into_js(ctx, ""))
}

/// The HMAC of this name with this key.
fn keyed<'js>(
    ctx: &Ctx<'js>,
    name: Option<Value<'js>>,
    key: Option<Value<'js>>,
) -> rquickjs::Result<Hash> {
    let algorithm = algorithm(ctx, &value::text_argument(ctx, name)?)?;
    Hash::keyed(algorithm, &input_bytes(ctx, key)?, || poll(ctx))
}

fn update<'js>(
    ctx: Ctx<'js>,
    this: This<Class<'js, Hasher>>,
    input: Opt<Value<'js>>,
) -> rquickjs::Result<()> {
    let bytes = input_bytes(&ctx, input.0)?;
    this.0.borrow().hash.borrow_mut().update(&bytes, || poll(&ctx))
}

fn finish<'js>(
    ctx: Ctx<'js>,
    this: This<Class<'js, Hasher>>,
    encoding: Opt<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let hash = this.0.borrow().hash.borrow().clone();
    encoded(&ctx, hash.finish(), encoding.0)
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

fn encoded<'js>(
    ctx: &Ctx<'js>,
    bytes: Vec<u8>,
    encoding: Option<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    match value::text_argument(ctx, encoding)?.as_str() {
        "base64" => STANDARD.encode(bytes).into_js(ctx),
        "base64url" => URL_SAFE.encode(bytes).into_js(ctx),
        "base64rawurl" => URL_SAFE_NO_PAD.encode(bytes).into_js(ctx),
        "hex" => hex(&bytes).into_js(ctx),
        "binary" => value::buffer(ctx, bytes)?.into_js(ctx),
        other => {
            let message = format!("invalid output encoding: {other}");
            Err(go_error(ctx, &message))
        }
    }
}
