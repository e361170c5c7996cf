//! The headers of a response, in one allocation.

/// Names and values, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct HeaderList {
    text: String,
    /// The ends of each name and value.
    ends: Vec<(usize, usize)>,
}

impl HeaderList {
    /// A list with capacity for headers of the usual length.
    pub(super) fn with_capacity(headers: usize) -> Self {
        Self { text: String::with_capacity(32 * headers), ends: Vec::with_capacity(headers) }
    }

    /// Adds a header; invalid UTF-8 in its value becomes U+FFFD.
    pub(super) fn push(&mut self, name: &str, value: &[u8]) {
        self.text.push_str(name);
        let name = self.text.len();
        match std::str::from_utf8(value) {
            Ok(text) => self.text.push_str(text),
            Err(_) => self.text.push_str(&String::from_utf8_lossy(value)),
        }
        self.ends.push((name, self.text.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name, value)| {
            let pair = (&self.text[start..name], &self.text[name..value]);
            start = value;
            pair
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_that_were_added() {
        let mut headers = HeaderList::with_capacity(1);
        headers.push("Server", b"nginx");
        headers.push("X-Empty", b"");
        headers.push("X-Odd", b"a\xffb");
        let all: Vec<_> = headers.iter().collect();
        assert_eq!(all, [("Server", "nginx"), ("X-Empty", ""), ("X-Odd", "a\u{fffd}b")]);
        assert_eq!(headers.len(), 3);
    }
}
