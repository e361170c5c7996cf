//! Tells ES modules from CommonJS by an import or export statement, as k6 does.

/// Whether a text has an import or export statement.
pub fn is_es_module(text: &str) -> bool {
    let mut scan =
        ModuleScan { bytes: text.as_bytes(), at: 0, open: Vec::new(), before: Preceding::Start };
    if text.starts_with("#!") {
        scan.skip_line();
    }
    scan.finds_statement()
}

/// The preceding token, which decides the meaning of a `/` or a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preceding {
    /// None, an operator, an opening bracket or a keyword: an expression may begin.
    Start,
    /// A `.`: a property name follows.
    Dot,
    Value,
}

/// Keywords before an expression.
const KEYWORDS: [&str; 15] = [
    "return",
    "typeof",
    "case",
    "in",
    "of",
    "delete",
    "void",
    "throw",
    "new",
    "else",
    "do",
    "instanceof",
    "yield",
    "await",
    "default",
];

/// A scanner of JavaScript for strings, comments, templates, regular expressions and brackets.
struct ModuleScan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Open brackets; `` ` `` for an expression in a template.
    open: Vec<u8>,
    before: Preceding,
}

impl ModuleScan<'_> {
    fn finds_statement(&mut self) -> bool {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'/' if self.next() == Some(b'/') => self.skip_line(),
                b'/' if self.next() == Some(b'*') => self.skip_comment(),
                b'/' if self.before != Preceding::Value && self.skip_regex() => {
                    self.before = Preceding::Value;
                }
                b'"' | b'\'' => self.skip_string(byte),
                b'`' => {
                    self.at += 1;
                    self.skip_template();
                }
                b'(' | b'[' | b'{' => self.opened(byte),
                b')' | b']' | b'}' => self.closed(byte),
                b'.' => self.passed(Preceding::Dot),
                byte if is_word(byte) => {
                    if self.passes_statement() {
                        return true;
                    }
                }
                byte if byte.is_ascii_whitespace() => self.at += 1,
                // `i++ / 2`
                b'+' | b'-' if self.next() == Some(byte) => self.at += 2,
                _ => self.passed(Preceding::Start),
            }
        }
        false
    }

    fn next(&self) -> Option<u8> {
        self.bytes.get(self.at + 1).copied()
    }

    fn passed(&mut self, before: Preceding) {
        self.at += 1;
        self.before = before;
    }

    fn opened(&mut self, bracket: u8) {
        self.open.push(bracket);
        self.passed(Preceding::Start);
    }

    fn closed(&mut self, bracket: u8) {
        let opening = self.open.pop();
        // A `}` may end a block: a statement begins.
        self.passed(if bracket == b'}' { Preceding::Start } else { Preceding::Value });
        if opening == Some(b'`') {
            self.skip_template();
        }
    }

    /// Passes a word. Returns whether it begins an import or export statement.
    fn passes_statement(&mut self) -> bool {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|byte| is_word(*byte)) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        let is_name = self.before == Preceding::Dot;
        let is_keyword = KEYWORDS.iter().any(|keyword| keyword.as_bytes() == word);
        self.before = if is_keyword && !is_name { Preceding::Start } else { Preceding::Value };
        if is_name || !self.open.is_empty() {
            return false;
        }
        match word {
            b"export" => true,
            // `import(` is a call.
            b"import" => self.after_blanks() != Some(b'('),
            _ => false,
        }
    }

    fn after_blanks(&self) -> Option<u8> {
        self.bytes[self.at..].iter().copied().find(|byte| !byte.is_ascii_whitespace())
    }

    fn skip_line(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| *byte != b'\n') {
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) {
        let rest = &self.bytes[self.at + 2..];
        let end = rest.windows(2).position(|pair| pair == b"*/");
        self.at = end.map_or(self.bytes.len(), |end| self.at + 2 + end + 2);
    }

    fn skip_string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                break;
            }
        }
        self.before = Preceding::Value;
    }

    /// Up to the end of a template, or into an expression in it.
    fn skip_template(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => return self.passed(Preceding::Value),
                b'$' if self.next() == Some(b'{') => {
                    self.at += 1;
                    return self.opened(b'`');
                }
                _ => self.at += 1,
            }
        }
    }

    /// Passes a regular expression; returns `false` if the line ends within it: it is a division.
    fn skip_regex(&mut self) -> bool {
        let (mut at, mut in_class) = (self.at + 1, false);
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\n' => return false,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    self.at = at + 1;
                    return true;
                }
                _ => {}
            }
            at += 1;
        }
        false
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_make_a_module() {
        for text in [
            "import x from 'y'; module.exports = x",
            "import'y'",
            "#!/usr/bin/env k6\nimport {a} from './a.js'",
            "const important = require('x');\nexport default important",
            "export{a}; require('b')",
            "/* no */ var a=1/2;export default a",
            "const r = /[/'\"]/g, s = `x${`}`}'`; export const t = 1",
            "let a = b / c\nexport * from 'd'",
            "function f() { return /\\// }\nexport function g() {}",
            "const meta = import.meta.url",
        ] {
            assert!(is_es_module(text), "{text}");
        }
    }

    #[test]
    fn everything_else_is_common_js() {
        for text in [
            "",
            "module.exports = 1",
            "const a = require('x');\nexports.b = a",
            "let a = 1",
            "// import x from 'y'\nexports.a = 1",
            "/*\nexport default 1\n*/",
            "const text = `\nimport x from 'y';\n`",
            "const text = 'a\\'; export default 1'",
            "f(\"\\\nimport x\")",
            "flags.import = 1; x.export()",
            "({ import: 1, export: 2 })",
            "import('./a.js').then(f)",
            "x = a ? /import x/ : /[`]export/",
            "if (a) { b = c[0] / 2 } /export /.test(d)",
        ] {
            assert!(!is_es_module(text), "{text}");
        }
    }
}
