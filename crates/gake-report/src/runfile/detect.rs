//! Recognises files of other formats.

/// Magic bytes and the format's description; the first match counts.
const KINDS: &[(&[u8], &str)] = &[
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "compressed by gzip: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it first"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"\x7fELF", "a program"),
    (b"{", "JSON: a summary cannot be read again, only the file of --out can"),
    (b"[", "JSON: a summary cannot be read again, only the file of --out can"),
    (b"<", "HTML or XML"),
    (b"second,seconds,", "the CSV of a run, which cannot be read again, as the file of --out can"),
];

/// The format that `start`, the first bytes of a file, reveals; `None` if it may be a run file.
pub(super) fn foreign(start: &[u8]) -> Option<&'static str> {
    if start.is_empty() {
        return Some("empty");
    }
    let known = KINDS.iter().find(|(magic, _)| start.starts_with(magic)).map(|kind| kind.1);
    known.or_else(|| start.contains(&0).then_some("binary"))
}
