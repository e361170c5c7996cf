//! Text of a script that is partly computed.

/// One piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// An expression of JavaScript, and what names it in the name of a check.
    Code(String, String),
}

/// Text with expressions in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

impl From<&str> for Template {
    fn from(text: &str) -> Self {
        let mut template = Self::default();
        template.push(text);
        template
    }
}

impl From<String> for Template {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl Template {
    /// One expression.
    pub fn code(code: impl Into<String>) -> Self {
        Self(vec![Piece::Code(code.into(), "*".to_owned())])
    }

    /// The value of a variable of the script.
    pub fn variable(name: &str) -> Self {
        let mut template = Self::default();
        template.push_variable(name);
        template
    }

    /// Appends text.
    pub fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    /// Appends an expression.
    pub fn push_code(&mut self, code: impl Into<String>, label: &str) {
        self.0.push(Piece::Code(code.into(), label.to_owned()));
    }

    /// Appends the value of a variable.
    pub fn push_variable(&mut self, name: &str) {
        let name = variable_name(name);
        self.push_code(format!("value({})", quoted(&name)), &format!("{{{name}}}"));
    }

    /// Appends another template.
    pub fn append(&mut self, other: Self) {
        for piece in other.0 {
            match piece {
                Piece::Text(text) => self.push(&text),
                code @ Piece::Code(..) => self.0.push(code),
            }
        }
    }

    /// Reads `{{name}}`; `expression` appends what a name stands for.
    pub fn braces(text: &str, expression: &mut dyn FnMut(&mut Self, &str)) -> Self {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let Some(end) = rest[at..].find("}}") else { break };
            // The innermost opening counts: `{"a":{{{b}}}}`.
            let start = at + rest[at..at + end].rfind("{{").unwrap_or(0);
            template.push(&rest[..start]);
            expression(&mut template, rest[start + 2..at + end].trim());
            rest = &rest[at + end + 2..];
        }
        template.push(rest);
        template
    }

    /// Changes the text between the expressions.
    #[must_use]
    pub fn map(self, change: impl Fn(&str) -> String) -> Self {
        let pieces = self.0.into_iter().map(|piece| match piece {
            Piece::Text(text) => Piece::Text(change(&text)),
            code @ Piece::Code(..) => code,
        });
        Self(pieces.collect())
    }

    /// Changes text and expressions, both for a part of a URL.
    #[must_use]
    pub fn encoded(self, encode: impl Fn(&str) -> String) -> Self {
        let pieces = self.map(encode).0.into_iter().map(|piece| match piece {
            Piece::Code(code, label) => Piece::Code(format!("encodeURIComponent({code})"), label),
            text @ Piece::Text(_) => text,
        });
        Self(pieces.collect())
    }

    /// The text, when there is nothing else.
    pub fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it is empty text.
    pub fn is_empty(&self) -> bool {
        self.literal() == Some("")
    }

    /// The text in front of the first expression.
    pub fn start(&self) -> &str {
        match self.0.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }

    /// Without the first bytes of its text.
    #[must_use]
    pub fn without_start(mut self, bytes: usize) -> Self {
        if let Some(Piece::Text(text)) = self.0.first_mut() {
            text.drain(..bytes.min(text.len()));
        }
        self
    }

    /// Whether a text occurs between the expressions.
    pub fn contains(&self, text: &str) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Text(own) if own.contains(text)))
    }

    /// What names it, the same in every run: expressions by their labels.
    pub fn label(&self) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Code(_, label) => label,
        });
        pieces.collect()
    }

    /// The expression of JavaScript.
    pub fn js(&self) -> String {
        match self.0.as_slice() {
            [Piece::Code(code, _)] => return code.clone(),
            _ => {
                if let Some(text) = self.literal() {
                    return quoted(text);
                }
            }
        }
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => {
                text.replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${")
            }
            Piece::Code(code, _) => format!("${{{code}}}"),
        });
        // A dollar at the end of a text would join the brace of an expression.
        format!("`{}`", pieces.collect::<String>().replace("$${", "\\$${"))
    }
}

/// A string of JavaScript: those of JSON are.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A variable's name as `-e NAME=VALUE` of k6 takes it.
pub fn variable_name(name: &str) -> String {
    let mut own: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if own.starts_with(|c: char| c.is_ascii_digit()) || own.is_empty() {
        own.insert(0, '_');
    }
    own
}

/// Encodes what a URL may not hold as it is, and nothing else: `%41` stays.
pub fn url_text(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' | b'"' | b'<' | b'>' | b'`' | 0..=31 | 127.. => {
                encoded.push_str(&format!("%{byte:02X}"));
            }
            _ => encoded.push(char::from(byte)),
        }
    }
    encoded
}

/// Encodes a name or value of a query or form, as `encodeURIComponent` does.
pub fn component(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn js(text: &str) -> String {
        Template::braces(text, &mut Template::push_variable).js()
    }

    #[test]
    fn text_with_variables() {
        assert_eq!(js("a\"b"), r#""a\"b""#);
        assert_eq!(js("{{a}}"), r#"value("a")"#);
        assert_eq!(js("{\"a\":{{{b-c}}}}"), r#"`{"a":{${value("b_c")}}}`"#);
        assert_eq!(js("`$x${y}\\ {{1}}$"), r#"`\`$x\${y}\\ ${value("_1")}$`"#);
        assert_eq!(js("${{a}}"), "`\\$${value(\"a\")}`");
        assert_eq!(js("{{open"), r#""{{open""#);
    }

    #[test]
    fn urls() {
        assert_eq!(url_text("/a b?c=%41&é"), "/a%20b?c=%41&%C3%A9");
        assert_eq!(component("a b/é"), "a%20b%2F%C3%A9");
    }
}
