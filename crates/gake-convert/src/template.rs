//! Strings with interpolated JavaScript expressions.

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplateSegment {
    Text(String),
    /// An expression, and its label in the name of a check.
    Code(String, String),
}

/// A string with interpolated expressions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template(Vec<TemplateSegment>);

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
    /// A single expression.
    pub fn code(code: impl Into<String>) -> Self {
        Self(vec![TemplateSegment::Code(code.into(), "*".to_owned())])
    }

    /// The value of a script variable.
    pub fn variable(name: &str) -> Self {
        let mut template = Self::default();
        template.push_variable(name);
        template
    }

    pub fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(TemplateSegment::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(TemplateSegment::Text(text.to_owned())),
        }
    }

    /// Appends an expression.
    pub fn push_code(&mut self, code: impl Into<String>, label: &str) {
        self.0.push(TemplateSegment::Code(code.into(), label.to_owned()));
    }

    /// Appends the value of a script variable.
    pub fn push_variable(&mut self, name: &str) {
        let name = variable_name(name);
        self.push_code(format!("value({})", quoted(&name)), &format!("{{{name}}}"));
    }

    pub fn append(&mut self, other: Self) {
        for piece in other.0 {
            match piece {
                TemplateSegment::Text(text) => self.push(&text),
                code @ TemplateSegment::Code(..) => self.0.push(code),
            }
        }
    }

    /// Parses `{{name}}`; `expression` appends the replacement of a name.
    pub fn braces(text: &str, expression: &mut dyn FnMut(&mut Self, &str)) -> Self {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let Some(end) = rest[at..].find("}}") else { break };
            // The innermost braces count: `{"a":{{{b}}}}`.
            let start = at + rest[at..at + end].rfind("{{").unwrap_or(0);
            template.push(&rest[..start]);
            expression(&mut template, rest[start + 2..at + end].trim());
            rest = &rest[at + end + 2..];
        }
        template.push(rest);
        template
    }

    /// Maps the text between the expressions.
    #[must_use]
    pub fn map(self, change: impl Fn(&str) -> String) -> Self {
        let pieces = self.0.into_iter().map(|piece| match piece {
            TemplateSegment::Text(text) => TemplateSegment::Text(change(&text)),
            code @ TemplateSegment::Code(..) => code,
        });
        Self(pieces.collect())
    }

    /// URL-encodes text and expressions.
    #[must_use]
    pub fn encoded(self, encode: impl Fn(&str) -> String) -> Self {
        let pieces = self.map(encode).0.into_iter().map(|piece| match piece {
            TemplateSegment::Code(code, label) => {
                TemplateSegment::Code(format!("encodeURIComponent({code})"), label)
            }
            text @ TemplateSegment::Text(_) => text,
        });
        Self(pieces.collect())
    }

    /// The text, if there are no expressions.
    pub fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TemplateSegment::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.literal() == Some("")
    }

    /// The text before the first expression.
    pub fn start(&self) -> &str {
        match self.0.first() {
            Some(TemplateSegment::Text(text)) => text,
            _ => "",
        }
    }

    /// Removes the first bytes of the text.
    #[must_use]
    pub fn without_start(mut self, bytes: usize) -> Self {
        if let Some(TemplateSegment::Text(text)) = self.0.first_mut() {
            text.drain(..bytes.min(text.len()));
        }
        self
    }

    /// Whether the text between the expressions contains `text`.
    pub fn contains(&self, text: &str) -> bool {
        self.0.iter().any(|piece| matches!(piece, TemplateSegment::Text(own) if own.contains(text)))
    }

    /// A name that is the same in every run: expressions are replaced by their labels.
    pub fn label(&self) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            TemplateSegment::Text(text) => text.as_str(),
            TemplateSegment::Code(_, label) => label,
        });
        pieces.collect()
    }

    /// The JavaScript expression.
    pub fn js(&self) -> String {
        match self.0.as_slice() {
            [TemplateSegment::Code(code, _)] => return code.clone(),
            _ => {
                if let Some(text) = self.literal() {
                    return quoted(text);
                }
            }
        }
        let pieces = self.0.iter().map(|piece| match piece {
            TemplateSegment::Text(text) => {
                text.replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${")
            }
            TemplateSegment::Code(code, _) => format!("${{{code}}}"),
        });
        // A dollar at the end of a text must not join the brace of an interpolation.
        format!("`{}`", pieces.collect::<String>().replace("$${", "\\$${"))
    }
}

/// A JavaScript string literal; JSON's are valid.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A name that k6 accepts in `-e NAME=VALUE`.
pub fn variable_name(name: &str) -> String {
    let mut own: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if own.starts_with(|c: char| c.is_ascii_digit()) || own.is_empty() {
        own.insert(0, '_');
    }
    own
}

/// Percent-encodes only what a URL must not contain: `%41` stays.
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

/// Percent-encodes a name or value of a query or form, as `encodeURIComponent` does.
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
