//! The module `k6/x/faker`: made-up data. The same seed makes the same values, which differ from the
//! extension's.

mod arguments;
mod generate;
mod numbers;
mod random;
mod records;
mod table;
mod text;
mod times;
mod words;

use std::cell::RefCell;
use std::rc::Rc;

use gake_js::errors::go_error;
use gake_js::value::{elements, evaluate, number_argument, text};
use gake_k6::user::vu::Vu;
use rquickjs::function::{Func, Opt};
use rquickjs::{Array, Ctx, Exception, Function as JsFunction, IntoJs, Object, Value};
use serde_json::Value as Json;

use self::arguments::{Arguments, COUNT_MAX};
use self::random::Random;
use self::table::{Function, Parameter, categories, find};

/// The variable of the environment with the seed of the default faker.
const SEED: &str = "XK6_FAKER_SEED";

/// Creates the module from native functions: categories and functions are looked up when they are
/// used.
const MODULE: &str = include_str!("faker.js");

pub(crate) fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let vu = Vu::of(ctx)?;
    let native = Object::new(ctx.clone())?;
    native.set("categories", categories())?;
    let has = |category: String, name: String| find(&category, &name).is_some();
    native.set("has", Func::from(has))?;
    let source = |ctx: Ctx<'js>, seed: Opt<Value<'js>>| {
        let seed = number_argument(&ctx, seed.0.filter(|seed| !seed.is_undefined()))?;
        let random = Rc::new(RefCell::new(Random::new(seed as i64)));
        let call =
            move |ctx: Ctx<'js>, category: String, name: String, values: Array<'js>| match find(
                &category, &name,
            ) {
                Some(function) => call(&ctx, &random, function, &values),
                None => Err(Exception::throw_type(&ctx, &name)),
            };
        Ok::<_, rquickjs::Error>(Func::from(call))
    };
    native.set("source", Func::from(source))?;
    let environment = &vu.test.settings().environment;
    let seed = environment.iter().rev().find(|(name, _)| name == SEED);
    let seed: i64 = seed.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let make: JsFunction<'js> = evaluate(ctx, MODULE)?;
    make.call((native, seed as f64))
}

fn call<'js>(
    ctx: &Ctx<'js>,
    random: &RefCell<Random>,
    function: &Function,
    values: &Array<'js>,
) -> rquickjs::Result<Value<'js>> {
    let mut arguments = Arguments::default();
    let mut values = elements(ctx, values)?;
    for parameter in &function.parameters {
        let value = values.next().transpose()?.filter(|value| !value.is_undefined());
        if let Some(texts) = argument(ctx, parameter, value)? {
            arguments.0.insert(parameter.name, texts);
        }
    }
    let made = generate::value(&mut random.borrow_mut(), function, &arguments);
    match made.map_err(|why| go_error(ctx, &why))? {
        Json::String(text) => text.into_js(ctx),
        Json::Number(number) => number.as_f64().into_js(ctx),
        Json::Bool(truth) => truth.into_js(ctx),
        other => ctx.json_parse(other.to_string()),
    }
}

/// The texts of an argument: several of an array.
fn argument<'js>(
    ctx: &Ctx<'js>,
    parameter: &Parameter,
    value: Option<Value<'js>>,
) -> rquickjs::Result<Option<Vec<String>>> {
    let Some(value) = value else {
        return match (parameter.default, parameter.is_optional) {
            (Some(default), _) => Ok(Some(vec![default.to_owned()])),
            (None, true) => Ok(None),
            (None, false) => {
                let message = format!("missing parameter: {}", parameter.name);
                Err(Exception::throw_type(ctx, &message))
            }
        };
    };
    match value.as_array() {
        Some(array) if array.len() > COUNT_MAX => {
            let message = format!("{} must have at most {COUNT_MAX} elements", parameter.name);
            Err(go_error(ctx, &message))
        }
        Some(array) => {
            let texts = elements(ctx, array)?.map(|value| text(ctx, &value?));
            texts.collect::<rquickjs::Result<_>>().map(Some)
        }
        None => Ok(Some(vec![text(ctx, &value)?])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of each function, with arguments where it has no default.
    #[test]
    fn every_function_has_a_value() {
        let mut random = Random::new(7);
        for function in table::functions().values() {
            let mut arguments = Arguments::default();
            for parameter in &function.parameters {
                let value = parameter.default.unwrap_or(match parameter.name {
                    "str" => "?#?#",
                    _ => "3",
                });
                arguments.0.insert(parameter.name, vec![value.to_owned()]);
            }
            for _ in 0..20 {
                let made = generate::value(&mut random, function, &arguments);
                let made = made.unwrap_or_else(|why| panic!("{}: {why}", function.name));
                let text = made.to_string();
                // A part of a template that was not filled in.
                let is_whole =
                    made.is_object() || function.name == "password" || !text.contains(['{', '}']);
                assert!(text != "\"\"" && is_whole, "{}: {text}", function.name);
            }
        }
    }

    #[test]
    fn a_seed_repeats_its_values() {
        let values = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(|_| text::text(&mut random, "email")).collect::<Vec<_>>()
        };
        assert_eq!(values(11), values(11));
        assert_ne!(values(11), values(12));
        assert_ne!(values(0), values(0));
    }
}
