//! Percent-encoding (RFC 3986, section 2.1).

/// Decodes percent escapes; invalid ones stay.
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = |b: u8| char::from(b).to_digit(16);
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                let value = hex(*high).unwrap_or(0) * 16 + hex(*low).unwrap_or(0);
                bytes.push(value as u8);
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_all_else_stays() {
        for (text, decoded) in
            [("50%25 of %C3%A9 %zz %", "50% of é %zz %"), ("p%40+s&s", "p@+s&s"), ("", "")]
        {
            assert_eq!(percent_decoded(text), decoded);
        }
    }
}
