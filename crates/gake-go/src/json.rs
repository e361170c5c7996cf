//! Why a text is not JSON, in the words of Go's `encoding/json`.
//!
//! States and messages are from Go's `scanner.go` and `stream.go`. This does not parse: it explains
//! why another parser refused a text.

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoJsonError {
    message: String,
    /// Bytes read up to the error.
    offset: usize,
}

/// The first number of a valid JSON text that is too large for a float, which Go refuses.
#[must_use]
pub fn number_out_of_range(json: &str) -> Option<&str> {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|&byte| byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &json[at..at + length];
                // A short one without an exponent is small.
                let is_large = |number: &str| number.parse().is_ok_and(f64::is_infinite);
                if (length > 308 || number.contains(['e', 'E'])) && is_large(number) {
                    return Some(number);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

impl GoJsonError {
    /// Why `json` is not JSON; `None` if it is.
    #[must_use]
    pub fn of(json: &[u8]) -> Option<Self> {
        let mut scanner = Scanner::default();
        for (at, &byte) in json.iter().enumerate() {
            match scanner.step(byte) {
                Ok(_) => {}
                Err(message) => return Some(Self { message, offset: at + 1 }),
            }
        }
        let message = match scanner.step(b' ') {
            Ok(true) => return None,
            Ok(false) => "unexpected end of JSON input".to_owned(),
            Err(message) => message,
        };
        Some(Self { message, offset: json.len() })
    }

    /// The error as k6 writes it: with line and character, both from 1.
    #[must_use]
    pub fn in_text(&self, json: &[u8]) -> String {
        let read = String::from_utf8_lossy(&json[..self.offset.min(json.len())]);
        let line = 1 + read.matches('\n').count();
        let character = read.rsplit('\n').next().unwrap_or_default().chars().count();
        // The line break itself is the first character of its line.
        let character = if line > 1 { character.max(1) } else { character };
        format!("at line {line}, character {character} , error: {}", self.message)
    }
}

/// The error of k6's `JSON.parse`; `None` if the text is JSON.
#[must_use]
pub fn parse_error(json: &[u8]) -> Option<String> {
    let mut decoder = TokenDecoder { rest: json, within: Vec::new(), expects: Expects::Top };
    let mut depth = 0_usize;
    loop {
        match decoder.token() {
            Err(TokenError::End) => return Some("Unexpected end of JSON input (EOF)".to_owned()),
            Err(TokenError::Invalid(message)) => return Some(message),
            Ok(Token::Open(_)) => depth += 1,
            Ok(Token::Close) => depth -= 1,
            Ok(Token::Scalar(_)) => {}
        }
        if depth == 0 {
            break;
        }
    }
    let shown = match decoder.token() {
        Err(TokenError::End) => return None,
        Err(TokenError::Invalid(_)) => "<nil>".to_owned(),
        Ok(Token::Open(bracket)) => char::from(bracket).to_string(),
        Ok(Token::Close) => return None,
        Ok(Token::Scalar(text)) => shown(text),
    };
    Some(format!("Unexpected token at the end: {shown}"))
}

/// A scalar as Go prints it.
fn shown(json: &[u8]) -> String {
    match serde_json::from_slice(json) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Null) | Err(_) => "<nil>".to_owned(),
        Ok(value) => value.to_string(),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn invalid(byte: u8, context: &str) -> String {
    format!("invalid character '{}'{context}", quoted(byte))
}

/// A byte as Go quotes it: as the code point of its number.
fn quoted(byte: u8) -> String {
    let c = char::from(byte);
    match c {
        '\'' => "\\'".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\x0b' => "\\v".to_owned(),
        '\x0c' => "\\f".to_owned(),
        '\n' | '\r' | '\t' => c.escape_default().to_string(),
        '\0'..='\x1f' | '\x7f' => format!("\\x{byte:02x}"),
        '\u{80}'..='\u{a0}' | '\u{ad}' => format!("\\u{byte:04x}"),
        _ => c.to_string(),
    }
}

/// The container at the scanner's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Key,
    Value,
    Array,
}

/// The expected input of a scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ScannerState {
    #[default]
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    AfterValue,
    Text,
    Escape,
    /// The number of hexadecimal digits left.
    Code(u8),
    Minus,
    Digits,
    /// After a leading zero, or after all digits before the point.
    WholeRead,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    /// A word, and the number of its bytes read.
    Word(&'static str, usize),
    /// After the value.
    End,
}

/// A scanner of one JSON value.
#[derive(Debug, Default)]
struct Scanner {
    state: ScannerState,
    within: Vec<Container>,
}

impl Scanner {
    /// Reads a byte; returns whether the value ended before it.
    fn step(&mut self, byte: u8) -> Result<bool, String> {
        let is_space = is_space(byte);
        let is_digit = byte.is_ascii_digit();
        self.state = match self.state {
            state @ (ScannerState::Value
            | ScannerState::ValueOrEnd
            | ScannerState::Key
            | ScannerState::KeyOrEnd)
                if is_space =>
            {
                state
            }
            ScannerState::ValueOrEnd if byte == b']' => return self.after_value(byte),
            ScannerState::Value | ScannerState::ValueOrEnd => self.begin_value(byte)?,
            ScannerState::KeyOrEnd if byte == b'}' => {
                if let Some(top) = self.within.last_mut() {
                    *top = Container::Value;
                }
                return self.after_value(byte);
            }
            ScannerState::Key | ScannerState::KeyOrEnd if byte == b'"' => ScannerState::Text,
            ScannerState::Key | ScannerState::KeyOrEnd => {
                return Err(invalid(byte, " looking for beginning of object key string"));
            }
            ScannerState::AfterValue => return self.after_value(byte),
            ScannerState::Text => match byte {
                b'"' => ScannerState::AfterValue,
                b'\\' => ScannerState::Escape,
                0..=0x1f => return Err(invalid(byte, " in string literal")),
                _ => ScannerState::Text,
            },
            ScannerState::Escape => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => ScannerState::Text,
                b'u' => ScannerState::Code(4),
                _ => return Err(invalid(byte, " in string escape code")),
            },
            ScannerState::Code(_) if !byte.is_ascii_hexdigit() => {
                return Err(invalid(byte, " in \\u hexadecimal character escape"));
            }
            ScannerState::Code(1) => ScannerState::Text,
            ScannerState::Code(left) => ScannerState::Code(left - 1),
            ScannerState::Minus => match byte {
                b'0' => ScannerState::WholeRead,
                b'1'..=b'9' => ScannerState::Digits,
                _ => return Err(invalid(byte, " in numeric literal")),
            },
            ScannerState::Digits if is_digit => ScannerState::Digits,
            ScannerState::Digits | ScannerState::WholeRead if byte == b'.' => ScannerState::Point,
            ScannerState::Digits | ScannerState::WholeRead | ScannerState::Fraction
                if matches!(byte, b'e' | b'E') =>
            {
                ScannerState::Exponent
            }
            ScannerState::Point if is_digit => ScannerState::Fraction,
            ScannerState::Point => {
                return Err(invalid(byte, " after decimal point in numeric literal"));
            }
            ScannerState::Fraction if is_digit => ScannerState::Fraction,
            ScannerState::Exponent if matches!(byte, b'+' | b'-') => ScannerState::ExponentSign,
            ScannerState::Exponent | ScannerState::ExponentSign | ScannerState::ExponentDigits
                if is_digit =>
            {
                ScannerState::ExponentDigits
            }
            ScannerState::Exponent | ScannerState::ExponentSign => {
                return Err(invalid(byte, " in exponent of numeric literal"));
            }
            ScannerState::Digits
            | ScannerState::WholeRead
            | ScannerState::Fraction
            | ScannerState::ExponentDigits => {
                return self.after_value(byte);
            }
            ScannerState::Word(word, read) => {
                let expected = word.as_bytes()[read];
                if byte != expected {
                    let expected = char::from(expected);
                    let context = format!(" in literal {word} (expecting '{expected}')");
                    return Err(invalid(byte, &context));
                }
                if read + 1 == word.len() {
                    ScannerState::AfterValue
                } else {
                    ScannerState::Word(word, read + 1)
                }
            }
            ScannerState::End if is_space => return Ok(true),
            ScannerState::End => return Err(invalid(byte, " after top-level value")),
        };
        Ok(false)
    }

    fn begin_value(&mut self, byte: u8) -> Result<ScannerState, String> {
        Ok(match byte {
            b'{' => {
                self.within.push(Container::Key);
                ScannerState::KeyOrEnd
            }
            b'[' => {
                self.within.push(Container::Array);
                ScannerState::ValueOrEnd
            }
            b'"' => ScannerState::Text,
            b'-' => ScannerState::Minus,
            b'0' => ScannerState::WholeRead,
            b'1'..=b'9' => ScannerState::Digits,
            b't' => ScannerState::Word("true", 1),
            b'f' => ScannerState::Word("false", 1),
            b'n' => ScannerState::Word("null", 1),
            _ => return Err(invalid(byte, " looking for beginning of value")),
        })
    }

    fn after_value(&mut self, byte: u8) -> Result<bool, String> {
        let Some(top) = self.within.last_mut() else {
            self.state = ScannerState::End;
            return self.step(byte);
        };
        self.state = match (*top, byte) {
            _ if is_space(byte) => ScannerState::AfterValue,
            (Container::Key, b':') => {
                *top = Container::Value;
                ScannerState::Value
            }
            (Container::Value, b',') => {
                *top = Container::Key;
                ScannerState::Key
            }
            (Container::Array, b',') => ScannerState::Value,
            (Container::Value, b'}') | (Container::Array, b']') => {
                self.within.pop();
                if self.within.is_empty() { ScannerState::End } else { ScannerState::AfterValue }
            }
            (Container::Key, _) => return Err(invalid(byte, " after object key")),
            (Container::Value, _) => return Err(invalid(byte, " after object key:value pair")),
            (Container::Array, _) => return Err(invalid(byte, " after array element")),
        };
        Ok(false)
    }
}

/// The next token that a decoder accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Top,
    ArrayStart,
    ArrayValue,
    ArrayComma,
    ObjectStart,
    ObjectKey,
    ObjectColon,
    ObjectValue,
    ObjectComma,
}

impl Expects {
    fn context(self) -> &'static str {
        match self {
            Self::Top | Self::ArrayStart | Self::ArrayValue | Self::ObjectValue => {
                " looking for beginning of value"
            }
            Self::ArrayComma => " after array element",
            Self::ObjectStart => "",
            Self::ObjectKey => " looking for beginning of object key string",
            Self::ObjectColon => " after object key",
            Self::ObjectComma => " after object key:value pair",
        }
    }

    fn allows_value(self) -> bool {
        matches!(self, Self::Top | Self::ArrayStart | Self::ArrayValue | Self::ObjectValue)
    }

    fn after_value(self) -> Self {
        match self {
            Self::ArrayStart | Self::ArrayValue => Self::ArrayComma,
            Self::ObjectValue => Self::ObjectComma,
            Self::ObjectStart | Self::ObjectKey => Self::ObjectColon,
            other => other,
        }
    }
}

enum Token<'a> {
    Open(u8),
    Close,
    Scalar(&'a [u8]),
}

enum TokenError {
    End,
    Invalid(String),
}

/// Reads the tokens of a text.
struct TokenDecoder<'a> {
    rest: &'a [u8],
    /// The state at each open bracket.
    within: Vec<Expects>,
    expects: Expects,
}

impl<'a> TokenDecoder<'a> {
    fn token(&mut self) -> Result<Token<'a>, TokenError> {
        loop {
            self.rest = self.rest.trim_ascii_start();
            let &byte = self.rest.first().ok_or(TokenError::End)?;
            let expects = self.expects;
            let refused = || TokenError::Invalid(invalid(byte, expects.context()));
            self.expects = match byte {
                b'[' | b'{' if expects.allows_value() => {
                    self.within.push(expects);
                    self.rest = &self.rest[1..];
                    self.expects =
                        if byte == b'[' { Expects::ArrayStart } else { Expects::ObjectStart };
                    return Ok(Token::Open(byte));
                }
                b']' if matches!(expects, Expects::ArrayStart | Expects::ArrayComma) => {
                    return Ok(self.close());
                }
                b'}' if matches!(expects, Expects::ObjectStart | Expects::ObjectComma) => {
                    return Ok(self.close());
                }
                b':' if expects == Expects::ObjectColon => Expects::ObjectValue,
                b',' if expects == Expects::ArrayComma => Expects::ArrayValue,
                b',' if expects == Expects::ObjectComma => Expects::ObjectKey,
                b'"' if matches!(expects, Expects::ObjectStart | Expects::ObjectKey) => {
                    return self.scalar();
                }
                b'[' | b']' | b'{' | b'}' | b':' | b',' => return Err(refused()),
                _ if expects.allows_value() => return self.scalar(),
                _ => return Err(refused()),
            };
            self.rest = &self.rest[1..];
        }
    }

    fn close(&mut self) -> Token<'a> {
        self.rest = &self.rest[1..];
        self.expects = self.within.pop().unwrap_or(Expects::Top).after_value();
        Token::Close
    }

    fn scalar(&mut self) -> Result<Token<'a>, TokenError> {
        let mut scanner = Scanner::default();
        let mut len = 0;
        for &byte in self.rest {
            match scanner.step(byte) {
                // The byte belongs to the next token.
                _ if scanner.state == ScannerState::End => break,
                Ok(_) => len += 1,
                Err(message) => return Err(TokenError::Invalid(message)),
            }
        }
        if len == self.rest.len() && !matches!(scanner.step(b' '), Ok(true)) {
            return Err(TokenError::Invalid("unexpected EOF".to_owned()));
        }
        let (scalar, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.expects = self.expects.after_value();
        Ok(Token::Scalar(scalar))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Texts, and the errors of k6 1.8.1 for them from `response.json()` and `JSON.parse`.
    const ERRORS: &str = include_str!("json_errors.txt");

    #[test]
    fn errors_are_those_of_k6() {
        let mut wrong = String::new();
        for line in ERRORS.lines() {
            let (text, expected) = line.split_once(" => ").unwrap();
            let (kind, text) = text.split_once(' ').unwrap();
            let text: String = serde_json::from_str(text).unwrap();
            let json = text.as_bytes();
            let mine = match kind {
                "json" => GoJsonError::of(json).map(|error| error.in_text(json)),
                _ => parse_error(json),
            };
            let mine = mine.unwrap_or_default();
            if mine != expected {
                writeln!(wrong, "{line}\n  but got: {mine}").unwrap();
            }
        }
        assert!(wrong.is_empty() && ERRORS.lines().count() > 100, "{wrong}");
    }

    #[test]
    fn json_has_no_error() {
        for json in
            ["{}", "[]", " [1, -0.5e+3, \"a\\u00e9\\n\", {\"a\": [true, false, null]}] ", "0"]
        {
            assert_eq!(GoJsonError::of(json.as_bytes()), None, "{json}");
            assert_eq!(parse_error(json.as_bytes()), None, "{json}");
        }
    }

    #[test]
    fn numbers_beyond_floats_are_found() {
        let long = "9".repeat(310);
        for (json, expected) in [
            (r#"{"a":1e400,"b":1}"#, Some("1e400")),
            ("[1,-2E999]", Some("-2E999")),
            (&long, Some(long.as_str())),
            (r#"{"1e400":"1e400 \" 1e400","b":[1e308,1e-999,12]}"#, None),
            ("\"", None),
        ] {
            assert_eq!(number_out_of_range(json), expected, "{json}");
        }
    }
}
