//! The module `k6/crypto`: hashes and random bytes.

#![expect(
    unsafe_code,
    reason = "rquickjs's JsLifetime of a class: unsafe to implement, trivial without a lifetime"
)]

use std::cell::RefCell;

use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use gake_script::user::{HeapCharge, throw_out_of_memory};
use md4::Md4;
use md5::Md5;
use ripemd::Ripemd160;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::{Constructor, Func, Opt, This};
use rquickjs::{Class, Ctx, IntoJs, JsLifetime, Object, Value};
use sha2::Sha512_224;

use crate::errors::go_error;
use crate::value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
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

impl Algorithm {
    fn named(ctx: &Ctx<'_>, name: &str) -> rquickjs::Result<Self> {
        let found = ALGORITHMS.iter().find(|(known, _)| *known == name);
        found.map(|(_, algorithm)| *algorithm).ok_or_else(|| {
            let known: Vec<_> = ALGORITHMS.iter().map(|(known, _)| *known).collect();
            let message = format!("invalid algorithm: {name}; supported are {}", known.join(", "));
            go_error(ctx, &message)
        })
    }

    fn digest(self, bytes: &[u8]) -> Vec<u8> {
        use md5::Digest as _;
        let algorithm = match self {
            Self::Md4 => return Md4::digest(bytes).to_vec(),
            Self::Md5 => return Md5::digest(bytes).to_vec(),
            Self::Ripemd160 => return Ripemd160::digest(bytes).to_vec(),
            Self::Sha512To224 => return Sha512_224::digest(bytes).to_vec(),
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
            Self::Sha512To256 => &digest::SHA512_256,
        };
        digest::digest(algorithm, bytes).as_ref().to_vec()
    }

    /// Bytes of a block.
    const fn block(self) -> usize {
        match self {
            Self::Md4 | Self::Md5 | Self::Ripemd160 | Self::Sha1 | Self::Sha256 => 64,
            Self::Sha384 | Self::Sha512 | Self::Sha512To224 | Self::Sha512To256 => 128,
        }
    }

    /// HMAC (RFC 2104).
    fn keyed(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
            Self::Md4 | Self::Md5 | Self::Ripemd160 | Self::Sha512To224 | Self::Sha512To256 => {
                return self.keyed_by_hand(key, bytes);
            }
        };
        let key = hmac::Key::new(algorithm, key);
        hmac::sign(&key, bytes).as_ref().to_vec()
    }

    /// HMAC for hashes that aws-lc-rs has no HMAC of.
    fn keyed_by_hand(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let mut block = match key.len() > self.block() {
            true => self.digest(key),
            false => key.to_vec(),
        };
        block.resize(self.block(), 0);
        let padded = |pad: u8, rest: &[u8]| {
            let mut whole: Vec<u8> = block.iter().map(|byte| byte ^ pad).collect();
            whole.extend_from_slice(rest);
            self.digest(&whole)
        };
        padded(0x5c, &padded(0x36, bytes))
    }
}

/// The MD4 digest, for NTLM.
pub fn md4(bytes: &[u8]) -> Vec<u8> {
    Algorithm::Md4.digest(bytes)
}

/// HMAC-MD5, for NTLM.
pub fn hmac_md5(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    Algorithm::Md5.keyed(key, bytes)
}

/// An incremental hash, or an HMAC if it has a key.
struct Hasher {
    algorithm: Algorithm,
    key: Option<Vec<u8>>,
    input: RefCell<Vec<u8>>,
    held: RefCell<HeapCharge>,
}

impl Hasher {
    fn new(ctx: &Ctx<'_>, algorithm: Algorithm, key: Option<Vec<u8>>) -> rquickjs::Result<Self> {
        let held = RefCell::new(HeapCharge::new(ctx, key.as_ref().map_or(0, Vec::len))?);
        Ok(Self { algorithm, key, input: RefCell::default(), held })
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
        prototype.set("update", Func::from(update))?;
        prototype.set("digest", Func::from(finish))?;
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
            encoded(&ctx, algorithm.digest(&bytes), encoding.0)
        };
        module.set(name, Func::from(hash))?;
    }
    let hmac = |ctx: Ctx<'js>,
                name: Opt<Value<'js>>,
                key: Opt<Value<'js>>,
                input: Opt<Value<'js>>,
                encoding: Opt<Value<'js>>| {
        let algorithm = Algorithm::named(&ctx, &value::text_argument(&ctx, name.0)?)?;
        let (key, bytes) = (input_bytes(&ctx, key.0)?, input_bytes(&ctx, input.0)?);
        encoded(&ctx, algorithm.keyed(&key, &bytes), encoding.0)
    };
    module.set("hmac", Func::from(hmac))?;
    let create = |ctx: Ctx<'js>, name: Opt<Value<'js>>| {
        let algorithm = Algorithm::named(&ctx, &value::text_argument(&ctx, name.0)?)?;
        Class::instance(ctx.clone(), Hasher::new(&ctx, algorithm, None)?)
    };
    module.set("createHash", Func::from(create))?;
    let create = |ctx: Ctx<'js>, name: Opt<Value<'js>>, key: Opt<Value<'js>>| {
        let algorithm = Algorithm::named(&ctx, &value::text_argument(&ctx, name.0)?)?;
        let key = Some(input_bytes(&ctx, key.0)?);
        Class::instance(ctx.clone(), Hasher::new(&ctx, algorithm, key)?)
    };
    module.set("createHMAC", Func::from(create))?;
    let encode =
        |ctx: Ctx<'js>, input: Opt<Value<'js>>| input_bytes(&ctx, input.0).map(|bytes| hex(&bytes));
    module.set("hexEncode", Func::from(encode))?;
    let bytes = |ctx: Ctx<'js>, count: Opt<Value<'js>>| {
        let count = value::number_argument(&ctx, count.0)?;
        if count.is_nan() || count < 1.0 {
            return Err(go_error(&ctx, "invalid size"));
        }
        let bytes = random(&ctx, count as usize)?;
        value::buffer(&ctx, bytes)
    };
    module.set("randomBytes", Func::from(bytes))?;
    Ok(module)
}

/// Cryptographically random bytes.
pub fn random(ctx: &Ctx<'_>, count: usize) -> rquickjs::Result<Vec<u8>> {
    let mut bytes = value::zeroes(ctx, count)?;
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| go_error(ctx, "the system gives no random bytes"))?;
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

fn update<'js>(
    ctx: Ctx<'js>,
    this: This<Class<'js, Hasher>>,
    input: Opt<Value<'js>>,
) -> rquickjs::Result<()> {
    let bytes = input_bytes(&ctx, input.0)?;
    let hasher = this.0.borrow();
    let mut input = hasher.input.borrow_mut();
    if !hasher.held.borrow_mut().grow(bytes.len()) || input.try_reserve(bytes.len()).is_err() {
        return Err(throw_out_of_memory(&ctx));
    }
    input.extend_from_slice(&bytes);
    Ok(())
}

fn finish<'js>(
    ctx: Ctx<'js>,
    this: This<Class<'js, Hasher>>,
    encoding: Opt<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let hasher = this.0.borrow();
    let input = hasher.input.borrow();
    let bytes = match &hasher.key {
        Some(key) => hasher.algorithm.keyed(key, &input),
        None => hasher.algorithm.digest(&input),
    };
    encoded(&ctx, bytes, encoding.0)
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2202, and the results of aws-lc-rs.
    #[test]
    fn hmacs_follow_the_standard() {
        let made = Algorithm::Md5.keyed(&[0x0b; 16], b"Hi There");
        assert_eq!(hex(&made), "9294727a3638bb1c13f48ef8158bfc9d");
        for key in [&[7_u8; 20][..], &[9; 200]] {
            for algorithm in [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512] {
                let by_hand = algorithm.keyed_by_hand(key, b"text");
                assert_eq!(by_hand, algorithm.keyed(key, b"text"), "{algorithm:?}");
            }
        }
    }
}
