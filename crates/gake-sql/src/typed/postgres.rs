//! PostgreSQL: texts without arguments by the simple protocol, others by the extended one, as
//! `lib/pq` does.

use super::{ResultSet, Room, SqlError, SqlValue, take_room};
use crate::postgres::{Postgres, go_error, message, unexpected};
use crate::reply::ReplyReader;
use crate::stream::SqlTransport;

/// Bytes of a message other than a row.
const MESSAGE_MAX: usize = 1 << 20;

/// The types whose values are not bytes, by their number.
mod oid {
    pub(super) const BOOL: u64 = 16;
    pub(super) const BYTEA: u64 = 17;
    pub(super) const CHAR: u64 = 18;
    pub(super) const INT8: u64 = 20;
    pub(super) const INT2: u64 = 21;
    pub(super) const INT4: u64 = 23;
    pub(super) const TEXT: u64 = 25;
    pub(super) const FLOAT4: u64 = 700;
    pub(super) const FLOAT8: u64 = 701;
    pub(super) const BPCHAR: u64 = 1042;
    pub(super) const VARCHAR: u64 = 1043;
    pub(super) const DATE: u64 = 1082;
    pub(super) const TIME: u64 = 1083;
    pub(super) const TIMESTAMP: u64 = 1114;
    pub(super) const TIMESTAMPTZ: u64 = 1184;
    pub(super) const TIMETZ: u64 = 1266;
}

/// The results of the messages so far.
#[derive(Default)]
struct Progress {
    result: ResultSet,
    /// The types of the columns of the current result.
    types: Vec<u64>,
    /// Whether its rows are kept, as the first result's are.
    is_kept: bool,
    /// The types of the parameters of a prepared statement.
    parameters: Vec<u64>,
    refused: Option<SqlError>,
}

impl<S: SqlTransport> Postgres<S> {
    pub(super) async fn execute(
        &mut self,
        statement: &str,
        arguments: &[SqlValue],
        room: Room<'_>,
    ) -> Result<ResultSet, SqlError> {
        if statement.contains('\0') {
            let why = "pq: a statement cannot contain the character 0".to_owned();
            return Err(SqlError::Refused(why));
        }
        let mut progress = Progress::default();
        if arguments.is_empty() {
            self.stream.send(&message(b'Q', format!("{statement}\0").as_bytes())).await?;
            self.until_ready(statement, &mut progress, room).await?;
            return progress.end();
        }
        let parse = message(b'P', format!("\0{statement}\0\0\0").as_bytes());
        self.stream.send(&[parse, message(b'D', b"S\0"), message(b'S', b"")].concat()).await?;
        self.until_ready(statement, &mut progress, room).await?;
        if let Some(refused) = progress.refused {
            return Err(refused);
        }
        let (given, wanted) = (arguments.len(), progress.parameters.len());
        if given != wanted {
            return Err(SqlError::Refused(format!(
                "pq: got {given} parameters but the statement requires {wanted}"
            )));
        }
        let bind = message(b'B', &bind(arguments, &progress.parameters));
        let execute = message(b'E', &[0; 5]);
        self.stream.send(&[bind, execute, message(b'S', b"")].concat()).await?;
        self.until_ready(statement, &mut progress, room).await?;
        progress.end()
    }

    /// Reads messages until the server is ready for the next command.
    async fn until_ready(
        &mut self,
        statement: &str,
        progress: &mut Progress,
        room: Room<'_>,
    ) -> Result<(), SqlError> {
        loop {
            let head = self.stream.take_bytes(5).await?;
            let mut reply = ReplyReader(&head);
            let (kind, length) = (reply.byte()?, reply.big(4)?);
            let length = usize::try_from(length).ok().and_then(|length| length.checked_sub(4));
            let length = length.ok_or_else(unexpected)?;
            match kind {
                b'D' => take_room(room, length, progress.types.len())?,
                _ if length > MESSAGE_MAX => return Err(unexpected().into()),
                _ => {}
            }
            let body = self.stream.take_unbounded(length).await?;
            let mut reply = ReplyReader(&body);
            match kind {
                b'Z' => return Ok(()),
                b'T' => progress.take_columns(&mut reply)?,
                b't' => {
                    for _ in 0..reply.big(2)? {
                        progress.parameters.push(reply.big(4)?);
                    }
                }
                b'D' if progress.is_kept => {
                    let row = row(&mut reply, &progress.types)?;
                    progress.result.rows.push(row);
                }
                b'C' => {
                    progress.result.affected = affected(reply.until_zero());
                    // The next result is another one.
                    progress.is_kept = false;
                }
                b'E' => progress.refused = Some(SqlError::Refused(go_error(reply, statement))),
                b'G' | b'H' | b'W' => {
                    return Err(SqlError::Lost("pq: COPY is not supported".to_owned()));
                }
                _ => {}
            }
        }
    }
}

impl Progress {
    fn take_columns(&mut self, reply: &mut ReplyReader<'_>) -> Result<(), String> {
        let mut names = Vec::new();
        self.types.clear();
        for _ in 0..reply.big(2)? {
            names.push(String::from_utf8_lossy(reply.until_zero()).into_owned());
            // The table and the column in it.
            reply.bytes(6)?;
            self.types.push(reply.big(4)?);
            // Size, modifier, format.
            reply.bytes(8)?;
        }
        self.is_kept = self.result.columns.is_empty();
        if self.is_kept {
            self.result.columns = names;
        }
        Ok(())
    }

    fn end(self) -> Result<ResultSet, SqlError> {
        self.refused.map_or(Ok(self.result), Err)
    }
}

fn row(reply: &mut ReplyReader<'_>, types: &[u64]) -> Result<Vec<SqlValue>, String> {
    let count = reply.big(2)? as usize;
    let value = |index: usize| {
        let length = reply.big(4)?;
        if length == u64::from(u32::MAX) {
            return Ok(SqlValue::Null);
        }
        let bytes = reply.bytes(length as usize)?;
        Ok(value(bytes, types.get(index).copied().unwrap_or_default()))
    };
    (0..count).map(value).collect()
}

/// A value by its type, as Go's driver converts it.
fn value(bytes: &[u8], kind: u64) -> SqlValue {
    let text = String::from_utf8_lossy(bytes);
    let value = match kind {
        oid::BOOL => Some(SqlValue::Boolean(bytes.first() == Some(&b't'))),
        oid::BYTEA => bytea(&text).map(SqlValue::Bytes),
        oid::INT2 | oid::INT4 | oid::INT8 => text.parse().ok().map(SqlValue::Integer),
        oid::FLOAT4 | oid::FLOAT8 => match &*text {
            "Infinity" => Some(SqlValue::Float(f64::INFINITY)),
            "-Infinity" => Some(SqlValue::Float(f64::NEG_INFINITY)),
            number => number.parse().ok().map(SqlValue::Float),
        },
        oid::CHAR | oid::TEXT | oid::BPCHAR | oid::VARCHAR => {
            Some(SqlValue::Text(text.into_owned()))
        }
        oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::TIMETZ => {
            Some(SqlValue::Time(text.into_owned()))
        }
        _ => None,
    };
    value.unwrap_or_else(|| SqlValue::Bytes(bytes.to_vec()))
}

/// Bytes in hexadecimal digits.
fn bytea(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let byte = |pair: &[u8]| {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
    };
    digits.chunks_exact(2).map(byte).collect()
}

/// The message that binds arguments to the unnamed statement; results are texts.
fn bind(arguments: &[SqlValue], types: &[u64]) -> Vec<u8> {
    let count = u16::try_from(arguments.len()).unwrap_or(u16::MAX).to_be_bytes();
    // No names, all arguments as texts.
    let mut bytes = vec![0, 0, 0, 0];
    bytes.extend(count);
    for (argument, kind) in arguments.iter().zip(types) {
        match written(argument, *kind) {
            None => bytes.extend(u32::MAX.to_be_bytes()),
            Some(text) => {
                bytes.extend(u32::try_from(text.len()).unwrap_or(0).to_be_bytes());
                bytes.extend(text);
            }
        }
    }
    bytes.extend([0, 0]);
    bytes
}

/// An argument as text.
fn written(argument: &SqlValue, kind: u64) -> Option<Vec<u8>> {
    let bytea = |bytes: &[u8]| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("\\x{digits}").into_bytes()
    };
    Some(match argument {
        SqlValue::Null => return None,
        SqlValue::Integer(number) => number.to_string().into_bytes(),
        SqlValue::Unsigned(number) => number.to_string().into_bytes(),
        SqlValue::Float(number) if number.is_infinite() => {
            let sign = if *number < 0.0 { "-" } else { "+" };
            format!("{sign}Inf").into_bytes()
        }
        SqlValue::Float(number) => number.to_string().into_bytes(),
        SqlValue::Boolean(truth) => truth.to_string().into_bytes(),
        SqlValue::Text(text) if kind == oid::BYTEA => bytea(text.as_bytes()),
        SqlValue::Bytes(bytes) if kind == oid::BYTEA => bytea(bytes),
        SqlValue::Text(text) | SqlValue::Time(text) => text.clone().into_bytes(),
        SqlValue::Bytes(bytes) => bytes.clone(),
    })
}

/// The rows of a command, from its tag, such as `INSERT 0 4`.
fn affected(tag: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(tag);
    let last = tag.rsplit(' ').next().unwrap_or_default();
    last.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_types_of_gos_driver() {
        for (bytes, kind, expected) in [
            (&b"42"[..], oid::INT4, SqlValue::Integer(42)),
            (b"t", oid::BOOL, SqlValue::Boolean(true)),
            (b"1.5", oid::FLOAT8, SqlValue::Float(1.5)),
            (b"a", oid::VARCHAR, SqlValue::Text("a".to_owned())),
            (b"\\x00ff", oid::BYTEA, SqlValue::Bytes(vec![0, 255])),
            // A number of any length, and others.
            (b"1.10", 1700, SqlValue::Bytes(b"1.10".to_vec())),
            (b"2024-01-02", oid::DATE, SqlValue::Time("2024-01-02".to_owned())),
        ] {
            assert_eq!(value(bytes, kind), expected);
        }
    }

    #[test]
    fn arguments_are_texts() {
        let arguments = [SqlValue::Null, SqlValue::Integer(7), SqlValue::Bytes(vec![1])];
        let bytes = bind(&arguments, &[23, 23, oid::BYTEA]);
        let expected = b"\0\0\0\0\0\x03\xff\xff\xff\xff\0\0\0\x017\0\0\0\x04\\x01\0\0";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn errors_are_those_of_gos_driver() {
        let error = |statement: &str, position: &str| {
            let fields = format!("SERROR\0C42P01\0Mno such table\0P{position}\0\0");
            go_error(ReplyReader(fields.as_bytes()), statement)
        };
        assert_eq!(error("SELECT x", "8"), "pq: no such table at column 8 (42P01)");
        assert_eq!(error("SELECT\n x", "9"), "pq: no such table at position 2:2 (42P01)");
        assert_eq!(affected(b"INSERT 0 4"), 4);
        assert_eq!(affected(b"CREATE TABLE"), 0);
    }
}
