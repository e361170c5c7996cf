//! Source maps of bundled modules: where a place of a stack was in the files that they were made of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::Url;

/// What precedes the URL of a module's map, on its last line.
const MARK: &str = "//# sourceMappingURL=";

/// The prefix of a map that the module holds itself.
const INLINE: &str = "data:application/json";

/// The maps of a test's modules, by module name; `None` for a module without a usable one.
#[derive(Debug, Default)]
pub struct SourceMaps {
    known: Mutex<HashMap<String, Option<Arc<SourceMap>>>>,
}

/// A map, its segments in order of their places.
#[derive(Debug)]
struct SourceMap {
    sources: Vec<String>,
    segments: Vec<Segment>,
}

/// From a place on, the text comes from this place of a source. Lines begin at 1, columns at 0.
#[derive(Debug, Clone, Copy)]
struct Segment {
    line: u32,
    column: u32,
    origin: Option<(u32, u32, u32)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMap {
    version: u32,
    #[serde(default)]
    source_root: Option<String>,
    #[serde(default)]
    sources: Vec<Option<String>>,
    #[serde(default)]
    mappings: String,
}

/// Whether a module names a map.
pub(crate) fn names_map(text: &str) -> bool {
    text.contains(MARK)
}

/// The URL of a module's map: as in k6, only on the last line that holds more than `})`.
fn map_url(text: &str) -> Option<&str> {
    let line = text.rsplit('\n').find(|line| !matches!(*line, "" | "})"))?;
    line.strip_prefix(MARK)
}

impl SourceMaps {
    /// Takes the map of a module, once for all users. `load` reads the map at a URL; its error, or
    /// that of the map, is returned to be logged.
    ///
    /// # Errors
    /// When the map of another file cannot be used.
    pub(crate) fn learn(
        &self,
        module: &str,
        text: &str,
        load: impl FnOnce(&str) -> Result<Arc<[u8]>, String>,
    ) -> Result<(), String> {
        let Some(url) = map_url(text) else { return Ok(()) };
        if self.lock().contains_key(module) {
            return Ok(());
        }
        let read = match url.starts_with(INLINE) {
            true => Ok(inline(url)),
            false => external(module, url, load),
        };
        let (map, result) = match read {
            Ok(map) => (map, Ok(())),
            Err(why) => (None, Err(why)),
        };
        self.lock().insert(module.to_owned(), map.map(Arc::new));
        result
    }

    /// The place behind a place of a module: its file, line and column.
    pub(crate) fn origin(
        &self,
        module: &str,
        line: u32,
        column: u32,
    ) -> Option<(String, u32, u32)> {
        let map = self.lock().get(module).cloned().flatten()?;
        let (source, line, column) = map.origin(line, column)?;
        let source = map.sources.get(source as usize)?;
        // As in k6, a source with a scheme stays as it is written, `./` included.
        let url = match Url::parse(source) {
            Ok(_) => None,
            Err(_) => Url::parse(module).and_then(|base| base.join(source)).ok(),
        };
        Some((url.map_or_else(|| source.clone(), String::from), line, column))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Option<Arc<SourceMap>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A map within the module; one that is wrong is none.
fn inline(url: &str) -> Option<SourceMap> {
    let (_, data) = url.split_once(',')?;
    SourceMap::read(&STANDARD.decode(data.trim_end()).ok()?).ok()
}

/// The map at a URL relative to the module's. A module from the network has no map on this machine.
fn external(
    module: &str,
    url: &str,
    load: impl FnOnce(&str) -> Result<Arc<[u8]>, String>,
) -> Result<Option<SourceMap>, String> {
    let resolved = Url::parse(module).and_then(|base| base.join(url.trim()));
    let resolved = resolved.map_err(|error| format!("parse {url:?}: {error}"))?;
    SourceMap::read(&load(resolved.as_str())?).map(Some)
}

impl SourceMap {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        // Some begin with a line against inclusion as a script.
        let bytes = match bytes.starts_with(b")]}'") {
            true => bytes.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default(),
            false => bytes,
        };
        let raw: RawMap = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if raw.version != 3 {
            return Err(format!(
                "sourcemap: got version={}, but only 3rd version is supported",
                raw.version
            ));
        }
        let root = raw.source_root.filter(|root| !root.is_empty()).map(|root| match root {
            root if root.ends_with('/') => root,
            root => root + "/",
        });
        let root = root.unwrap_or_default();
        let sources = raw.sources.into_iter();
        let sources = sources.map(|source| format!("{root}{}", source.unwrap_or_default()));
        Ok(Self { sources: sources.collect(), segments: segments(&raw.mappings) })
    }

    fn origin(&self, line: u32, column: u32) -> Option<(u32, u32, u32)> {
        let is_before = |one: &Segment| (one.line, one.column) <= (line, column);
        let after = self.segments.partition_point(is_before);
        self.segments[..after].last()?.origin
    }
}

/// The segments of `mappings`, up to one that is wrong.
fn segments(mappings: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let (mut source, mut origin_line, mut origin_column) = (0_i64, 1_i64, 0_i64);
    for (line, text) in (1..).zip(mappings.split(';')) {
        let mut column = 0_i64;
        for segment in text.split(',').filter(|segment| !segment.is_empty()) {
            let Some((fields, count)) = numbers(segment) else { return segments };
            column += fields[0];
            let has_origin = count >= 4;
            if has_origin {
                source += fields[1];
                origin_line += fields[2];
                origin_column += fields[3];
            }
            let number = |number: i64| u32::try_from(number).ok();
            let origin = number(source).zip(number(origin_line)).zip(number(origin_column));
            let origin = origin.map(|((source, line), column)| (source, line, column));
            let Some(column) = number(column) else { return segments };
            segments.push(Segment { line, column, origin: origin.filter(|_| has_origin) });
        }
    }
    segments
}

/// Up to five numbers in base 64, the lowest five bits first, the lowest of all the sign.
fn numbers(segment: &str) -> Option<([i64; 5], usize)> {
    let (mut fields, mut count) = ([0; 5], 0);
    let (mut value, mut shift) = (0_i64, 0);
    for byte in segment.bytes() {
        let digit = i64::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        });
        if shift > 30 {
            return None;
        }
        value |= (digit & 31) << shift;
        shift += 5;
        if digit & 32 == 0 {
            *fields.get_mut(count)? = if value & 1 == 1 { -(value >> 1) } else { value >> 1 };
            (count, value, shift) = (count + 1, 0, 0);
        }
    }
    (shift == 0 && count > 0).then_some((fields, count))
}

/// The column that k6 shows for one of a TypeScript module. Its map has a place for each token, and
/// counts from 0: the token itself, or the first one in parentheses or brackets.
///
/// `stripped` is the line without types, to which `column` refers: what follows it ends the line, or
/// what precedes it begins the line.
pub(crate) fn typescript_column(line: &str, stripped: &str, column: u32) -> u32 {
    let rest: String = stripped.chars().skip(column.saturating_sub(1) as usize).collect();
    let column = match line.strip_suffix(&rest) {
        Some(before) if !rest.is_empty() => before.chars().count() as u32 + 1,
        _ => column,
    };
    let mut rest = line.chars().skip(column.saturating_sub(1) as usize);
    match rest.next() {
        Some('(' | '[') => column + rest.take_while(|next| next.is_whitespace()).count() as u32,
        // The end of a call has a place, too.
        Some(_) if rest.next() == Some(')') => column,
        _ => column.saturating_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines: `a.ts` from 2:4 on, then from 3:0 on; `b.ts` from 1:0 on.
    const MAP: &str = r#"{"version":3,"sourceRoot":"src","sources":["a.ts","b.ts"],
        "mappings":"AACI,SACJ;ACFA"}"#;

    fn learnt(text: &str, map: &str) -> (SourceMaps, Result<(), String>) {
        let maps = SourceMaps::default();
        let bytes: Arc<[u8]> = map.as_bytes().into();
        let result = maps.learn("file:///d/x.js", text, |url| match url {
            "file:///d/x.js.map" => Ok(bytes),
            other => Err(format!("{other}?")),
        });
        (maps, result)
    }

    #[test]
    fn places_have_origins() {
        let text = format!("f()\n{MARK}x.js.map\n\n");
        let (maps, result) = learnt(&text, MAP);
        assert_eq!(result, Ok(()));
        let at = |line, column| maps.origin("file:///d/x.js", line, column);
        let found =
            |name: &str, line, column| Some((format!("file:///d/src/{name}"), line, column));
        assert_eq!(at(1, 1), found("a.ts", 2, 4));
        assert_eq!(at(1, 12), found("a.ts", 3, 0));
        assert_eq!(at(2, 5), found("b.ts", 1, 0));
        assert_eq!(maps.origin("file:///d/y.js", 1, 1), None);
        let bundled = MAP.replace("\"src\"", "\"\"").replace("a.ts", "webpack://x/./a.ts");
        let origin = learnt(&text, &bundled).0.origin("file:///d/x.js", 1, 1);
        assert_eq!(origin, Some(("webpack://x/./a.ts".to_owned(), 2, 4)));
        let own = format!("f()\n{MARK}{INLINE};base64,{}", STANDARD.encode(MAP));
        let (maps, result) = learnt(&own, "");
        assert_eq!((result, maps.origin("file:///d/x.js", 2, 5)), (Ok(()), found("b.ts", 1, 0)));
    }

    #[test]
    fn what_is_no_map_is_reported_once() {
        for (line, map, why) in [
            ("gone.map", MAP, "file:///d/gone.map?"),
            ("x.js.map", "{", "EOF"),
            ("x.js.map", r#"{"version":2}"#, "got version=2"),
        ] {
            let text = format!("f()\n{MARK}{line}");
            let (maps, result) = learnt(&text, map);
            assert!(result.as_ref().unwrap_err().contains(why), "{result:?}");
            assert_eq!(maps.learn("file:///d/x.js", &text, |_| Err("again".into())), Ok(()));
            assert_eq!(maps.origin("file:///d/x.js", 1, 1), None);
        }
        let (_, result) = learnt("a()\n//# sourceMappingURL=gone.map\nb()", MAP);
        assert_eq!(result, Ok(()), "only the last line counts");
        for wrong in ["!", "gggggggggggA", "A,gA,", "zzzzzz", "D"] {
            let _ = segments(wrong);
        }
    }

    #[test]
    fn columns_of_typescript_count_from_0() {
        for (column, expected) in [(1, 0), (3, 2), (4, 5), (7, 7), (60, 59)] {
            let line = "a.b( c[1])";
            assert_eq!(typescript_column(line, line, column), expected, "{column}");
        }
        assert_eq!(typescript_column("const a: A<B> = b(c)", "const a = b(c)", 12), 18);
        assert_eq!(typescript_column("a.b(c as C)", "a.b(c)", 3), 2);
        assert_eq!(typescript_column("a(b.c)", "a(b.c)", 5), 5);
    }
}
