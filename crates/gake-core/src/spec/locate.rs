//! Positions of fields in a file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::error::FieldPath;
use super::syntax::Syntax;

/// The fields of a file with their byte ranges: from the key, or the start of an element, to the
/// end of the value.
#[derive(Debug, Default)]
pub(super) struct FieldSpans(Vec<(FieldPath, Range<usize>)>);

impl FieldSpans {
    /// The fields of a text, up to the first syntax error.
    pub(super) fn of(text: &str, syntax: Syntax) -> Self {
        let mut fields = Self::default();
        match syntax {
            Syntax::Toml => {
                let (table, _) = DeTable::parse_recoverable(text);
                fields.table(table.get_ref(), &FieldPath::root());
            }
            Syntax::Json => {
                let mut scan = JsonScanner { bytes: text.as_bytes(), at: 0, fields: &mut fields };
                // A syntax error ends the scan.
                let _ = scan.value(&FieldPath::root());
            }
        }
        fields
    }

    /// The offset of a field, or of its nearest ancestor.
    pub(super) fn offset(&self, path: &FieldPath) -> Option<usize> {
        let holds = |known: &FieldPath| path.steps().starts_with(known.steps());
        let known = self.0.iter().filter(|(known, _)| holds(known));
        known.max_by_key(|(known, _)| known.steps().len()).map(|(_, bytes)| bytes.start)
    }

    /// The innermost field at an offset.
    pub(super) fn at(&self, offset: usize) -> Option<FieldPath> {
        let mut around =
            self.0.iter().filter(|(_, bytes)| (bytes.start..=bytes.end).contains(&offset));
        let first = around.next()?;
        let deeper = |a: &'_ (FieldPath, Range<usize>), b: &'_ (FieldPath, Range<usize>)| {
            b.0.steps().len() >= a.0.steps().len()
        };
        let inner = around.fold(first, |a, b| if deeper(a, b) { b } else { a });
        Some(inner.0.clone())
    }

    fn table(&mut self, table: &DeTable<'_>, path: &FieldPath) {
        for (key, value) in table {
            let path = path.key(key.get_ref());
            // The values of a table with a header follow its key.
            let end = value.span().end.max(key.span().end);
            self.0.push((path.clone(), key.span().start..end));
            self.inside(value.get_ref(), &path);
        }
    }

    fn inside(&mut self, value: &DeValue<'_>, path: &FieldPath) {
        match value {
            DeValue::Table(table) => self.table(table, path),
            DeValue::Array(array) => {
                for (i, value) in array.iter().enumerate() {
                    let path = path.index(i);
                    self.0.push((path.clone(), value.span()));
                    self.inside(value.get_ref(), &path);
                }
            }
            _ => {}
        }
    }
}

/// A recursive scanner; the depth is bounded.
struct JsonScanner<'a> {
    bytes: &'a [u8],
    at: usize,
    fields: &'a mut FieldSpans,
}

impl JsonScanner<'_> {
    fn value(&mut self, path: &FieldPath) -> Option<()> {
        if path.steps().len() > 128 {
            return None;
        }
        self.blanks();
        match self.bytes.get(self.at)? {
            b'{' => self.items(b'}', |scan, _| {
                let start = scan.at;
                let key = scan.text()?;
                scan.blanks();
                scan.at += usize::from(scan.bytes.get(scan.at)? == &b':');
                scan.field(start, &path.key(&key))
            }),
            b'[' => self.items(b']', |scan, i| scan.field(scan.at, &path.index(i))),
            b'"' => self.text().map(|_| ()),
            _ => {
                let ends = |b: &u8| matches!(b, b',' | b']' | b'}') || b.is_ascii_whitespace();
                let rest = &self.bytes[self.at..];
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                self.at += length;
                (length > 0).then_some(())
            }
        }
    }

    /// Scans the value of a field that starts at `start`.
    fn field(&mut self, start: usize, path: &FieldPath) -> Option<()> {
        let slot = self.fields.0.len();
        // An incomplete value extends to the end.
        self.fields.0.push((path.clone(), start..self.bytes.len()));
        self.value(path)?;
        self.fields.0[slot].1.end = self.at;
        Some(())
    }

    fn items(
        &mut self,
        end: u8,
        mut each: impl FnMut(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        self.at += 1;
        for number in 0.. {
            self.blanks();
            match *self.bytes.get(self.at)? {
                b if b == end => break,
                b',' if number > 0 => {
                    self.at += 1;
                    self.blanks();
                }
                _ => {}
            }
            each(self, number)?;
        }
        self.at += 1;
        Some(())
    }

    fn text(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_slice(&self.bytes[start..self.at]).ok()
    }

    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
}
