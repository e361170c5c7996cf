//! Values of a script as Go's `%v` prints them in k6.

use gake_go::number::shortest;
use gake_js::value;
use rquickjs::{Ctx, Object, Value};

/// The nesting of printed values.
const DEPTH_MAX: usize = 32;

/// The largest integer: 2⁵³.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A value as Go prints it: `map[a:1 b:[x y]]`, `<nil>`, `1e-05`.
pub(super) fn printed<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> rquickjs::Result<String> {
    let mut text = String::new();
    print(ctx, value, 0, &mut text)?;
    Ok(text)
}

/// Go's type name of a value.
pub(crate) fn type_name<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> &'static str {
    match () {
        () if value.is_null() || value.is_undefined() => "<nil>",
        () if value.is_bool() => "bool",
        () if value.is_string() => "string",
        () if value.as_number().is_some_and(is_whole) => "int64",
        () if value.is_number() => "float64",
        () if value.is_array() => "[]interface {}",
        () if value.is_function() => "func(sobek.FunctionCall) sobek.Value",
        () if date(ctx, value).is_some() => "time.Time",
        () => "map[string]interface {}",
    }
}

/// Whether a number is an integer in k6.
fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
        && number.abs() <= WHOLE_MAX
        && !(number == 0.0 && number.is_sign_negative())
}

fn print<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    depth: usize,
    out: &mut String,
) -> rquickjs::Result<()> {
    if value.is_null() || value.is_undefined() || depth > DEPTH_MAX {
        out.push_str("<nil>");
    } else if let Some(number) = value.as_number() {
        out.push_str(&go_number(number));
    } else if let Some(array) = value.as_array() {
        out.push('[');
        for (index, element) in value::elements(ctx, array)?.enumerate() {
            out.push_str(if index > 0 { " " } else { "" });
            print(ctx, &element?, depth + 1, out)?;
        }
        out.push(']');
    } else if let Some(text) = date(ctx, value) {
        out.push_str(&text);
    } else if let Some(object) = value.as_object().filter(|object| !object.is_function()) {
        print_map(ctx, object, depth, out)?;
    } else {
        out.push_str(&value::text(ctx, value)?);
    }
    Ok(())
}

fn print_map<'js>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    depth: usize,
    out: &mut String,
) -> rquickjs::Result<()> {
    let properties = object.props::<String, Value<'js>>();
    let mut properties = properties.collect::<rquickjs::Result<Vec<_>>>()?;
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    out.push_str("map[");
    for (index, (name, property)) in properties.iter().enumerate() {
        out.push_str(if index > 0 { " " } else { "" });
        out.push_str(name);
        out.push(':');
        print(ctx, property, depth + 1, out)?;
    }
    out.push(']');
    Ok(())
}

/// A date as Go prints it, in UTC; `None` for other values.
fn date<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Option<String> {
    // `2024-01-02T03:04:05.600Z`
    let text = value::date(ctx, value.as_object()?)?;
    let (day, time) = text.trim_end_matches('Z').split_once('T')?;
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{day} {seconds}{point}{fraction} +0000 UTC"))
}

/// A number as Go's `%v` prints it: one that is not whole has an exponent from a million up.
fn go_number(number: f64) -> String {
    match () {
        () if is_whole(number) => format!("{number:.0}"),
        () if number.is_nan() => "NaN".to_owned(),
        () if number.is_infinite() => if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        () => shortest(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        for (number, expected) in [
            (5.0, "5"),
            (-12.5, "-12.5"),
            (123_456.5, "123456.5"),
            (1_234_567.5, "1.2345675e+06"),
            (1_732_730_000.123, "1.732730000123e+09"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e20, "1e+20"),
            (0.0001, "0.0001"),
            (-0.000_01, "-1e-05"),
            (-0.0, "-0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(go_number(number), expected);
        }
    }
}
