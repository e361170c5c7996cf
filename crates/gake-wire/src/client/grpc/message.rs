//! Messages in the body of a call, each with a prefix of five bytes.

use super::error::GrpcError;

/// Bytes of the prefix: a compression flag, and the length.
const PREFIX: usize = 5;

/// A message with its prefix.
#[must_use]
pub fn grpc_frame(message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(PREFIX + message.len());
    framed.push(0);
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    framed.extend_from_slice(message);
    framed
}

/// Reads messages from a body in chunks of any size.
#[derive(Debug, Default)]
pub struct GrpcMessages {
    bytes: Vec<u8>,
    /// Bytes of the messages taken.
    taken: usize,
}

impl GrpcMessages {
    /// Adds the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes not yet taken as messages.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// The length of the next message, once its prefix has come.
    #[must_use]
    pub fn announced(&self) -> Option<usize> {
        let ([_, length @ ..], _) = self.bytes[self.taken..].split_first_chunk::<PREFIX>()?;
        Some(u32::from_be_bytes(*length) as usize)
    }

    /// The next message, once it is complete.
    ///
    /// # Errors
    /// It is compressed.
    pub fn take(&mut self) -> Result<Option<&[u8]>, GrpcError> {
        let rest = &self.bytes[self.taken..];
        let Some(([flags, length @ ..], rest)) = rest.split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        if *flags != 0 {
            return Err(GrpcError::Compressed);
        }
        let length = u32::from_be_bytes(*length) as usize;
        if rest.len() < length {
            return Ok(None);
        }
        let begin = self.taken + PREFIX;
        self.taken = begin + length;
        Ok(Some(&self.bytes[begin..self.taken]))
    }

    /// All messages of a complete body.
    ///
    /// # Errors
    /// A message is compressed, or the body ends within one.
    pub fn of(body: &[u8]) -> Result<Vec<Vec<u8>>, GrpcError> {
        let mut reader = Self::default();
        reader.push(body);
        let mut messages = Vec::new();
        while let Some(message) = reader.take()? {
            messages.push(message.to_vec());
        }
        if reader.left() > 0 { Err(GrpcError::CutShort) } else { Ok(messages) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes_do_not_change_messages() {
        let all: [&[u8]; 3] = [b"one", b"", &[7; 300]];
        let body: Vec<u8> = all.iter().flat_map(|message| grpc_frame(message)).collect();
        assert_eq!(GrpcMessages::of(&body).unwrap(), all);
        for size in [1, 4, 7, body.len()] {
            let (mut reader, mut found) = (GrpcMessages::default(), Vec::new());
            for chunk in body.chunks(size) {
                reader.push(chunk);
                while let Some(message) = reader.take().unwrap() {
                    found.push(message.to_vec());
                }
            }
            assert_eq!((found, reader.left()), (all.map(<[u8]>::to_vec).to_vec(), 0), "{size}");
        }
        assert_eq!(GrpcMessages::of(&body[..4]), Err(GrpcError::CutShort));
        assert_eq!(GrpcMessages::of(&[1, 0, 0, 0, 0]), Err(GrpcError::Compressed));
    }
}
