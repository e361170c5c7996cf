//! Responses for the property tests: valid by construction, or nearly so.

use proptest::collection::vec;
use proptest::prelude::*;

/// A response and its expected outcome.
#[derive(Debug, Clone)]
pub(super) struct Generated {
    pub(super) bytes: Vec<u8>,
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) keep_alive: bool,
    pub(super) closes: bool,
    pub(super) is_head: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Framing {
    Length,
    Chunked,
    Close,
}

fn line_end() -> impl Strategy<Value = &'static str> {
    prop_oneof![9 => Just("\r\n"), 1 => Just("\n")]
}

fn header() -> impl Strategy<Value = String> {
    ("X-[A-Za-z0-9!#$%&'*+.^_`|~-]{0,20}", "[ \t]{0,2}[ -~\u{e9}\t]{0,40}", line_end())
        .prop_map(|(name, value, end)| format!("{name}:{value}{end}"))
}

fn interim() -> impl Strategy<Value = String> {
    (prop_oneof![Just(100), 102..200_u16], vec(header(), 0..3), line_end()).prop_map(
        |(status, headers, end)| format!("HTTP/1.1 {status} x{end}{}{end}", headers.concat()),
    )
}

fn chunks(body: &[u8], sizes: &[usize], extension: &str, trailers: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut rest, mut sizes) = (body, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |&n| n.clamp(1, rest.len()));
        out.extend(format!("{size:x}{extension}\r\n").bytes());
        out.extend_from_slice(&rest[..size]);
        out.extend(b"\r\n");
        rest = &rest[size..];
    }
    out.extend(format!("0{extension}\r\n{trailers}\r\n").bytes());
    out
}

prop_compose! {
    fn parts()(
        interim in vec(interim(), 0..3),
        // Sometimes more than FEW_HEADERS.
        headers in prop_oneof![9 => vec(header(), 0..6), 1 => vec(header(), 60..70)],
        status in prop_oneof![Just(200), Just(204), Just(304), 200..1000_u16],
        framing in prop_oneof![Just(Framing::Length), Just(Framing::Chunked), Just(Framing::Close)],
        connection in prop_oneof![Just(None), Just(Some("close")), Just(Some("Keep-Alive"))],
        http11 in any::<bool>(),
        is_head in prop::bool::weighted(0.1),
        body in vec(any::<u8>(), 0..300),
        sizes in vec(1..80_usize, 1..4),
        extension in prop_oneof![Just(""), Just(" "), Just(";a=\"b\"")],
        trailers in vec(header(), 0..3),
        end in line_end(),
    ) -> (Vec<String>, Vec<String>, (u16, Framing, Option<&'static str>, bool, bool),
          Vec<u8>, Vec<usize>, (&'static str, String, &'static str)) {
        (interim, headers, (status, framing, connection, http11, is_head), body, sizes,
         (extension, trailers.concat(), end))
    }
}

/// A response that is complete: by its framing, or, if `closes`, when the peer closes.
pub(super) fn response() -> impl Strategy<Value = Generated> {
    parts().prop_map(|(interim, headers, kind, body, sizes, (extension, trailers, end))| {
        let (status, framing, connection, http11, is_head) = kind;
        // A coding in HTTP/1.0 is a fault.
        let http11 = http11 || framing == Framing::Chunked;
        let bodyless = is_head || matches!(status, 204 | 304);
        let mut head = interim.concat();
        head += &format!("HTTP/1.{} {status} OK{end}{}", u8::from(http11), headers.concat());
        if let Some(option) = connection {
            head += &format!("Connection: x,{option}{end}");
        }
        let sent = match framing {
            Framing::Length => {
                head += &format!("Content-Length: {}{end}", body.len());
                body.clone()
            }
            Framing::Chunked => {
                head += &format!("Transfer-Encoding: Chunked{end}");
                chunks(&body, &sizes, extension, &trailers)
            }
            Framing::Close => body.clone(),
        };
        head += end;
        let mut bytes = head.into_bytes();
        if !bodyless {
            bytes.extend(sent);
        }
        let closes = !bodyless && framing == Framing::Close;
        let keep_alive = match connection {
            Some("close") => false,
            Some(_) => true,
            None => http11,
        };
        Generated {
            bytes,
            status,
            body: if bodyless { Vec::new() } else { body },
            keep_alive: keep_alive && !closes,
            closes,
            is_head,
        }
    })
}

/// A response with a few significant bytes overwritten, removed or added.
pub(super) fn damaged() -> impl Strategy<Value = Generated> {
    let byte = prop::sample::select(&b"\r\n\0 :;,0Aaf\tHx"[..]);
    let edit = (any::<prop::sample::Index>(), 0..3_u8, byte);
    (response(), vec(edit, 1..4)).prop_map(|(mut generated, edits)| {
        for (index, kind, byte) in edits {
            let bytes = &mut generated.bytes;
            match (kind, bytes.is_empty()) {
                (0, false) => {
                    let at = index.index(bytes.len());
                    bytes[at] = byte;
                }
                (1, false) => {
                    bytes.remove(index.index(bytes.len()));
                }
                _ => bytes.insert(index.index(bytes.len() + 1), byte),
            }
        }
        generated
    })
}
