//! The part of Thrift's compact protocol that Parquet's headers are written in.

/// What a field holds, as the protocol numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    True = 1,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct that is being written; its fields come in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: i16,
}

impl Struct {
    pub(super) fn truth(mut self, number: i16) -> Self {
        self.field(number, Kind::True);
        self
    }

    pub(super) fn i32(mut self, number: i16, value: i32) -> Self {
        self.field(number, Kind::I32);
        varint(&mut self.bytes, zigzag(value.into()));
        self
    }

    pub(super) fn i64(mut self, number: i16, value: u64) -> Self {
        self.field(number, Kind::I64);
        varint(&mut self.bytes, zigzag(i64::try_from(value).unwrap_or(i64::MAX)));
        self
    }

    pub(super) fn text(mut self, number: i16, text: &str) -> Self {
        self.field(number, Kind::Binary);
        binary(&mut self.bytes, text);
        self
    }

    pub(super) fn texts(mut self, number: i16, texts: &[&str]) -> Self {
        self.list(number, Kind::Binary, texts.len());
        texts.iter().for_each(|text| binary(&mut self.bytes, text));
        self
    }

    pub(super) fn i32s(mut self, number: i16, values: &[i32]) -> Self {
        self.list(number, Kind::I32, values.len());
        values.iter().for_each(|value| varint(&mut self.bytes, zigzag((*value).into())));
        self
    }

    pub(super) fn one(mut self, number: i16, value: Self) -> Self {
        self.field(number, Kind::Struct);
        self.bytes.extend(value.end());
        self
    }

    pub(super) fn many(mut self, number: i16, values: impl IntoIterator<Item = Self>) -> Self {
        let values: Vec<Self> = values.into_iter().collect();
        self.list(number, Kind::Struct, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value.end()));
        self
    }

    /// Its bytes.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(&mut self, number: i16, kind: Kind) {
        let step = number - self.last;
        self.last = number;
        match u8::try_from(step) {
            Ok(step @ 1..=15) => self.bytes.push(step << 4 | kind as u8),
            _ => {
                self.bytes.push(kind as u8);
                varint(&mut self.bytes, zigzag(number.into()));
            }
        }
    }

    fn list(&mut self, number: i16, kind: Kind, length: usize) {
        self.field(number, Kind::List);
        match u8::try_from(length) {
            Ok(length @ 0..=14) => self.bytes.push(length << 4 | kind as u8),
            _ => {
                self.bytes.push(0xf0 | kind as u8);
                varint(&mut self.bytes, length as u64);
            }
        }
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Seven bits a byte, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lists_and_structs_are_as_the_protocol_has_them() {
        let inner = Struct::default().truth(1);
        let bytes = Struct::default().i32(1, -2).i64(18, 300).texts(19, &["ab"]).one(20, inner);
        let expected: [&[u8]; 5] = [
            &[0x15, 3],
            &[0x06, 36, 0xd8, 0x04],
            &[0x19, 0x18, 2, b'a', b'b'],
            &[0x1c, 0x11, 0],
            &[0],
        ];
        assert_eq!(bytes.end(), expected.concat());
        let long = Struct::default().i32s(1, &[0; 15]).end();
        assert_eq!(long[..3], [0x19, 0xf5, 15]);
    }
}
