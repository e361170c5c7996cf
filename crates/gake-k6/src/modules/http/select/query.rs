//! Which elements of an array a path selects: `#(age>40)`, `#(first%"D*")`, `#(nets.#(=="fb"))`.

use rquickjs::{Ctx, Value};

use super::{outside, part, quoted};
use crate::modules::value;

/// How a value is compared with that of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryOperator {
    /// It is there.
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    NotLike,
}

/// By what they begin with, the longer ones first.
const OPERATORS: [(&str, QueryOperator); 9] = [
    ("==", QueryOperator::Equal),
    ("!=", QueryOperator::NotEqual),
    ("<=", QueryOperator::LessOrEqual),
    (">=", QueryOperator::GreaterOrEqual),
    ("!%", QueryOperator::NotLike),
    ("=", QueryOperator::Equal),
    ("<", QueryOperator::Less),
    (">", QueryOperator::Greater),
    ("%", QueryOperator::Like),
];

/// A query.
#[derive(Debug)]
pub(super) struct ElementQuery<'a> {
    /// What of an element is looked at; the element itself where it is empty.
    path: &'a str,
    operator: QueryOperator,
    /// What it is compared with, without quotes.
    value: String,
}

impl<'a> ElementQuery<'a> {
    /// A query as it is written between its parentheses.
    pub(super) fn new(text: &'a str) -> Self {
        let Some((at, sign, operator)) = found(text) else {
            return Self {
                path: text.trim(),
                operator: QueryOperator::Exists,
                value: String::new(),
            };
        };
        let value = text[at + sign.len()..].trim();
        let value = quoted(value).map_or_else(|| value.to_owned(), |(text, _)| text);
        Self { path: text[..at].trim(), operator, value }
    }

    /// Whether an element is one of those asked for.
    pub(super) fn fits<'js>(
        &self,
        ctx: &Ctx<'js>,
        element: &Value<'js>,
        depth: usize,
    ) -> rquickjs::Result<bool> {
        let found = match self.path {
            "" => Some(element.clone()),
            // Only objects and arrays have parts.
            _ if !element.is_object() => None,
            path => part(ctx, element.clone(), path, depth)?,
        };
        let Some(found) = found else { return Ok(false) };
        if self.operator == QueryOperator::Exists {
            return Ok(!self.path.is_empty());
        }
        if found.is_string() {
            return Ok(self.fits_text(&value::text(ctx, &found)?));
        }
        if let Some(number) = found.as_number() {
            let asked = self.value.parse::<f64>().unwrap_or(0.0);
            return Ok(self.compares(number.partial_cmp(&asked)));
        }
        let asked = match self.value.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        Ok(match (found.as_bool(), asked) {
            (Some(found), Some(asked)) => self.compares(Some(found.cmp(&asked))),
            (Some(_), None) => self.operator == QueryOperator::NotEqual,
            // Nothing compares with null, an object or an array.
            (None, _) => false,
        })
    }

    fn fits_text(&self, text: &str) -> bool {
        match self.operator {
            QueryOperator::Like => is_like(text, &self.value),
            QueryOperator::NotLike => !is_like(text, &self.value),
            _ => self.compares(Some(text.cmp(self.value.as_str()))),
        }
    }

    fn compares(&self, order: Option<std::cmp::Ordering>) -> bool {
        let Some(order) = order else { return false };
        match self.operator {
            QueryOperator::Equal => order.is_eq(),
            QueryOperator::NotEqual => order.is_ne(),
            QueryOperator::Less => order.is_lt(),
            QueryOperator::LessOrEqual => order.is_le(),
            QueryOperator::Greater => order.is_gt(),
            QueryOperator::GreaterOrEqual => order.is_ge(),
            QueryOperator::Exists | QueryOperator::Like | QueryOperator::NotLike => false,
        }
    }
}

/// The operator of a query, outside of texts and brackets: where it is, and how it is written.
fn found(text: &str) -> Option<(usize, &'static str, QueryOperator)> {
    outside(text).find_map(|(at, _)| {
        let mut known = OPERATORS.iter();
        let (sign, operator) = known.find(|(sign, _)| text[at..].starts_with(sign))?;
        Some((at, *sign, *operator))
    })
}

/// Whether a text is like a pattern: `*` stands for any text, `?` for one character, and a backslash
/// takes the meaning from what follows it.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut parts = Vec::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        parts.push(match c {
            '*' => PatternToken::Any,
            '?' => PatternToken::One,
            '\\' => PatternToken::Character(characters.next().unwrap_or('\\')),
            c => PatternToken::Character(c),
        });
    }
    // Where to go on if what follows the last `*` does not fit: it takes one character more.
    let (mut at, mut place, mut last) = (0, 0, None);
    while at < text.len() {
        match parts.get(place) {
            Some(PatternToken::Any) => {
                last = Some((place, at));
                place += 1;
            }
            Some(part)
                if *part == PatternToken::One || *part == PatternToken::Character(text[at]) =>
            {
                at += 1;
                place += 1;
            }
            _ => match last {
                Some((any, from)) => {
                    last = Some((any, from + 1));
                    at = from + 1;
                    place = any + 1;
                }
                None => return false,
            },
        }
    }
    parts[place..].iter().all(|part| *part == PatternToken::Any)
}

/// A part of a pattern.
#[derive(Debug, PartialEq)]
enum PatternToken {
    Any,
    One,
    Character(char),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_texts() {
        for (text, pattern) in [
            ("", ""),
            ("", "*"),
            ("abc", "a*"),
            ("abc", "*c"),
            ("abc", "a?c"),
            ("a*c", r"a\*c"),
            ("aXbXc", "*X*c"),
            ("äöü", "?ö?"),
        ] {
            assert!(is_like(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in
            [("", "?"), ("abc", "a"), ("abc", "b*"), ("abc", r"a\*c"), ("ab", "a?c")]
        {
            assert!(!is_like(text, pattern), "{text} {pattern}");
        }
    }
}
