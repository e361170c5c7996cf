//! The content of one message, read from the front.

/// What is wrong with a message: a part of a sentence about the record.
pub(super) type Fault = String;

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8], Fault> {
        let count = usize::try_from(count).ok().filter(|count| *count <= self.0.len());
        let count = count.ok_or("it ends before its content does")?;
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn uint(&mut self) -> Result<u64, Fault> {
        let first = self.byte()?;
        if first < 128 {
            return Ok(first.into());
        }
        let count = length_of_number(first).ok_or("it has a number of more than 64 bits")?;
        let bytes = self.take(count.into())?;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(super) fn int(&mut self) -> Result<i64, Fault> {
        let value = self.uint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let count = self.uint()?;
        self.take(count)
    }

    /// A text; bytes that are not UTF-8 are replaced.
    pub(super) fn text(&mut self) -> Result<String, Fault> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// How many elements follow, each of at least a byte: no more than bytes are left.
    pub(super) fn count(&mut self) -> Result<u64, Fault> {
        let count = self.uint()?;
        if count > self.0.len() as u64 {
            return Err("it counts more elements than it has room for".to_owned());
        }
        Ok(count)
    }
}

/// How many bytes follow the first byte of a number that is 128 or more.
pub(super) fn length_of_number(first: u8) -> Option<u8> {
    Some(first.wrapping_neg()).filter(|count| (1..=8).contains(count))
}
