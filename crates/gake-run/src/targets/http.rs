//! Vegeta's `http` format: a request line, header lines, a body file. A URL by itself is a request
//! line with the method GET.

use std::io::BufRead;
use std::path::PathBuf;

use super::line_reader::LineReader;
use super::{QuotedText, Target, TargetBody, TargetError, TargetErrorKind as Kind, is_token};

/// Parses the next target; `None` at the end.
///
/// `takes_urls`: a URL by itself is a target.
pub(super) fn next<R: BufRead>(
    lines: &mut LineReader<R>,
    takes_urls: bool,
) -> Result<Option<Target>, TargetError> {
    let mut marks = TargetMarks::default();
    let mut target = loop {
        match lines.next()? {
            None if marks.line == 0 => return Ok(None),
            None => return Err(TargetError { line: marks.line, kind: Kind::Dangling }),
            Some((_, "")) => {}
            Some((line, text)) => {
                let fault = |kind| TargetError { line, kind };
                match comment(text) {
                    Some(comment) => marks.read(comment, line).map_err(fault)?,
                    None if is_url(text) && !takes_urls => {
                        return Err(fault(Kind::NoMethod(QuotedText::new(text))));
                    }
                    None => break Target { line, ..request_line(text).map_err(fault)? },
                }
            }
        }
    };
    target.weight = marks.weight.unwrap_or(1);
    target.label = marks.label;
    while let Some((line, text)) = lines.next()? {
        match target.add(text).map_err(|kind| TargetError { line, kind })? {
            LineKind::More => {}
            LineKind::End => break,
            LineKind::NotMine => {
                lines.hold();
                break;
            }
        }
    }
    Ok(Some(target))
}

/// The kind of a line after the request line.
enum LineKind {
    More,
    /// The last line of the target.
    End,
    /// The first line of the next target.
    NotMine,
}

impl Target {
    fn add(&mut self, line: &str) -> Result<LineKind, Kind> {
        if line.is_empty() {
            return Ok(LineKind::End);
        }
        if let Some(text) = comment(line) {
            return Ok(if directive(text).is_some() { LineKind::NotMine } else { LineKind::More });
        }
        if let Some(path) = line.strip_prefix('@') {
            if path.is_empty() {
                return Err(Kind::BodyFile);
            }
            self.body = TargetBody::File(PathBuf::from(path));
            return Ok(LineKind::End);
        }
        // Without this, a request line right after a header would itself be taken for a header,
        // since its URL has a colon. `HOST : x` is a header.
        if is_url(line) || method_of(line).is_some_and(|(_, rest)| !rest.starts_with(':')) {
            return Ok(LineKind::NotMine);
        }
        self.headers.push(header(line)?);
        Ok(LineKind::More)
    }
}

/// Whether a line is only a URL: a plain list of URLs is a targets file too.
fn is_url(line: &str) -> bool {
    let schemes = ["http://", "https://"];
    schemes.iter().any(|scheme| line.starts_with(scheme)) && !line.contains(char::is_whitespace)
}

fn request_line(line: &str) -> Result<Target, Kind> {
    if is_url(line) {
        return Ok(Target::new("GET", line));
    }
    let Some((word, rest)) = line.split_once(char::is_whitespace) else {
        return Err(Kind::RequestLine(QuotedText::new(line)));
    };
    let Some((method, _)) = method_of(line) else {
        // A line such as `Accept: text/html` is in the wrong place, not a wrong method.
        let misplaced = word.contains(':') || word.starts_with('@');
        let kind = if misplaced { Kind::RequestLine } else { Kind::Method };
        return Err(kind(QuotedText::new(if misplaced { line } else { word })));
    };
    let url = rest.trim_start();
    if url.chars().any(char::is_control) {
        return Err(Kind::Url(QuotedText::new(url)));
    }
    Ok(Target::new(method, url))
}

/// The method and the rest, if the line starts with upper-case letters and a blank.
fn method_of(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_once(char::is_whitespace)?;
    let upper = !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase());
    upper.then_some((word, rest.trim_start()))
}

fn header(line: &str) -> Result<(String, String), Kind> {
    let fault = || Kind::Header(QuotedText::new(line));
    let (name, value) = line.split_once(':').ok_or_else(fault)?;
    let (name, value) = (name.trim(), value.trim());
    if !is_token(name) || value.is_empty() || super::breaks_line(value) {
        return Err(fault());
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn comment(line: &str) -> Option<&str> {
    line.strip_prefix('#').map(str::trim)
}

fn directive(comment: &str) -> Option<&str> {
    comment.strip_prefix("gake:").map(str::trim)
}

/// Weight and label from `# gake:` comments before a target.
#[derive(Default)]
struct TargetMarks {
    weight: Option<u32>,
    label: Option<String>,
    /// The line of the last directive; 0 without one.
    line: usize,
}

impl TargetMarks {
    /// Reads a comment; other comments are ignored.
    fn read(&mut self, comment: &str, line: usize) -> Result<(), Kind> {
        let Some(mut rest) = directive(comment) else { return Ok(()) };
        let fault = |text: &str| Kind::Directive(QuotedText::new(text));
        if rest.is_empty() {
            return Err(fault(rest));
        }
        self.line = line;
        while !rest.is_empty() {
            let (key, value, after) = setting(rest).ok_or_else(|| fault(rest))?;
            match key {
                "weight" if self.weight.is_none() => {
                    let weight: u32 = value.parse().map_err(|_| fault(rest))?;
                    self.weight = Some(weight);
                    if weight == 0 {
                        return Err(Kind::Weight);
                    }
                }
                "label" if self.label.is_none() && !value.is_empty() => {
                    self.label = Some(value.to_owned());
                }
                _ => return Err(fault(rest)),
            }
            rest = after.trim_start();
        }
        Ok(())
    }
}

/// Splits `key=value` or `key="a value"` off the front.
fn setting(text: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = text.split_once('=')?;
    if let Some(quoted) = rest.strip_prefix('"') {
        let (value, after) = quoted.split_once('"')?;
        let apart = after.is_empty() || after.starts_with(char::is_whitespace);
        return apart.then_some((key, value, after));
    }
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((key, &rest[..end], &rest[end..]))
}
