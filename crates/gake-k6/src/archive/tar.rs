//! Tar files, as far as archives of scripts need them (POSIX.1, section "pax").

use super::ArchiveError;

/// Bytes of a header, to which contents are filled up.
const BLOCK: usize = 512;

/// Bytes of a name in a header.
const NAME_MAX: usize = 100;

/// Whether bytes begin with a tar header.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar".as_slice())
}

/// The regular files of a tar file: name and content.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<(String, &[u8])>, ArchiveError> {
    let mut entries = Vec::new();
    let mut long_name = None;
    let mut rest = bytes;
    while let Some((header, after)) = rest.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        if !has_sum(header) {
            return Err(ArchiveError::Tar("the checksum of a header is wrong"));
        }
        let size = number(&header[124..136]).ok_or(ArchiveError::Tar("a size is no number"))?;
        let cut = ArchiveError::Tar("it ends within a file");
        let content = after.get(..size).ok_or(cut)?;
        rest = after.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
        match header[156] {
            b'L' => long_name = Some(text(content)),
            b'x' => long_name = pax_path(content).or(long_name),
            b'0' | 0 => {
                let name = long_name.take().unwrap_or_else(|| name(header));
                entries.push((name, content));
            }
            // Folders, and what is said of all entries.
            _ => long_name = None,
        }
    }
    Ok(entries)
}

/// Appends a regular file.
pub(super) fn append(tar: &mut Vec<u8>, name: &str, content: &[u8], unix_s: u64) {
    if name.len() > NAME_MAX {
        header(tar, "././@LongLink", b'L', name.len() + 1, 0);
        tar.extend_from_slice(name.as_bytes());
        tar.push(0);
        fill(tar);
    }
    let short = &name.as_bytes()[..name.len().min(NAME_MAX)];
    header(tar, &String::from_utf8_lossy(short), b'0', content.len(), unix_s);
    tar.extend_from_slice(content);
    fill(tar);
}

/// Ends a tar file.
pub(super) fn end(tar: &mut Vec<u8>) {
    tar.resize(tar.len() + 2 * BLOCK, 0);
}

fn fill(tar: &mut Vec<u8>) {
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
}

fn header(tar: &mut Vec<u8>, name: &str, kind: u8, size: usize, unix_s: u64) {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name.as_bytes()[..name.len().min(NAME_MAX)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, format!("{unix_s:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum = format!("{:06o}\0 ", sum(&header));
    header[148..156].copy_from_slice(sum.as_bytes());
    tar.extend_from_slice(&header);
}

/// The sum of a header's bytes, with blanks where the sum itself is.
fn sum(header: &[u8]) -> usize {
    let counted = |(at, byte): (usize, &u8)| match (148..156).contains(&at) {
        true => usize::from(b' '),
        false => usize::from(*byte),
    };
    header.iter().enumerate().map(counted).sum()
}

fn has_sum(header: &[u8]) -> bool {
    number(&header[148..156]) == Some(sum(header))
}

/// An octal number.
fn number(field: &[u8]) -> Option<usize> {
    let digits = text(field);
    usize::from_str_radix(digits.trim(), 8).ok()
}

/// A text up to its first zero.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn name(header: &[u8]) -> String {
    let (name, prefix) = (text(&header[..NAME_MAX]), text(&header[345..500]));
    if prefix.is_empty() || !is_tar(header) { name } else { format!("{prefix}/{name}") }
}

/// The path in records as `18 path=some/name\n`.
fn pax_path(mut records: &[u8]) -> Option<String> {
    let mut path = None;
    while let Some(blank) = records.iter().position(|byte| *byte == b' ') {
        let length: usize = std::str::from_utf8(&records[..blank]).ok()?.parse().ok()?;
        let record = records.get(blank + 1..length)?;
        if let Some(value) = record.strip_prefix(b"path=") {
            path = Some(String::from_utf8_lossy(value.trim_ascii_end()).into_owned());
        }
        records = &records[length..];
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let long = format!("file/{}/s.js", "folder/".repeat(30));
        let files = [("metadata.json", &b"{}"[..]), ("data", &[b'x'; 1000]), (&long, b"")];
        let mut tar = Vec::new();
        for (name, content) in files {
            append(&mut tar, name, content, 1_700_000_000);
        }
        end(&mut tar);
        assert!(is_tar(&tar) && tar.len() % BLOCK == 0);
        let expected: Vec<_> = files.map(|(name, content)| (name.to_owned(), content)).into();
        assert_eq!(entries(&tar).unwrap(), expected);
        for end in 0..tar.len() {
            if let Ok(some) = entries(&tar[..end]) {
                assert!(expected.starts_with(&some), "cut at {end}: {some:?}");
            }
        }
        let mut broken = tar.clone();
        broken[0] ^= 1;
        assert!(entries(&broken).is_err());
    }

    #[test]
    fn names_may_be_records() {
        let mut tar = Vec::new();
        let record = b"25 path=file/home/a/b.js\n".to_vec();
        assert_eq!(record.len(), 25);
        header(&mut tar, "PaxHeaders.0/b.js", b'x', record.len(), 0);
        tar.extend_from_slice(&record);
        fill(&mut tar);
        append(&mut tar, "b.js", b"1", 0);
        end(&mut tar);
        assert_eq!(entries(&tar).unwrap(), [("file/home/a/b.js".to_owned(), &b"1"[..])]);
        assert_eq!(pax_path(b"9999999999 path=x\n"), None);
        assert_eq!(pax_path(b"0 path=x\n"), None);
    }
}
