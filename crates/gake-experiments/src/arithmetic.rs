//! The expressions of experiment files: `min(users, threads) / service`, `{users:count} users`.
//!
//! Every value is a number. Times are in seconds: `50ms` is 0.05. Conditions are 1 or 0.

use gake_text::duration::parse_duration;
use gake_text::units;

/// The operators by precedence, the lowest first.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<=", ">=", "==", "!=", "<", ">"], &["+", "-"], &["*", "/"]];

/// Resolves the names in an expression or template.
pub trait ExpressionScope {
    /// The value of a number.
    fn number(&self, name: &str) -> Result<f64, String>;

    /// The value of a text; `None` if the name is no text.
    fn text(&self, name: &str) -> Result<Option<String>, String>;

    /// The result of a function call.
    fn call(&self, function: &str, arguments: &[f64]) -> Result<f64, String>;
}

/// Evaluates an expression.
pub fn evaluate(text: &str, names: &dyn ExpressionScope) -> Result<f64, String> {
    let mut parser = ExpressionParser { rest: text, names };
    let value = parser.level(0).map_err(|why| format!("{text:?}: {why}"))?;
    match parser.rest.trim() {
        "" => Ok(value),
        rest => Err(format!("{text:?}: {rest:?} is not expected")),
    }
}

/// Replaces each `{expression:format}` of a template; `{{` and `}}` are braces.
pub fn fill(template: &str, names: &dyn ExpressionScope) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let (brace, behind) = rest[at..].split_at(1);
        if let Some(escaped) = behind.strip_prefix(brace) {
            filled.push_str(brace);
            rest = escaped;
            continue;
        }
        let (inside, behind) =
            behind.split_once('}').ok_or_else(|| format!("{template:?}: a brace is not closed"))?;
        rest = behind;
        let (expression, format) = inside.rsplit_once(':').unwrap_or((inside, ""));
        match names.text(expression)? {
            Some(text) => filled.push_str(&text),
            None => filled.push_str(&formatted(evaluate(expression, names)?, format)),
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Formats a number: a format of [`units`], a number of decimals, or a noun.
pub fn formatted(value: f64, format: &str) -> String {
    match format {
        "" => value.to_string(),
        "count" => units::count(value as u64),
        "rate" => units::rate(value),
        "time" => units::duration(value * 1e9),
        "ms" => format!("{:.0} ms", value * 1e3),
        "percent" => units::percent(value),
        "bytes" => units::bytes(value),
        "number" => units::number(value),
        "0" | "1" | "2" => format!("{value:.*}", format.parse().unwrap_or(0)),
        noun => units::plural(value as u64, noun),
    }
}

/// Evaluates while parsing.
struct ExpressionParser<'a> {
    rest: &'a str,
    names: &'a dyn ExpressionScope,
}

impl<'a> ExpressionParser<'a> {
    fn level(&mut self, level: usize) -> Result<f64, String> {
        let Some(operators) = LEVELS.get(level) else { return self.factor() };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.takes(operator)) {
            left = apply(operator, left, self.level(level + 1)?);
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<f64, String> {
        if self.takes("-") {
            return Ok(-self.factor()?);
        }
        if self.takes("!") {
            return Ok(f64::from(self.factor()? == 0.0));
        }
        if self.takes("(") {
            let value = self.level(0)?;
            return self.takes(")").then_some(value).ok_or_else(|| "a ) is missing".to_owned());
        }
        let word = self.word();
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            let plain = word.parse().ok();
            let time = || parse_duration(word).ok().map(|time| time.as_secs_f64());
            return plain.or_else(time).ok_or_else(|| format!("{word:?} is not a number"));
        }
        if word.is_empty() {
            return Err(format!("a value is missing before {:?}", self.rest));
        }
        if !self.takes("(") {
            return self.names.number(word);
        }
        let mut arguments = Vec::new();
        while !self.takes(")") {
            arguments.push(self.level(0)?);
            if !self.takes(",") && !self.rest.trim_start().starts_with(')') {
                return Err("a ) is missing".to_owned());
            }
        }
        match common(word, &arguments) {
            Some(value) => Ok(value),
            None => self.names.call(word, &arguments),
        }
    }

    /// Skips a token if it comes next; returns whether it did.
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes a name or number.
    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let is_inside = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.');
        let (word, rest) = rest.split_at(rest.find(|c| !is_inside(c)).unwrap_or(rest.len()));
        self.rest = rest;
        word
    }
}

fn apply(operator: &str, left: f64, right: f64) -> f64 {
    match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "<" => f64::from(left < right),
        ">" => f64::from(left > right),
        "<=" => f64::from(left <= right),
        ">=" => f64::from(left >= right),
        "==" => f64::from(left == right),
        "!=" => f64::from(left != right),
        "&&" => f64::from(left != 0.0 && right != 0.0),
        _ => f64::from(left != 0.0 || right != 0.0),
    }
}

/// The built-in functions; `None` for any other.
fn common(function: &str, arguments: &[f64]) -> Option<f64> {
    Some(match (function, arguments) {
        ("if", [condition, yes, no]) => {
            if *condition == 0.0 {
                *no
            } else {
                *yes
            }
        }
        ("min", [a, b]) => a.min(*b),
        ("max", [a, b]) => a.max(*b),
        ("floor", [a]) => a.floor(),
        ("ceil", [a]) => a.ceil(),
        ("round", [a]) => a.round(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestScope;

    impl ExpressionScope for TestScope {
        fn number(&self, name: &str) -> Result<f64, String> {
            if name == "users" { Ok(3.0) } else { Err(format!("{name} has no value")) }
        }

        fn text(&self, name: &str) -> Result<Option<String>, String> {
            Ok((name == "path").then(|| "/fast".to_owned()))
        }

        fn call(&self, function: &str, arguments: &[f64]) -> Result<f64, String> {
            match (function, arguments) {
                ("sum", numbers) => Ok(numbers.iter().sum()),
                _ => Err(format!("{function} is no function")),
            }
        }
    }

    #[test]
    fn expressions_bind_as_everywhere() {
        for (text, value) in [
            ("1 + 2 * users - 4 / 2", 5.0),
            ("-(1 + 2) * 500ms", -1.5),
            ("1.5s + 2m", 121.5),
            ("if(users >= 3 && !(users == 4), max(1, users), 0)", 3.0),
            ("users < 3 || users != 3", 0.0),
            ("sum(1, 2, users) + floor(1.7) + ceil(1.2) + round(0.5)", 10.0),
        ] {
            assert_eq!(evaluate(text, &TestScope), Ok(value), "{text}");
        }
        for text in ["", "1 +", "(1", "unknown", "f(1)", "1 2", "min(1)", "5x", "sum(1 2)"] {
            assert!(evaluate(text, &TestScope).is_err(), "{text}");
        }
    }

    #[test]
    fn templates_are_filled() {
        let of = |template| fill(template, &TestScope);
        assert_eq!(
            of("{path} {users:user} {users * 1000:count}"),
            Ok("/fast 3 users 3,000".into())
        );
        assert_eq!(of("{{{users}}} {users / 2:1} {50ms:time}"), Ok("{3} 1.5 50.0 ms".into()));
        assert!(of("{users").is_err() && of("{unknown}").is_err());
    }
}
