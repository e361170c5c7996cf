//! Queries of array elements: `#(age>40)`, `#(first%"D*")`, `#(nets.#(=="fb"))`.

use gake_js::value;
use rquickjs::{Ctx, Value};

use super::{outside, quoted, value_at};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryOperator {
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

/// The longer of two with the same prefix come first.
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

#[derive(Debug)]
pub(super) struct ElementQuery<'a> {
    /// The path of the compared value; empty for the element itself.
    path: &'a str,
    operator: QueryOperator,
    /// The operand, without quotes.
    value: String,
}

impl<'a> ElementQuery<'a> {
    /// Parses the text between the parentheses.
    pub(super) fn new(text: &'a str) -> Self {
        let Some((at, sign, operator)) = operator(text) else {
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

    pub(super) fn matches<'js>(
        &self,
        ctx: &Ctx<'js>,
        element: &Value<'js>,
        depth: usize,
    ) -> rquickjs::Result<bool> {
        let found = match self.path {
            "" => Some(element.clone()),
            _ if !element.is_object() => None,
            path => value_at(ctx, element.clone(), path, depth)?,
        };
        let Some(found) = found else { return Ok(false) };
        if self.operator == QueryOperator::Exists {
            return Ok(!self.path.is_empty());
        }
        if found.is_string() {
            return Ok(self.matches_text(&value::text(ctx, &found)?));
        }
        if let Some(number) = found.as_number() {
            let operand = self.value.parse::<f64>().unwrap_or(0.0);
            return Ok(self.compares(number.partial_cmp(&operand)));
        }
        let operand = match self.value.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        Ok(match (found.as_bool(), operand) {
            (Some(found), Some(operand)) => self.compares(Some(found.cmp(&operand))),
            (Some(_), None) => self.operator == QueryOperator::NotEqual,
            // `null`, objects and arrays never match.
            (None, _) => false,
        })
    }

    fn matches_text(&self, text: &str) -> bool {
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

/// The operator of a query, outside of strings and brackets, with its index and text.
fn operator(text: &str) -> Option<(usize, &'static str, QueryOperator)> {
    outside(text).find_map(|(at, _)| {
        let mut known = OPERATORS.iter();
        let (sign, operator) = known.find(|(sign, _)| text[at..].starts_with(sign))?;
        Some((at, *sign, *operator))
    })
}

/// Whether a text matches a pattern: `*` is any text, `?` one character; a backslash escapes.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        tokens.push(match c {
            '*' => PatternToken::Any,
            '?' => PatternToken::One,
            '\\' => PatternToken::Character(characters.next().unwrap_or('\\')),
            c => PatternToken::Character(c),
        });
    }
    // Backtracking: `last` is the last `*` and the index after the text that it has consumed.
    let (mut at, mut token, mut last) = (0, 0, None);
    while at < text.len() {
        match tokens.get(token) {
            Some(PatternToken::Any) => {
                last = Some((token, at));
                token += 1;
            }
            Some(PatternToken::One) => {
                at += 1;
                token += 1;
            }
            Some(PatternToken::Character(c)) if *c == text[at] => {
                at += 1;
                token += 1;
            }
            _ => match last {
                Some((any, from)) => {
                    last = Some((any, from + 1));
                    at = from + 1;
                    token = any + 1;
                }
                None => return false,
            },
        }
    }
    tokens[token..].iter().all(|token| *token == PatternToken::Any)
}

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
