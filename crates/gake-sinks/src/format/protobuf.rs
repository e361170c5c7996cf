//! The few parts of protobuf's encoding that remote write and OpenTelemetry need.

/// A message being written.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
}

impl Message {
    /// A nested message.
    pub(super) fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.bytes);
    }

    /// A string, or bytes.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// A double.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.varint(u64::from(field << 3 | 1));
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// An int64 that is not negative.
    pub(super) fn int64(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3));
        self.varint(value);
    }

    /// A bool.
    pub(super) fn flag(&mut self, field: u32, value: bool) {
        self.int64(field, value.into());
    }

    /// A sint32 or sint64, which is small where its absolute value is.
    pub(super) fn sint(&mut self, field: u32, value: i64) {
        self.int64(field, zigzag(value));
    }

    /// A fixed64.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3 | 1));
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A repeated int64 whose numbers are not negative, in one piece.
    pub(super) fn packed(&mut self, field: u32, values: &[u64]) {
        let mut all = Self::default();
        values.iter().for_each(|value| all.varint(*value));
        self.message(field, &all);
    }

    /// A repeated sint64 in one piece.
    pub(super) fn packed_sint(&mut self, field: u32, values: &[i64]) {
        let all: Vec<u64> = values.iter().map(|value| zigzag(*value)).collect();
        self.packed(field, &all);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// 0, -1, 1, -2 ... as 0, 1, 2, 3 ...
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_writes_what_the_specification_shows() {
        // The specification's own example: field 1 is 150.
        let mut message = Message::default();
        message.int64(1, 150);
        assert_eq!(message.bytes, [0x08, 0x96, 0x01]);
        let mut text = Message::default();
        text.bytes(2, b"testing");
        assert_eq!(text.bytes, [0x12, 7, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let mut outer = Message::default();
        outer.message(3, &message);
        assert_eq!(outer.bytes, [0x1a, 3, 0x08, 0x96, 0x01]);
        let mut signed = Message::default();
        signed.sint(1, -1);
        signed.sint(1, 1);
        signed.packed(2, &[3, 270]);
        signed.fixed64(3, 1);
        assert_eq!(signed.bytes[..4], [0x08, 1, 0x08, 2]);
        assert_eq!(signed.bytes[4..9], [0x12, 3, 3, 0x8e, 0x02]);
        assert_eq!(signed.bytes[9..], [0x19, 1, 0, 0, 0, 0, 0, 0, 0]);
        let mut number = Message::default();
        number.double(1, 1.0);
        assert_eq!(number.bytes, [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }
}
