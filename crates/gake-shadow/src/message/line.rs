//! Writing and inspecting header lines.

/// Bytes of a header line besides its name and value.
pub(crate) const LINE_BYTES: usize = 4;

/// Writes a header line; the case of the name is kept.
pub(crate) fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The members of a comma-separated list.
pub(crate) fn list(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Case-insensitive equality.
#[inline]
pub(crate) fn is(name: &[u8], word: &str) -> bool {
    name.eq_ignore_ascii_case(word.as_bytes())
}

#[inline]
pub(crate) fn is_one_of(name: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| is(name, word))
}

/// Parses a number of digits only: no sign, no blanks.
pub(crate) fn digits(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}
