//! The URIs of a command line: in turn, all at the origin of the first or of `-B`.

use std::io::Read;

use gake_wire::{Location, Scheme};

use crate::flags::Parsed;
use gake_run::body_file;
use gake_session::console::stdin;

/// The most URIs: each is a request in memory.
const URIS_MAX: usize = 1_000_000;

/// The URIs of the command line, or of the file that `-i` names.
///
/// # Errors
/// When there are none or the file cannot be read.
pub fn listed(parsed: &Parsed) -> Result<Vec<String>, String> {
    let uris = match parsed.last("i") {
        Some(path) => lines(path)?.into_iter().map(|(_, line)| line).collect(),
        None => parsed.operands.clone(),
    };
    match uris.len() {
        0 => Err("no URI given".to_owned()),
        _ => Ok(uris),
    }
}

/// The lines of a file that are not empty, or of standard input for `-`, with their numbers.
///
/// # Errors
/// When they cannot be read, are not text or are too many.
pub fn lines(path: &str) -> Result<Vec<(usize, String)>, String> {
    let bytes = match path {
        "-" => {
            let mut bytes = Vec::new();
            let limit = gake_run::BODY_BYTES_MAX;
            stdin().take(limit).read_to_end(&mut bytes).map(|_| bytes)
        }
        path => body_file(path),
    };
    let bytes = bytes.map_err(|error| format!("{path} cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text"))?;
    let numbered = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let lines: Vec<_> = numbered.map(|(number, line)| (number, line.to_owned())).collect();
    match lines.len() {
        0..=URIS_MAX => Ok(lines),
        more => Err(format!("{path}: {more} URIs are more than the {URIS_MAX} that are held")),
    }
}

/// The URIs with the scheme, host and port of `base`, or without it of the first URI; and the Unix
/// socket, if `base` is one.
///
/// # Errors
/// When one is not a valid URI.
pub fn at_one_origin(
    uris: &[String],
    base: Option<&str>,
) -> Result<(Vec<String>, Option<String>), String> {
    let parse = |uri: &str| Location::parse(uri).map_err(|error| error.to_string());
    let (base, unix_socket) = match base.map(|base| (base, base.strip_prefix("unix:"))) {
        Some((_, Some(path))) => (None, Some(path.to_owned())),
        Some((base, None)) => (Some(parse(base)?), None),
        None => (None, None),
    };
    let origin = match &base {
        Some(base) => base.clone(),
        None => match uris.first() {
            Some(first) if first.contains("://") => parse(first)?,
            Some(first) => return Err(format!("invalid URI: {first}")),
            None => return Err("no URI given".to_owned()),
        },
    };
    let scheme = if origin.scheme == Scheme::Https { "https" } else { "http" };
    let before = format!("{scheme}://{}", origin.authority());
    let placed = uris.iter().map(|uri| match uri.starts_with('/') {
        true => Ok(format!("{before}{uri}")),
        false => parse(uri).map(|location| format!("{before}{}", location.target)),
    });
    Ok((placed.collect::<Result<_, _>>()?, unix_socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(uris: &[&str], base: Option<&str>) -> Result<(Vec<String>, Option<String>), String> {
        let uris: Vec<_> = uris.iter().map(|uri| (*uri).to_owned()).collect();
        at_one_origin(&uris, base)
    }

    #[test]
    fn the_first_uri_sets_the_origin_of_all() {
        let (uris, socket) = placed(&["https://a:1/x?y", "http://b/z", "/w"], None).unwrap();
        assert_eq!(uris, ["https://a:1/x?y", "https://a:1/z", "https://a:1/w"]);
        assert_eq!(socket, None);
        let (uris, _) = placed(&["https://a/x", "/w"], Some("http://c:9")).unwrap();
        assert_eq!(uris, ["http://c:9/x", "http://c:9/w"]);
        let (uris, socket) = placed(&["http://a/x"], Some("unix:/run/s")).unwrap();
        assert_eq!((uris, socket.as_deref()), (vec!["http://a/x".to_owned()], Some("/run/s")));
        assert!(placed(&["a/x"], None).unwrap_err().contains("invalid URI: a/x"));
    }
}
