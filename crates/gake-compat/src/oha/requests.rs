//! oha's requests: all combinations of URLs and bodies, with the same headers.

use std::io;
use std::sync::Arc;

use gake_core::spec::{BodySpec, RequestDefaults, RequestSource, RequestSpec};
use gake_wire::basic_authorization;

use crate::flags::Parsed;
use gake_run::body_file;
use gake_run::multipart_form;
use gake_session::options::values::header as read_header;
use gake_session::{Failure, generated_requests, random};

/// The most different requests: URLs times bodies.
const REQUESTS_MAX: usize = 1_000_000;

/// oha's default of `--max-repeat`.
const MAX_REPEAT: u32 = 4;

/// oha's User-Agent, on which servers may depend.
const USER_AGENT: &str = "oha/1.16.0";

#[derive(Debug)]
pub struct Requests {
    /// The requests, sent in turn.
    pub source: RequestSource,
    /// Their common parts.
    pub defaults: RequestDefaults,
    /// The file with their URLs, if there is one.
    pub file: Option<String>,
}

/// The requests of a command line.
///
/// # Errors
/// When a request is not valid or a file cannot be read.
pub fn sent(parsed: &Parsed, target: &str) -> Result<Requests, Failure> {
    let from_file = parsed.on("urls-from-file").map_err(Failure::usage)?;
    let urls = match parsed.on("rand-regex-url").map_err(Failure::usage)? {
        true => random_urls(parsed, target, None)?,
        false if from_file => lines(target)?,
        false => vec![target.to_owned()],
    };
    let urls: Vec<_> = urls.iter().filter(|url| !url.trim().is_empty()).collect();
    if let Some(url) = urls.iter().find(|url| !url.contains("://")) {
        return Err(Failure::could_not(format!("{url:?} is not a URL: it begins with http://")));
    }
    let (bodies, content_type) = bodies(parsed)?;
    let different = urls.len().saturating_mul(bodies.len());
    if different == 0 {
        return Err(Failure::could_not("there is nothing to send: a file of lines is empty"));
    }
    if different > REQUESTS_MAX {
        return Err(Failure::could_not(format!(
            "{different} different requests are more than the {REQUESTS_MAX} that are held"
        )));
    }
    let method = match (parsed.last("method"), content_type.is_some()) {
        (None | Some("GET"), true) => "POST",
        (method, _) => method.unwrap_or("GET"),
    };
    let request = |body: &Body, url: &String| RequestSpec {
        body: body.clone().map(BodySpec::Bytes),
        ..RequestSpec::new(url.trim())
    };
    let all = bodies.iter().flat_map(|body| urls.iter().map(move |url| request(body, url)));
    Ok(Requests {
        source: RequestSource::Requests(all.collect()),
        defaults: RequestDefaults {
            method: Some(method.to_owned()),
            headers: headers(parsed, content_type)?,
            ..RequestDefaults::default()
        },
        file: from_file.then(|| target.to_owned()),
    })
}

/// URLs that match the pattern of the command line: so many, or as many as are sent in turn.
///
/// # Errors
/// When it is not a URL with a regular expression, or a value is not valid.
pub fn random_urls(
    parsed: &Parsed,
    pattern: &str,
    count: Option<usize>,
) -> Result<Vec<String>, Failure> {
    let repeats = parsed.get("max-repeat").map_err(Failure::usage)?.unwrap_or(MAX_REPEAT);
    let seed = random::bytes::<8>().map(u64::from_le_bytes);
    let seed = seed.map_err(|error| Failure::could_not(format!("no random URLs: {error}")))?;
    let wrong = |why: String| Failure::usage(format!("--rand-regex-url {pattern:?}: {why}"));
    generated_requests::urls(pattern, seed, repeats, count).map_err(wrong)
}

/// A body, if there is one.
type Body = Option<Arc<[u8]>>;

/// The bodies, at least one unless a file is empty, and the content type of a form.
fn bodies(parsed: &Parsed) -> Result<(Vec<Body>, Option<String>), Failure> {
    if parsed.last("form").is_some() {
        let (content_type, body) =
            multipart_form(parsed.all("form")).map_err(Failure::could_not)?;
        return Ok((vec![Some(body.into())], Some(content_type)));
    }
    if let Some(path) = parsed.last("Z") {
        let lines = lines(path)?.into_iter();
        return Ok((lines.map(|line| Some(Arc::from(line.into_bytes()))).collect(), None));
    }
    let body = match (parsed.last("d"), parsed.last("D")) {
        (Some(text), _) => Some(Arc::from(text.as_bytes())),
        (None, Some(path)) => Some(body_file(path).map_err(|e| read_failure(path, &e))?.into()),
        (None, None) => None,
    };
    Ok((vec![body], None))
}

/// The header lines; the last one with a name replaces earlier ones.
fn headers(parsed: &Parsed, form: Option<String>) -> Result<Vec<(String, String)>, Failure> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.push((name.to_owned(), value.to_owned()));
    };
    set("accept", parsed.last("A").unwrap_or("*/*"));
    if !parsed.on("disable-compression").map_err(Failure::usage)? {
        set("accept-encoding", "gzip, compress, deflate, br");
    }
    set("user-agent", USER_AGENT);
    if let Some(content_type) = parsed.last("T").or(form.as_deref()) {
        set("content-type", content_type);
    }
    if let Some(host) = parsed.last("host") {
        set("host", host);
    }
    if let Some(user) = parsed.last("a") {
        if !user.contains(':') {
            return Err(Failure::could_not(format!("-a {user:?}: write user:password")));
        }
        set("authorization", &basic_authorization(user).1);
    }
    for line in parsed.all("H") {
        let (name, value) =
            read_header(line).map_err(|error| Failure::usage(format!("-H {line:?}: {error}")))?;
        set(&name, &value);
    }
    Ok(headers)
}

fn lines(path: &str) -> Result<Vec<String>, Failure> {
    let bytes = body_file(path).map_err(|error| read_failure(path, &error))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| read_failure(path, &io::Error::new(io::ErrorKind::InvalidData, error)))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn read_failure(path: &str, error: &io::Error) -> Failure {
    Failure::could_not(format!("{path} cannot be read: {error}"))
}
