//! Reads the content of a message from the front.

/// Why a message is invalid: the predicate of a sentence about the record.
pub(super) type GobError = String;

#[derive(Debug, Clone, Copy)]
pub(super) struct MessageReader<'a>(&'a [u8]);

impl<'a> MessageReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8], GobError> {
        let count = usize::try_from(count).ok().filter(|count| *count <= self.0.len());
        let count = count.ok_or("it ends before its content does")?;
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, GobError> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn uint(&mut self) -> Result<u64, GobError> {
        let first = self.byte()?;
        if first < 128 {
            return Ok(first.into());
        }
        let count = length_of_number(first).ok_or("it has a number of more than 64 bits")?;
        let bytes = self.take(count.into())?;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(super) fn int(&mut self) -> Result<i64, GobError> {
        let value = self.uint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], GobError> {
        let count = self.uint()?;
        self.take(count)
    }

    /// A string with invalid UTF-8 replaced.
    pub(super) fn text(&mut self) -> Result<String, GobError> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// A count of elements of at least one byte each: at most the bytes left.
    pub(super) fn count(&mut self) -> Result<u64, GobError> {
        let count = self.uint()?;
        if count > self.0.len() as u64 {
            return Err("it counts more elements than it has room for".to_owned());
        }
        Ok(count)
    }
}

/// The number of bytes after the first byte of a number of 128 or more.
pub(super) fn length_of_number(first: u8) -> Option<u8> {
    Some(first.wrapping_neg()).filter(|count| (1..=8).contains(count))
}
