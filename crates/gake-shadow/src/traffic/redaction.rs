//! Redaction of recorded requests.

use std::ops::Deref;

use gake_text::redact::Redactor;

use super::Record;
use crate::coding;

/// A request without its secrets, which only [`redact`] makes: what recordings are written of.
#[derive(Debug)]
pub struct RedactedRecord(Record);

impl Deref for RedactedRecord {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.0
    }
}

/// Redacts a request. An encoded body is stored decoded if anything in it was redacted. A body that
/// cannot be decoded is removed, and marked as truncated.
#[must_use]
pub fn redact(redactor: &Redactor, mut record: Record) -> RedactedRecord {
    if !redactor.is_off() {
        hide(redactor, &mut record);
    }
    RedactedRecord(record)
}

fn hide(redactor: &Redactor, record: &mut Record) {
    record.target = redactor.target(&record.target).into_inner();
    for (name, value) in &mut record.headers {
        if let Some(other) = redactor.header(name, value).changed() {
            *value = other;
        }
    }
    if record.body.is_empty() {
        return;
    }
    let kind = record.header("content-type").unwrap_or_default().to_owned();
    let codings = codings(record);
    if codings.is_empty() {
        if let Some(body) = redactor.body(&kind, &record.body).changed() {
            set_body(record, body);
        }
        return;
    }
    // In reverse order of application.
    let plain = codings
        .iter()
        .rev()
        .try_fold(record.body.clone(), |body, coding| coding::decode(coding.as_bytes(), &body));
    let Some(plain) = plain else {
        record.body.clear();
        record.truncated = true;
        return;
    };
    if let Some(body) = redactor.body(&kind, &plain).changed() {
        record.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-encoding"));
        set_body(record, body);
    }
}

/// The content codings of a body, in the order of application.
fn codings(record: &Record) -> Vec<String> {
    let lines = record.headers.iter();
    let lines = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    let text = lines.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
    let all = text.collect::<Vec<_>>().join(",");
    all.split(',').map(|coding| coding.trim().to_owned()).filter(|c| !c.is_empty()).collect()
}

/// Replaces the body, and its `Content-Length` if there is one.
fn set_body(record: &mut Record, body: Vec<u8>) {
    if !record.truncated {
        let length = body.len().to_string().into_bytes();
        for (name, value) in &mut record.headers {
            if name.eq_ignore_ascii_case("content-length") {
                value.clone_from(&length);
            }
        }
    }
    record.body = body;
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use gake_text::redact::SecretNames;

    use super::*;

    fn post(headers: &[(&str, &str)], body: &[u8]) -> Record {
        let line = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        Record {
            method: "POST".to_owned(),
            target: "/login?access_token=s3cr3t".to_owned(),
            headers: headers.iter().map(line).collect(),
            body: body.to_vec(),
            ..Record::default()
        }
    }

    fn redacted(record: Record) -> Record {
        redact(&Redactor::new([1; 16], SecretNames::default()), record).0
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn target_headers_and_body_are_redacted() {
        let headers = [("X-Vault-Token", "s3cr3t"), ("content-length", "21")];
        let record = redacted(post(&headers, b"{\"password\":\"s3cr3t\"}"));
        let shown = format!("{record:?} {}", String::from_utf8_lossy(&record.body));
        assert!(!shown.contains("s3cr3t"), "{shown}");
        assert_eq!(record.header("content-length"), Some(&*record.body.len().to_string()));
        assert!(record.is_redacted());
    }

    #[test]
    fn encoded_bodies_are_redacted() {
        let secret = b"{\"password\":\"s3cr3t\"}";
        for (coding, body) in [("gzip", gzip(secret)), ("gzip, gzip", gzip(&gzip(secret)))] {
            let record = redacted(post(&[("Content-Encoding", coding)], &body));
            assert!(record.body.starts_with(b"{\"password\":\"redacted-"), "{coding}");
            assert!(record.headers.is_empty() && !record.truncated);
        }
        let plain = gzip(b"{\"a\":1}");
        let record = redacted(post(&[("Content-Encoding", "gzip")], &plain));
        assert_eq!((record.body, record.headers.len()), (plain, 1), "nothing to hide");
        for (coding, body) in [("zstd", secret.to_vec()), ("gzip", secret.to_vec())] {
            let record = redacted(post(&[("Content-Encoding", coding)], &body));
            assert!(record.body.is_empty() && record.truncated, "{coding}");
        }
    }
}
