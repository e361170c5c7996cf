//! The module `k6/encoding`.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rquickjs::function::{Func, Opt};
use rquickjs::{Ctx, Exception, IntoJs, Object, Value};

use super::value;
use crate::errors::go_error;

pub(super) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("b64encode", Func::from(encode))?;
    module.set("b64decode", Func::from(decode))?;
    Ok(module)
}

/// What a name means: `std`, `rawstd`, `url`, `rawurl`.
fn engine(name: Option<&str>) -> GeneralPurpose {
    let (alphabet, is_raw) = match name {
        Some("rawstd") => (&STANDARD, true),
        Some("url") => (&URL_SAFE, false),
        Some("rawurl") => (&URL_SAFE, true),
        _ => (&STANDARD, false),
    };
    let padding = match is_raw {
        true => DecodePaddingMode::RequireNone,
        false => DecodePaddingMode::RequireCanonical,
    };
    let config =
        GeneralPurposeConfig::new().with_encode_padding(!is_raw).with_decode_padding_mode(padding);
    GeneralPurpose::new(alphabet, config)
}

fn encode<'js>(
    ctx: Ctx<'js>,
    input: Value<'js>,
    variant: Opt<Option<String>>,
) -> rquickjs::Result<String> {
    let Some(bytes) = value::bytes(&ctx, &input)? else {
        return Err(Exception::throw_type(&ctx, "only a string or an ArrayBuffer can be encoded"));
    };
    Ok(engine(variant.0.flatten().as_deref()).encode(bytes))
}

fn decode<'js>(
    ctx: Ctx<'js>,
    input: String,
    variant: Opt<Option<String>>,
    format: Opt<Option<String>>,
) -> rquickjs::Result<Value<'js>> {
    let input: String = input.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let decoded = engine(variant.0.flatten().as_deref()).decode(input);
    let bytes = decoded.map_err(|error| go_error(&ctx, &format!("no base64: {error}")))?;
    match format.0.flatten().as_deref() {
        Some("s") => String::from_utf8_lossy(&bytes).into_owned().into_js(&ctx),
        _ => value::buffer(&ctx, bytes)?.into_js(&ctx),
    }
}
