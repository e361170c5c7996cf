//! The subset of protobuf's encoding for remote write and OpenTelemetry.

#[derive(Debug, Default)]
pub(super) struct ProtoMessage {
    pub(super) bytes: Vec<u8>,
}

impl ProtoMessage {
    pub(super) fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.bytes);
    }

    /// A string, or bytes.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.varint(u64::from(field << 3 | 1));
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// An int64 that is not negative.
    pub(super) fn int64(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3));
        self.varint(value);
    }

    pub(super) fn flag(&mut self, field: u32, value: bool) {
        self.int64(field, value.into());
    }

    /// A sint32 or sint64, in zigzag encoding.
    pub(super) fn sint(&mut self, field: u32, value: i64) {
        self.int64(field, zigzag(value));
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field << 3 | 1));
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A packed repeated int64 of non-negative numbers.
    pub(super) fn packed(&mut self, field: u32, values: &[u64]) {
        let mut all = Self::default();
        values.iter().for_each(|value| all.varint(*value));
        self.message(field, &all);
    }

    /// A packed repeated sint64.
    pub(super) fn packed_sint(&mut self, field: u32, values: &[i64]) {
        let all: Vec<u64> = values.iter().map(|value| zigzag(*value)).collect();
        self.packed(field, &all);
    }

    fn varint(&mut self, value: u64) {
        varint(&mut self.bytes, value);
    }
}

/// Seven bits per byte, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// 0, -1, 1, -2 ... as 0, 1, 2, 3 ...
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_the_specification() {
        // The specification's own example: field 1 is 150.
        let mut message = ProtoMessage::default();
        message.int64(1, 150);
        assert_eq!(message.bytes, [0x08, 0x96, 0x01]);
        let mut text = ProtoMessage::default();
        text.bytes(2, b"testing");
        assert_eq!(text.bytes, [0x12, 7, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let mut outer = ProtoMessage::default();
        outer.message(3, &message);
        assert_eq!(outer.bytes, [0x1a, 3, 0x08, 0x96, 0x01]);
        let mut signed = ProtoMessage::default();
        signed.sint(1, -1);
        signed.sint(1, 1);
        signed.packed(2, &[3, 270]);
        signed.fixed64(3, 1);
        assert_eq!(signed.bytes[..4], [0x08, 1, 0x08, 2]);
        assert_eq!(signed.bytes[4..9], [0x12, 3, 3, 0x8e, 0x02]);
        assert_eq!(signed.bytes[9..], [0x19, 1, 0, 0, 0, 0, 0, 0, 0]);
        let mut number = ProtoMessage::default();
        number.double(1, 1.0);
        assert_eq!(number.bytes, [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }
}
