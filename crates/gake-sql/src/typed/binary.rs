//! Values of MySQL's rows, as text or binary, and arguments.

use super::SqlValue;
use crate::mysql::{NULL, number, unexpected};
use crate::reply::ReplyReader;

const TINY: u8 = 0x01;
const SHORT: u8 = 0x02;
const LONG: u8 = 0x03;
const FLOAT: u8 = 0x04;
const DOUBLE: u8 = 0x05;
const NULL_TYPE: u8 = 0x06;
const TIMESTAMP: u8 = 0x07;
const LONGLONG: u8 = 0x08;
const INT24: u8 = 0x09;
const DATE: u8 = 0x0a;
const TIME: u8 = 0x0b;
const DATETIME: u8 = 0x0c;
const YEAR: u8 = 0x0d;
const NEW_DATE: u8 = 0x0e;
const STRING: u8 = 0xfe;

const UNSIGNED: u64 = 0x20;

/// A column of a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    kind: u8,
    is_unsigned: bool,
    decimals: usize,
}

impl Column {
    pub(super) fn read(packet: &[u8]) -> Result<Self, String> {
        let mut reply = ReplyReader(packet);
        // Catalog, schema, table, its original name.
        for _ in 0..4 {
            text(&mut reply)?;
        }
        let name = String::from_utf8_lossy(text(&mut reply)?).into_owned();
        text(&mut reply)?;
        // The length of the rest, the character set, the width.
        reply.bytes(7)?;
        let (kind, flags) = (reply.byte()?, reply.little(2)?);
        let decimals = usize::from(reply.byte()?);
        Ok(Self { name, kind, is_unsigned: flags & UNSIGNED != 0, decimals })
    }

    /// A value that the server has written as text.
    fn of_text(&self, bytes: &[u8]) -> SqlValue {
        let text = || std::str::from_utf8(bytes).ok();
        let value = match self.kind {
            TINY | SHORT | LONG | INT24 | YEAR => integer(text),
            LONGLONG if self.is_unsigned => {
                let number: Option<u64> = text().and_then(|text| text.parse().ok());
                number.map(unsigned)
            }
            LONGLONG => integer(text),
            FLOAT => {
                let number: Option<f32> = text().and_then(|text| text.parse().ok());
                number.map(|number| SqlValue::Float(f64::from(number)))
            }
            DOUBLE => text().and_then(|text| text.parse().ok()).map(SqlValue::Float),
            TIMESTAMP | DATE | DATETIME | NEW_DATE => {
                text().map(|text| SqlValue::Time(text.to_owned()))
            }
            _ => None,
        };
        value.unwrap_or_else(|| SqlValue::Bytes(bytes.to_vec()))
    }

    /// The next binary value.
    fn of_binary(&self, reply: &mut ReplyReader<'_>) -> Result<SqlValue, String> {
        let size = match self.kind {
            TINY => 1,
            SHORT | YEAR => 2,
            LONG | INT24 => 4,
            LONGLONG => 8,
            FLOAT => {
                let bits = reply.little(4)? as u32;
                return Ok(SqlValue::Float(f64::from(f32::from_bits(bits))));
            }
            DOUBLE => return Ok(SqlValue::Float(f64::from_bits(reply.little(8)?))),
            TIMESTAMP | DATE | DATETIME | NEW_DATE => {
                return date_time(reply, self).map(SqlValue::Time);
            }
            TIME => return time(reply, self.decimals).map(|text| SqlValue::Bytes(text.into())),
            _ => return Ok(SqlValue::Bytes(text(reply)?.to_vec())),
        };
        let number = reply.little(size)?;
        if self.is_unsigned {
            // Go's driver has no number for it here, unlike in rows of texts.
            let text = || SqlValue::Bytes(number.to_string().into_bytes());
            return Ok(i64::try_from(number).map_or_else(|_| text(), SqlValue::Integer));
        }
        let unused = 64 - 8 * size as u32;
        Ok(SqlValue::Integer((number << unused) as i64 >> unused))
    }
}

fn integer<'a>(text: impl Fn() -> Option<&'a str>) -> Option<SqlValue> {
    text().and_then(|text| text.parse().ok()).map(SqlValue::Integer)
}

fn unsigned(number: u64) -> SqlValue {
    i64::try_from(number).map_or(SqlValue::Unsigned(number), SqlValue::Integer)
}

/// Bytes with their length before them.
fn text<'a>(reply: &mut ReplyReader<'a>) -> Result<&'a [u8], String> {
    let length = number(reply)?;
    reply.bytes(usize::try_from(length).map_err(|_| unexpected())?)
}

/// A row whose values are texts.
pub(super) fn text_row(packet: &[u8], columns: &[Column]) -> Result<Vec<SqlValue>, String> {
    let mut reply = ReplyReader(packet);
    let value = |column: &Column| {
        if reply.0.first() == Some(&NULL) {
            reply.byte()?;
            return Ok(SqlValue::Null);
        }
        text(&mut reply).map(|bytes| column.of_text(bytes))
    };
    columns.iter().map(value).collect()
}

/// A row of a prepared statement.
pub(super) fn binary_row(packet: &[u8], columns: &[Column]) -> Result<Vec<SqlValue>, String> {
    let mut reply = ReplyReader(packet);
    reply.byte()?;
    let nulls = reply.bytes((columns.len() + 9) / 8)?;
    let value = |(index, column): (usize, &Column)| {
        let bit = index + 2;
        match nulls[bit / 8] & 1 << (bit % 8) {
            0 => column.of_binary(&mut reply),
            _ => Ok(SqlValue::Null),
        }
    };
    columns.iter().enumerate().map(value).collect()
}

/// A date, with a time unless the column is a date's, as the server would write it.
fn date_time(reply: &mut ReplyReader<'_>, column: &Column) -> Result<String, String> {
    let length = reply.byte()?;
    let mut rest = ReplyReader(reply.bytes(usize::from(length))?);
    let mut next = |size: usize| if rest.0.is_empty() { Ok(0) } else { rest.little(size) };
    let (year, month, day) = (next(2)?, next(1)?, next(1)?);
    let date = format!("{year:04}-{month:02}-{day:02}");
    if matches!(column.kind, DATE | NEW_DATE) {
        return Ok(date);
    }
    let (hour, minute, second, micros) = (next(1)?, next(1)?, next(1)?, next(4)?);
    let fraction = fraction(micros, column.decimals);
    Ok(format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}"))
}

fn time(reply: &mut ReplyReader<'_>, decimals: usize) -> Result<String, String> {
    let length = reply.byte()?;
    let mut rest = ReplyReader(reply.bytes(usize::from(length))?);
    let mut next = |size: usize| if rest.0.is_empty() { Ok(0) } else { rest.little(size) };
    let (is_negative, days, hours) = (next(1)? != 0, next(4)?, next(1)?);
    let (minute, second, micros) = (next(1)?, next(1)?, next(4)?);
    let sign = if is_negative { "-" } else { "" };
    let (hours, fraction) = (days * 24 + hours, fraction(micros, decimals));
    Ok(format!("{sign}{hours:02}:{minute:02}:{second:02}{fraction}"))
}

fn fraction(micros: u64, decimals: usize) -> String {
    match decimals {
        1..=6 => format!(".{}", &format!("{micros:06}")[..decimals]),
        _ => String::new(),
    }
}

/// The payload that executes a prepared statement.
pub(super) fn argument_bytes(id: u32, arguments: &[SqlValue]) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    // No cursor, one execution.
    bytes.extend([0, 1, 0, 0, 0]);
    let mut nulls = vec![0; arguments.len().div_ceil(8)];
    for (index, argument) in arguments.iter().enumerate() {
        if *argument == SqlValue::Null {
            nulls[index / 8] |= 1 << (index % 8);
        }
    }
    bytes.extend(nulls);
    // The types follow.
    bytes.push(1);
    for argument in arguments {
        bytes.extend(match argument {
            SqlValue::Null => [NULL_TYPE, 0],
            SqlValue::Integer(_) => [LONGLONG, 0],
            SqlValue::Unsigned(_) => [LONGLONG, 0x80],
            SqlValue::Float(_) => [DOUBLE, 0],
            SqlValue::Boolean(_) => [TINY, 0],
            SqlValue::Text(_) | SqlValue::Bytes(_) | SqlValue::Time(_) => [STRING, 0],
        });
    }
    for argument in arguments {
        match argument {
            SqlValue::Null => {}
            SqlValue::Integer(number) => bytes.extend(number.to_le_bytes()),
            SqlValue::Unsigned(number) => bytes.extend(number.to_le_bytes()),
            SqlValue::Float(number) => bytes.extend(number.to_le_bytes()),
            SqlValue::Boolean(truth) => bytes.push(u8::from(*truth)),
            SqlValue::Text(text) | SqlValue::Time(text) => put_text(&mut bytes, text.as_bytes()),
            SqlValue::Bytes(content) => put_text(&mut bytes, content),
        }
    }
    bytes
}

fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.push(0xfe);
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: u8, is_unsigned: bool, decimals: usize) -> Column {
        Column { name: "c".to_owned(), kind, is_unsigned, decimals }
    }

    #[test]
    fn definitions_of_columns_are_read() {
        let mut packet =
            b"\x03def\x01d\x01t\x01t\x02id\x02id\x0c\x3f\0\x0b\0\0\0\x03\x20\0\0\0\0".to_vec();
        let read = Column::read(&packet).unwrap();
        assert_eq!(read, Column { name: "id".to_owned(), ..column(LONG, true, 0) });
        packet.truncate(20);
        assert!(Column::read(&packet).is_err());
    }

    #[test]
    fn both_forms_of_a_row_have_the_same_values() {
        let columns = [
            column(LONG, false, 0),
            column(LONGLONG, true, 0),
            column(DOUBLE, false, 31),
            column(DATETIME, false, 3),
            column(DATE, false, 0),
            column(TIME, false, 0),
            column(0xfd, false, 0),
            column(LONG, false, 0),
        ];
        let text = b"\x02-7\x1418446744073709551615\x031.5\x172024-02-03 04:05:06.789\
            \x0a2024-02-03\x09-25:00:01\x03abc\xfb";
        let mut binary = vec![0, 0, 2];
        binary.extend((-7_i32).to_le_bytes());
        binary.extend(u64::MAX.to_le_bytes());
        binary.extend(1.5_f64.to_le_bytes());
        binary.extend([11, 0xe8, 7, 2, 3, 4, 5, 6]);
        binary.extend(789_000_u32.to_le_bytes());
        binary.extend([4, 0xe8, 7, 2, 3]);
        binary.extend([8, 1, 1, 0, 0, 0, 1, 0, 1]);
        binary.extend(b"\x03abc");
        let mut expected = text_row(text, &columns).unwrap();
        assert_eq!(expected[0], SqlValue::Integer(-7));
        assert_eq!(expected[1], SqlValue::Unsigned(u64::MAX));
        assert_eq!(expected[3], SqlValue::Time("2024-02-03 04:05:06.789".to_owned()));
        assert_eq!(expected[7], SqlValue::Null);
        expected[1] = SqlValue::Bytes(u64::MAX.to_string().into_bytes());
        assert_eq!(binary_row(&binary, &columns).unwrap(), expected);
        for cut in 0..binary.len() - 1 {
            let _ = binary_row(&binary[..cut], &columns);
        }
        assert!(text_row(&text[..9], &columns).is_err());
    }

    #[test]
    fn arguments_have_their_types() {
        let bytes = argument_bytes(7, &[SqlValue::Null, SqlValue::Boolean(true)]);
        assert_eq!(bytes, [7, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, NULL_TYPE, 0, TINY, 0, 1]);
    }
}
