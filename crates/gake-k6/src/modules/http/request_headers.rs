//! The headers of a request as Go's client stores and writes them: one for each canonical name.

use std::collections::HashMap;

use gake_go::cookies::is_token;

/// Headers that the client itself writes.
const OWN: [&str; 5] = ["Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer"];

/// Methods that usually have no body.
const BODILESS: [&str; 6] = ["GET", "HEAD", "DELETE", "OPTIONS", "PROPFIND", "SEARCH"];

/// A name as Go writes it: `x-api-KEY` is `X-Api-Key`. Invalid names stay unchanged.
pub(crate) fn canonical(name: &str) -> String {
    if !is_token(name) {
        return name.to_owned();
    }
    let mut canonical = String::with_capacity(name.len());
    let mut upper = true;
    for c in name.chars() {
        canonical.push(if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
        upper = c == '-';
    }
    canonical
}

/// Sets a header; the last value of a name wins.
pub(crate) fn set(headers: &mut Vec<(String, String)>, name: &str, value: String) {
    let name = canonical(name);
    match headers.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => headers.push((name, value)),
    }
}

/// Sets many headers in linear time, for a script decides how many.
pub(crate) fn set_all(headers: &mut Vec<(String, String)>, own: Vec<(String, String)>) {
    /// More of them are found by a table.
    const FEW: usize = 32;
    if own.len() <= FEW {
        own.into_iter().for_each(|(name, value)| set(headers, &name, value));
        return;
    }
    let known = headers.iter().enumerate().map(|(at, (name, _))| (name.clone(), at));
    let mut places: HashMap<String, usize> = known.collect();
    for (name, value) in own {
        let name = canonical(&name);
        match places.get(&name) {
            Some(at) => headers[*at].1 = value,
            None => {
                places.insert(name.clone(), headers.len());
                headers.push((name, value));
            }
        }
    }
}

/// The value of a header, by its canonical name.
pub(crate) fn get<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Why headers cannot be sent, in Go's words.
pub(crate) fn invalid(headers: &[(String, String)]) -> Option<String> {
    headers.iter().find_map(|(name, value)| match () {
        () if name.is_empty() || !is_token(name) => {
            Some(format!("net/http: invalid header field name {name:?}"))
        }
        () if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') => {
            Some(format!("net/http: invalid header field value for {name:?}"))
        }
        () => None,
    })
}

/// The headers of a request in Go's order. `length` is the length of its body, `host` the default
/// `Host`.
pub(crate) fn written(
    headers: &[(String, String)],
    (method, length): (&str, Option<usize>),
    host: &str,
) -> Vec<(String, String)> {
    let host = get(headers, "Host").filter(|host| !host.is_empty()).unwrap_or(host);
    let mut written = vec![("Host".to_owned(), host.trim().to_owned())];
    // The client drops an empty `User-Agent`.
    let agent = get(headers, "User-Agent").unwrap_or_default();
    written.push(("User-Agent".to_owned(), agent.trim().to_owned()));
    match length {
        // As in Go, an empty body is chunked if the method usually has one.
        Some(0) if !BODILESS.contains(&method) => {
            written.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
        }
        Some(length) if length > 0 => {
            written.push(("Content-Length".to_owned(), length.to_string()));
        }
        _ if matches!(method, "POST" | "PUT" | "PATCH") => {
            written.push(("Content-Length".to_owned(), "0".to_owned()));
        }
        _ => {}
    }
    let mut rest: Vec<&(String, String)> =
        headers.iter().filter(|(name, _)| !OWN.contains(&name.as_str())).collect();
    rest.sort_by(|a, b| a.0.cmp(&b.0));
    let trimmed = |(name, value): &(String, String)| (name.clone(), value.trim().to_owned());
    written.extend(rest.into_iter().map(trimmed));
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        given.iter().for_each(|(name, value)| set(&mut headers, name, (*value).to_owned()));
        headers
    }

    #[test]
    fn names_that_differ_in_case_are_one_and_the_last_wins() {
        let all = headers(&[("x-api-KEY", "1"), ("host", "a"), ("X-API-Key", "2"), ("Host", "b")]);
        let expected = [("X-Api-Key", "2"), ("Host", "b")];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(canonical("a b-c"), "a b-c", "invalid names stay");
        assert_eq!(canonical("a--b"), "A--B");
    }

    #[test]
    fn many_headers_are_set_as_few_are() {
        let own = |count: usize| -> Vec<_> {
            let name = |at: usize| [format!("x-{}", at % 40), format!("X-{}", at % 25)];
            let name = |at: usize| name(at)[at % 2].clone();
            (0..count).map(|at| (name(at), at.to_string())).collect()
        };
        for count in [0, 1, 32, 33, 200] {
            let (mut all, mut one_by_one) = (headers(&[("X-3", "a")]), headers(&[("X-3", "a")]));
            set_all(&mut all, own(count));
            own(count).into_iter().for_each(|(name, value)| set(&mut one_by_one, &name, value));
            assert_eq!(all, one_by_one, "{count}");
        }
    }

    #[test]
    fn headers_are_written_in_gos_order_and_trimmed() {
        let all = headers(&[
            ("x-b", " 2 "),
            ("Accept", "*/*"),
            ("content-length", "undefined"),
            ("transfer-encoding", "chunked"),
            ("User-Agent", "me"),
        ]);
        let lines = written(&all, ("POST", Some(3)), "h:1").into_iter();
        let lines: Vec<_> = lines.map(|(name, value)| format!("{name}: {value}")).collect();
        let expected =
            ["Host: h:1", "User-Agent: me", "Content-Length: 3", "Accept: */*", "X-B: 2"];
        assert_eq!(lines, expected);
        let framing = |method, length| written(&[], (method, length), "h").swap_remove(2);
        assert_eq!(framing("POST", Some(0)).1, "chunked");
        assert_eq!(framing("POST", None).1, "0");
        let own = written(&headers(&[("host", "other")]), ("GET", Some(0)), "h");
        assert_eq!(own[0].1, "other");
        assert_eq!(own.len(), 2, "a GET without a body has no length");
    }

    #[test]
    fn invalid_headers_are_refused_in_gos_words() {
        let why = invalid(&headers(&[("X-A", "1\r\nB: 2")])).unwrap();
        assert_eq!(why, "net/http: invalid header field value for \"X-A\"");
        let why = invalid(&headers(&[("a b", "1")])).unwrap();
        assert_eq!(why, "net/http: invalid header field name \"a b\"");
        assert_eq!(invalid(&headers(&[("X-A", "ä\t")])), None);
    }
}
