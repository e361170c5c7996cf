//! RESP, the protocol of Redis in version 2.

use gake_script::user::HeapCharge;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The depth of arrays in arrays.
const DEPTH_MAX: usize = 32;

/// Bytes of a line: errors have the longest.
const LINE_MAX: u64 = 64 << 10;

/// Bytes of a text, by the protocol.
const TEXT_MAX: usize = 512 << 20;

/// Elements of an array, by the protocol.
const ARRAY_MAX: usize = 1 << 20;

/// A reply of the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    Text(Vec<u8>),
    Integer(i64),
    Absent,
    Error(String),
    Array(Vec<Reply>),
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadError {
    /// Go's message.
    Lost(String),
    /// It does not fit into the script's heap.
    NoMemory,
}

/// A value, or the start of an array.
enum Item {
    Value(Reply),
    Array(usize),
}

/// The bytes of a command.
pub(super) fn encoded<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Reads a reply, and adds its bytes to a charge.
pub(super) async fn read(
    input: &mut (impl AsyncBufRead + Unpin),
    charge: &mut HeapCharge,
) -> Result<Reply, ReadError> {
    // Arrays whose elements are not all read, the outermost first.
    let mut open: Vec<(usize, Vec<Reply>)> = Vec::new();
    loop {
        let mut reply = match item(input, charge).await? {
            Item::Array(count) if count > 0 => {
                if open.len() == DEPTH_MAX {
                    return Err(ReadError::Lost("redis: reply is nested too deeply".to_owned()));
                }
                open.push((count, Vec::new()));
                continue;
            }
            Item::Array(_) => Reply::Array(Vec::new()),
            Item::Value(reply) => reply,
        };
        loop {
            let Some((count, elements)) = open.last_mut() else { return Ok(reply) };
            elements.push(reply);
            if elements.len() < *count {
                break;
            }
            reply = Reply::Array(open.pop().map_or_else(Vec::new, |(_, elements)| elements));
        }
    }
}

async fn item(
    input: &mut (impl AsyncBufRead + Unpin),
    charge: &mut HeapCharge,
) -> Result<Item, ReadError> {
    let line = line(input).await?;
    let (kind, rest) = line.split_first().ok_or_else(|| invalid(&line))?;
    let text = || String::from_utf8_lossy(rest).into_owned();
    if !charge.grow(size_of::<Reply>() + rest.len()) {
        return Err(ReadError::NoMemory);
    }
    Ok(Item::Value(match kind {
        b'+' => Reply::Text(rest.to_vec()),
        b'-' => Reply::Error(text()),
        b':' => Reply::Integer(text().parse().map_err(|_| invalid(&line))?),
        b'$' if rest == b"-1" => Reply::Absent,
        b'*' if rest == b"-1" => Reply::Absent,
        b'_' => Reply::Absent,
        b'$' => {
            let length = length(rest, TEXT_MAX).ok_or_else(|| invalid(&line))?;
            if !charge.grow(length) {
                return Err(ReadError::NoMemory);
            }
            let mut bytes = Vec::new();
            input.take(length as u64 + 2).read_to_end(&mut bytes).await.map_err(|e| lost(&e))?;
            if bytes.len() < length + 2 {
                return Err(ReadError::Lost("EOF".to_owned()));
            }
            bytes.truncate(length);
            Reply::Text(bytes)
        }
        b'*' => {
            let count = length(rest, ARRAY_MAX).ok_or_else(|| invalid(&line))?;
            return Ok(Item::Array(count));
        }
        _ => return Err(invalid(&line)),
    }))
}

/// A line without its end.
async fn line(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, ReadError> {
    let mut line = Vec::new();
    input.take(LINE_MAX).read_until(b'\n', &mut line).await.map_err(|e| lost(&e))?;
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(text.to_vec()),
        None if line.is_empty() => Err(ReadError::Lost("EOF".to_owned())),
        None => Err(invalid(&line)),
    }
}

fn length(digits: &[u8], max: usize) -> Option<usize> {
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (length <= max).then_some(length)
}

fn invalid(line: &[u8]) -> ReadError {
    let start = String::from_utf8_lossy(&line[..line.len().min(100)]).into_owned();
    ReadError::Lost(format!("redis: invalid reply: {start:?}"))
}

/// Go's message for a read or write that failed.
pub(super) fn lost(error: &std::io::Error) -> ReadError {
    use std::io::ErrorKind;
    ReadError::Lost(match error.kind() {
        ErrorKind::UnexpectedEof => "EOF".to_owned(),
        ErrorKind::ConnectionReset => "read: connection reset by peer".to_owned(),
        ErrorKind::BrokenPipe => "write: broken pipe".to_owned(),
        _ => error.to_string(),
    })
}
