//! A backend that takes requests in one framing only, byte by byte as RFC 9112 has it, and
//! panics at anything else: what it says a lenient server could read in another way.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// What marks a copy; it is left out of what is kept.
const MARKER: &str = "x-gake-shadow";

/// A request as it came, but for the marker and for where its chunks were cut.
#[derive(PartialEq, Eq)]
pub struct Request {
    head: Vec<u8>,
    body: Vec<u8>,
    trailers: Vec<u8>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { head, body, trailers } = self;
        write!(f, "{} | {} | {}", head.escape_ascii(), body.escape_ascii(), trailers.escape_ascii())
    }
}

/// What came to a backend and was not taken yet.
#[derive(Default)]
pub struct Seen {
    pub requests: Vec<Request>,
    /// Whole requests since the start.
    pub whole: u64,
    /// Requests whose body broke off, since the start.
    pub cut: u64,
}

/// A backend with a thread a connection.
pub struct Backend {
    pub addr: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Backend {
    /// Says `200 hello` to everything.
    pub fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("its address");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(name, stream, &kept));
            }
        });
        Self { addr, seen }
    }

    /// What came.
    pub fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        lock(&self.seen)
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(name: &str, mut stream: TcpStream, seen: &Mutex<Seen>) {
    let mut buffer = Vec::new();
    let mut piece = [0; 65536];
    let wrong = |fault: &str, bytes: &[u8]| -> ! {
        panic!("{name}: {fault}: {}", bytes.escape_ascii());
    };
    loop {
        let next = next(name, &buffer).unwrap_or_else(|fault| wrong(fault, &buffer));
        if let Next::Whole(request, length) = next {
            buffer.drain(..length);
            let is_head = request.head.starts_with(b"HEAD ");
            let mut seen = lock(seen);
            seen.requests.push(request);
            seen.whole += 1;
            drop(seen);
            let body = if is_head { "" } else { "hello" };
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
            continue;
        }
        match stream.read(&mut piece) {
            Ok(read @ 1..) => buffer.extend_from_slice(&piece[..read]),
            _ if buffer.is_empty() => return,
            _ if next == Next::Body => {
                lock(seen).cut += 1;
                return;
            }
            _ => wrong("leftovers", &buffer),
        }
    }
}

/// What a connection's bytes begin with.
#[derive(PartialEq)]
enum Next {
    /// A head that has not ended.
    Head,
    /// A body that has not ended.
    Body,
    /// A request, of this many bytes.
    Whole(Request, usize),
}

enum Framing {
    Length(usize),
    Chunked,
}

fn next(name: &str, bytes: &[u8]) -> Result<Next, &'static str> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(Next::Head);
    };
    let mut lines = lines(&bytes[..end])?.into_iter();
    let head = lines.next().unwrap_or_default();
    request_line(head)?;
    let mut head = head.to_vec();
    let (framing, markers) = headers(lines, &mut head)?;
    if markers != usize::from(name == "shadow") {
        return Err("a marker that is not the proxy's");
    }
    let body = &bytes[end + 4..];
    let found = match framing {
        Framing::Length(length) if body.len() < length => None,
        Framing::Length(length) => Some((body[..length].to_vec(), Vec::new(), length)),
        Framing::Chunked => chunks(body)?,
    };
    Ok(match found {
        None => Next::Body,
        Some((body, trailers, length)) => {
            Next::Whole(Request { head, body, trailers }, end + 4 + length)
        }
    })
}

/// Lines that end in CR LF and hold neither.
fn lines(bytes: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = lines.len() - 1;
    for line in &mut lines[..last] {
        *line = line.strip_suffix(b"\r").ok_or("a bare LF")?;
    }
    if lines.iter().any(|line| line.contains(&b'\r')) { Err("a bare CR") } else { Ok(lines) }
}

fn request_line(line: &[u8]) -> Result<(), &'static str> {
    let parts: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, b"HTTP/1.1"] = parts[..] else { return Err("no request line") };
    let visible = target.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    if !is_token(method) {
        Err("no method")
    } else if !(visible && (target.starts_with(b"/") || target == b"*")) {
        Err("no target")
    } else {
        Ok(())
    }
}

/// Checks headers, adds them to `kept` without the marker and the backend's own host, and says what
/// framing they tell and how many markers there were.
fn headers<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    kept: &mut Vec<u8>,
) -> Result<(Framing, usize), &'static str> {
    let (mut hosts, mut markers, mut length, mut chunked) = (0, 0, None, false);
    for line in lines {
        let (name, value) = field(line)?;
        match name.as_str() {
            "host" => hosts += 1,
            "content-length" => {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                let said = digits.parse().ok().filter(|_| plain).ok_or("a strange length")?;
                if length.replace(said).is_some() {
                    return Err("two lengths");
                }
            }
            "transfer-encoding" if chunked => return Err("two codings"),
            "transfer-encoding" if value != b"chunked" => return Err("a strange coding"),
            "transfer-encoding" => chunked = true,
            _ => {}
        }
        if name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            return Err("a name that servers confuse");
        }
        markers += usize::from(name == MARKER);
        // Who says no host gets the backend's own.
        let own = name == "host" && value.starts_with(b"127.0.0.1:");
        if name != MARKER && !own {
            kept.extend_from_slice(b"\r\n");
            kept.extend_from_slice(line);
        }
    }
    match (hosts, length, chunked) {
        (0 | 2.., ..) => Err("no host, or two"),
        (_, Some(_), true) => Err("a length and a coding"),
        (_, _, true) => Ok((Framing::Chunked, markers)),
        (_, length, false) => Ok((Framing::Length(length.unwrap_or(0)), markers)),
    }
}

/// A header's name in lower case, and its value.
fn field(line: &[u8]) -> Result<(String, &[u8]), &'static str> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or("a header without a colon")?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if !is_token(name) {
        // A folded line has a blank there.
        return Err("no header's name");
    }
    if value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return Err("a control character");
    }
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value))
}

fn is_token(name: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(fits)
}

/// The body and the trailers of chunks, and their length with framing; `None` when they have not
/// ended.
#[allow(clippy::type_complexity, reason = "three things once, which the caller names")]
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>, usize)>, &'static str> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = &bytes[at..];
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            let size = rest.strip_suffix(b"\r").unwrap_or(rest);
            let plain = size.len() <= 8 && size.iter().all(u8::is_ascii_hexdigit);
            return if plain { Ok(None) } else { Err("a strange chunk") };
        };
        let plain = (1..=8).contains(&end) && rest[..end].iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(&rest[..end]).ok().filter(|_| plain);
        let size = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let size = size.ok_or("a strange chunk")?;
        at += end + 2;
        if size == 0 {
            break;
        }
        let Some(data) = bytes.get(at..at + size) else { return Ok(None) };
        body.extend_from_slice(data);
        at += size;
        match bytes.get(at..at + 2) {
            Some(b"\r\n") => at += 2,
            Some(_) => return Err("a chunk that is longer than it said"),
            None => return Ok(None),
        }
    }
    let rest = &bytes[at..];
    if rest.starts_with(b"\r\n") {
        return Ok(Some((body, Vec::new(), at + 2)));
    }
    let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    for line in lines(&rest[..end])? {
        let (name, _) = field(line)?;
        if ["content-length", "transfer-encoding", "host"].contains(&name.as_str()) {
            return Err("a trailer about the framing");
        }
        if name == MARKER || name.contains('_') {
            return Err("a marker behind the body");
        }
    }
    Ok(Some((body, rest[..end].to_vec(), at + end + 4)))
}
