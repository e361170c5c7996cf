//! The module `k6/encoding`.

use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine};
use gake_script::user::aside_above;
use rquickjs::function::Opt;
use rquickjs::{Ctx, IntoJs, Object, Value};

use crate::errors::go_error_of;
use crate::native::named;
use crate::value::{self, AT_ONCE};

/// The exports of `k6/encoding`.
pub fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("b64encode", named("encoding", "b64encode", encode))?;
    module.set("b64decode", named("encoding", "b64decode", decode))?;
    Ok(module)
}

/// The engine of a variant: `std`, `rawstd`, `url`, `rawurl`.
fn engine(name: &str) -> GeneralPurpose {
    let (alphabet, is_raw) = match name {
        "rawstd" => (&STANDARD, true),
        "url" => (&URL_SAFE, false),
        "rawurl" => (&URL_SAFE, true),
        _ => (&STANDARD, false),
    };
    let padding = match is_raw {
        true => DecodePaddingMode::RequireNone,
        false => DecodePaddingMode::RequireCanonical,
    };
    let config =
        GeneralPurposeConfig::new().with_encode_padding(!is_raw).with_decode_padding_mode(padding);
    // As in Go, bits after the last byte are ignored.
    let config = config.with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}

/// The bytes of base64 in a variant: `std`, `rawstd`, `url`, `rawurl`.
///
/// # Errors
/// Go's message for the first byte that does not fit.
pub fn base64_bytes(text: &str, variant: &str) -> Result<Vec<u8>, String> {
    decoded(text, &engine(variant))
}

fn decoded(text: &str, engine: &GeneralPurpose) -> Result<Vec<u8>, String> {
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    engine.decode(&text).map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            // Go reports the start of the incomplete group of four.
            DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len() / 4 * 4,
        };
        format!("illegal base64 data at input byte {at}")
    })
}

fn encode<'js>(
    ctx: Ctx<'js>,
    input: Opt<Value<'js>>,
    variant: Opt<Value<'js>>,
) -> rquickjs::Result<String> {
    let bytes = value::bytes_argument(&ctx, input.0).map_err(|why| why.into_js(&ctx, ""))?;
    let engine = engine(&value::text_argument(&ctx, variant.0)?);
    aside_above(&ctx, AT_ONCE, bytes.len(), move || engine.encode(bytes))
}

fn decode<'js>(
    ctx: Ctx<'js>,
    input: Opt<Value<'js>>,
    variant: Opt<Value<'js>>,
    format: Opt<Value<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let input = value::text_argument(&ctx, input.0)?;
    let engine = engine(&value::text_argument(&ctx, variant.0)?);
    let bytes = aside_above(&ctx, AT_ONCE, input.len(), move || decoded(&input, &engine))?;
    let bytes = bytes.map_err(|why| {
        let native = "go.k6.io/k6/v2/internal/js/modules/k6/encoding.(*Encoding).b64Decode-fm";
        go_error_of(&ctx, native, &why)
    })?;
    match value::text_argument(&ctx, format.0)?.as_str() {
        "s" => String::from_utf8_lossy(&bytes).into_owned().into_js(&ctx),
        _ => value::buffer(&ctx, bytes)?.into_js(&ctx),
    }
}
