//! The subset of Thrift's compact protocol for Parquet's headers.

use super::protobuf::{varint, zigzag};

/// The type of a field, with its number in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldType {
    True = 1,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// Writes a struct; fields must come in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct ThriftStruct {
    bytes: Vec<u8>,
    last: i16,
}

impl ThriftStruct {
    pub(super) fn truth(mut self, number: i16) -> Self {
        self.field(number, FieldType::True);
        self
    }

    pub(super) fn i32(mut self, number: i16, value: i32) -> Self {
        self.field(number, FieldType::I32);
        varint(&mut self.bytes, zigzag(value.into()));
        self
    }

    pub(super) fn i64(mut self, number: i16, value: u64) -> Self {
        self.field(number, FieldType::I64);
        varint(&mut self.bytes, zigzag(i64::try_from(value).unwrap_or(i64::MAX)));
        self
    }

    pub(super) fn text(mut self, number: i16, text: &str) -> Self {
        self.field(number, FieldType::Binary);
        binary(&mut self.bytes, text);
        self
    }

    pub(super) fn texts(mut self, number: i16, texts: &[&str]) -> Self {
        self.list(number, FieldType::Binary, texts.len());
        texts.iter().for_each(|text| binary(&mut self.bytes, text));
        self
    }

    pub(super) fn i32s(mut self, number: i16, values: &[i32]) -> Self {
        self.list(number, FieldType::I32, values.len());
        values.iter().for_each(|value| varint(&mut self.bytes, zigzag((*value).into())));
        self
    }

    pub(super) fn one(mut self, number: i16, value: Self) -> Self {
        self.field(number, FieldType::Struct);
        self.bytes.extend(value.end());
        self
    }

    pub(super) fn many(mut self, number: i16, values: impl IntoIterator<Item = Self>) -> Self {
        let values: Vec<Self> = values.into_iter().collect();
        self.list(number, FieldType::Struct, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value.end()));
        self
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(&mut self, number: i16, kind: FieldType) {
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

    fn list(&mut self, number: i16, kind: FieldType, length: usize) {
        self.field(number, FieldType::List);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_of_numbers_lists_and_structs() {
        let inner = ThriftStruct::default().truth(1);
        let bytes =
            ThriftStruct::default().i32(1, -2).i64(18, 300).texts(19, &["ab"]).one(20, inner);
        let expected: [&[u8]; 5] = [
            &[0x15, 3],
            &[0x06, 36, 0xd8, 0x04],
            &[0x19, 0x18, 2, b'a', b'b'],
            &[0x1c, 0x11, 0],
            &[0],
        ];
        assert_eq!(bytes.end(), expected.concat());
        let long = ThriftStruct::default().i32s(1, &[0; 15]).end();
        assert_eq!(long[..3], [0x19, 0xf5, 15]);
    }
}
