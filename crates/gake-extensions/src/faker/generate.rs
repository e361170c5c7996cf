//! Values of functions.

use serde_json::Value as Json;

use super::arguments::Arguments;
use super::random::Random;
use super::table::{Function, Source};
use super::text::text;
use super::{numbers, records, words};

/// A value, or why there is none.
pub(super) fn value(
    random: &mut Random,
    function: &Function,
    arguments: &Arguments,
) -> Result<Json, String> {
    match &function.source {
        Source::Words(_) | Source::Templates(_) => Ok(Json::String(text(random, function.name))),
        Source::Code => {
            let name = function.name;
            let made = numbers::value(random, name, arguments)?
                .or(words::value(random, name, arguments)?)
                .or_else(|| records::value(random, name));
            made.ok_or_else(|| format!("{name} is not available"))
        }
    }
}
