//! Why a text is not JSON, in the words of Go's `encoding/json`, which are those of k6.
//!
//! QuickJS parses; this reads the text again only after it was refused. The states and messages are
//! those of Go's scanner (`scanner.go`) and decoder (`stream.go`).

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoJsonError {
    message: String,
    /// Bytes read when it was noticed.
    offset: usize,
}

impl GoJsonError {
    /// Why `json` is not JSON; nothing if it is.
    pub(crate) fn of(json: &[u8]) -> Option<Self> {
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

    /// The error as k6 tells it for a whole text: line and character, both from 1.
    pub(crate) fn in_text(&self, json: &[u8]) -> String {
        let read = String::from_utf8_lossy(&json[..self.offset.min(json.len())]);
        let line = 1 + read.matches('\n').count();
        let character = read.rsplit('\n').next().unwrap_or_default().chars().count();
        // The line break itself is the first character of its line.
        let character = if line > 1 { character.max(1) } else { character };
        format!("at line {line}, character {character} , error: {}", self.message)
    }
}

/// Why `JSON.parse` refuses a text, as k6 says it; nothing if it is JSON.
pub(crate) fn parse_error(json: &[u8]) -> Option<String> {
    let mut decoder = Decoder { rest: json, within: Vec::new(), expects: Expects::Top };
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

/// A value without parts as Go prints it.
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

/// A byte as Go quotes it: taken for the code point of its number.
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

/// What a scanner is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Key,
    Value,
    Array,
}

/// What a scanner reads next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    AfterValue,
    Text,
    Escape,
    /// Hexadecimal digits, and how many are still to come.
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
    /// A word, and how much of it was read.
    Word(&'static str, usize),
    /// After the whole text's value.
    End,
}

/// A scanner of one JSON value.
#[derive(Debug, Default)]
struct Scanner {
    state: State,
    within: Vec<Within>,
}

impl Scanner {
    /// Reads a byte; returns whether the value ended before it.
    fn step(&mut self, byte: u8) -> Result<bool, String> {
        let is_space = is_space(byte);
        let is_digit = byte.is_ascii_digit();
        self.state = match self.state {
            state @ (State::Value | State::ValueOrEnd | State::Key | State::KeyOrEnd)
                if is_space =>
            {
                state
            }
            State::ValueOrEnd if byte == b']' => return self.after_value(byte),
            State::Value | State::ValueOrEnd => self.begin_value(byte)?,
            State::KeyOrEnd if byte == b'}' => {
                if let Some(top) = self.within.last_mut() {
                    *top = Within::Value;
                }
                return self.after_value(byte);
            }
            State::Key | State::KeyOrEnd if byte == b'"' => State::Text,
            State::Key | State::KeyOrEnd => {
                return Err(invalid(byte, " looking for beginning of object key string"));
            }
            State::AfterValue => return self.after_value(byte),
            State::Text => match byte {
                b'"' => State::AfterValue,
                b'\\' => State::Escape,
                0..=0x1f => return Err(invalid(byte, " in string literal")),
                _ => State::Text,
            },
            State::Escape => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => State::Text,
                b'u' => State::Code(4),
                _ => return Err(invalid(byte, " in string escape code")),
            },
            State::Code(_) if !byte.is_ascii_hexdigit() => {
                return Err(invalid(byte, " in \\u hexadecimal character escape"));
            }
            State::Code(1) => State::Text,
            State::Code(left) => State::Code(left - 1),
            State::Minus => match byte {
                b'0' => State::WholeRead,
                b'1'..=b'9' => State::Digits,
                _ => return Err(invalid(byte, " in numeric literal")),
            },
            State::Digits if is_digit => State::Digits,
            State::Digits | State::WholeRead if byte == b'.' => State::Point,
            State::Digits | State::WholeRead | State::Fraction if matches!(byte, b'e' | b'E') => {
                State::Exponent
            }
            State::Point if is_digit => State::Fraction,
            State::Point => return Err(invalid(byte, " after decimal point in numeric literal")),
            State::Fraction if is_digit => State::Fraction,
            State::Exponent if matches!(byte, b'+' | b'-') => State::ExponentSign,
            State::Exponent | State::ExponentSign | State::ExponentDigits if is_digit => {
                State::ExponentDigits
            }
            State::Exponent | State::ExponentSign => {
                return Err(invalid(byte, " in exponent of numeric literal"));
            }
            State::Digits | State::WholeRead | State::Fraction | State::ExponentDigits => {
                return self.after_value(byte);
            }
            State::Word(word, read) => {
                let expected = word.as_bytes()[read];
                if byte != expected {
                    let expected = char::from(expected);
                    let context = format!(" in literal {word} (expecting '{expected}')");
                    return Err(invalid(byte, &context));
                }
                if read + 1 == word.len() { State::AfterValue } else { State::Word(word, read + 1) }
            }
            State::End if is_space => return Ok(true),
            State::End => return Err(invalid(byte, " after top-level value")),
        };
        Ok(false)
    }

    fn begin_value(&mut self, byte: u8) -> Result<State, String> {
        Ok(match byte {
            b'{' => {
                self.within.push(Within::Key);
                State::KeyOrEnd
            }
            b'[' => {
                self.within.push(Within::Array);
                State::ValueOrEnd
            }
            b'"' => State::Text,
            b'-' => State::Minus,
            b'0' => State::WholeRead,
            b'1'..=b'9' => State::Digits,
            b't' => State::Word("true", 1),
            b'f' => State::Word("false", 1),
            b'n' => State::Word("null", 1),
            _ => return Err(invalid(byte, " looking for beginning of value")),
        })
    }

    fn after_value(&mut self, byte: u8) -> Result<bool, String> {
        let Some(top) = self.within.last_mut() else {
            self.state = State::End;
            return self.step(byte);
        };
        self.state = match (*top, byte) {
            _ if is_space(byte) => State::AfterValue,
            (Within::Key, b':') => {
                *top = Within::Value;
                State::Value
            }
            (Within::Value, b',') => {
                *top = Within::Key;
                State::Key
            }
            (Within::Array, b',') => State::Value,
            (Within::Value, b'}') | (Within::Array, b']') => {
                self.within.pop();
                if self.within.is_empty() { State::End } else { State::AfterValue }
            }
            (Within::Key, _) => return Err(invalid(byte, " after object key")),
            (Within::Value, _) => return Err(invalid(byte, " after object key:value pair")),
            (Within::Array, _) => return Err(invalid(byte, " after array element")),
        };
        Ok(false)
    }
}

/// What a decoder of tokens expects.
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
struct Decoder<'a> {
    rest: &'a [u8],
    /// What was expected where the open brackets are.
    within: Vec<Expects>,
    expects: Expects,
}

impl<'a> Decoder<'a> {
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
                // What follows it is the next token's.
                _ if scanner.state == State::End => break,
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

    /// Texts, and what k6 1.8.1 says of them: `response.json()` and `JSON.parse`.
    const SAID: &str = include_str!("go_json_said.txt");

    #[test]
    fn a_text_is_refused_in_the_words_of_k6() {
        let mut wrong = String::new();
        for line in SAID.lines() {
            let (text, said) = line.split_once(" => ").unwrap();
            let (kind, text) = text.split_once(' ').unwrap();
            let text: String = serde_json::from_str(text).unwrap();
            let json = text.as_bytes();
            let mine = match kind {
                "json" => GoJsonError::of(json).map(|error| error.in_text(json)),
                _ => parse_error(json),
            };
            let mine = mine.unwrap_or_default();
            if mine != said {
                writeln!(wrong, "{line}\n  but said: {mine}").unwrap();
            }
        }
        assert!(wrong.is_empty() && SAID.lines().count() > 100, "{wrong}");
    }

    #[test]
    fn what_is_json_is_not_refused() {
        for json in
            ["{}", "[]", " [1, -0.5e+3, \"a\\u00e9\\n\", {\"a\": [true, false, null]}] ", "0"]
        {
            assert_eq!(GoJsonError::of(json.as_bytes()), None, "{json}");
            assert_eq!(parse_error(json.as_bytes()), None, "{json}");
        }
    }
}
