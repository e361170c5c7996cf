//! The provenance of a run: the command line without its secrets, the machine, the version.

use std::fs;

use gake_core::record::Provenance;
use gake_core::spec::{BodySpec, RequestSource, RunSpec};
use gake_judge::Objective;
use gake_text::redact::Redactor;

/// Flags of gake and of the tools it behaves as that take a user and password.
const CREDENTIALS: [&str; 4] = ["--user", "-a", "-A", "-P"];

/// Flags of these tools that take a header.
const HEADERS: [&str; 3] = ["-H", "--header", "-header"];

/// The provenance of a run in this process, judged against `objectives`.
pub fn origin(objectives: &[Objective], redactor: &Redactor) -> Provenance {
    let words: Vec<_> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    Provenance {
        commands: vec![command(&words, redactor)],
        hosts: vec![host()],
        versions: vec![env!("CARGO_PKG_VERSION").to_owned()],
        objectives: objectives.iter().map(ToString::to_string).collect(),
        specs: Vec::new(),
    }
}

/// Maximum size of a stored spec, in bytes: one may hold thousands of requests.
const SPEC_JSON_MAX: usize = 256 << 10;

/// `spec` as JSON for a run file, without its secrets; `None` if it is longer than 256 KiB, or a
/// path in it is not UTF-8.
pub fn spec_json(spec: &RunSpec, redactor: &Redactor) -> Option<String> {
    let mut spec = spec.clone();
    for scenario in &mut spec.scenarios {
        hide_body(&scenario.request.headers, &mut scenario.request.body, redactor);
        hide_headers(&mut scenario.request.headers, redactor);
        if let Some(user) = scenario.request.user.as_mut().filter(|_| !redactor.is_off()) {
            *user = redactor.tag(user.as_bytes());
        }
        match &mut scenario.source {
            RequestSource::Requests(requests) => {
                for one in requests.iter_mut() {
                    hide_body(&one.headers, &mut one.body, redactor);
                    hide_headers(&mut one.headers, redactor);
                }
            }
            RequestSource::Script(script) => hide_headers(&mut script.environment, redactor),
            _ => {}
        }
    }
    let json = serde_json::to_string(&spec).ok()?;
    Some(redactor.json(&json, false).into_owned()).filter(|kept| kept.len() <= SPEC_JSON_MAX)
}

/// Hides the secrets of a body of the type that the headers name, such as fields of a form.
fn hide_body(headers: &[(String, String)], body: &mut Option<BodySpec>, redactor: &Redactor) {
    let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if let (Some(BodySpec::Bytes(bytes)), Some((_, kind))) = (body, kind) {
        *bytes = redactor.body(kind, bytes).into();
    }
}

fn hide_headers(headers: &mut [(String, String)], redactor: &Redactor) {
    for (name, value) in headers {
        *value = String::from_utf8_lossy(&redactor.header(name, value.as_bytes())).into_owned();
    }
}

/// The command line, quoted for a shell, without its secrets.
fn command(words: &[String], redactor: &Redactor) -> String {
    let program = words.first().map_or("gake", |path| path.rsplit('/').next().unwrap_or("gake"));
    let mut shown = vec![program.to_owned()];
    let mut before = "";
    for word in words.iter().skip(1) {
        shown.push(quoted(&hidden(before, word, redactor)));
        before = word;
    }
    shown.join(" ")
}

/// Redacts a word of the command line; `before` is the word before it, of which it may be the
/// value.
fn hidden(before: &str, word: &str, redactor: &Redactor) -> String {
    let is_credentials = |flag: &str| {
        let name = flag.strip_prefix("--").unwrap_or_default();
        !redactor.is_off() && (CREDENTIALS.contains(&flag) || redactor.is_secret_name(name))
    };
    if is_credentials(before) && !word.starts_with('-') {
        return redactor.tag(word.as_bytes());
    }
    if let Some((flag, value)) = word.split_once('=')
        && is_credentials(flag)
    {
        return format!("{flag}={}", redactor.tag(value.as_bytes()));
    }
    if let Some(shown) = nats(before, word, redactor) {
        return shown;
    }
    if let Some((name, value)) = word.split_once(':')
        && HEADERS.contains(&before)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    {
        let value = value.trim_start();
        let value = redactor.header(name, value.as_bytes());
        return format!("{name}: {}", String::from_utf8_lossy(&value));
    }
    redactor.text(word).into_owned()
}

/// Redacts the URL of a NATS server, in which a token looks like a user name.
fn nats(before: &str, word: &str, redactor: &Redactor) -> Option<String> {
    let (flag, url) = match before {
        "--nats" => ("", word),
        _ => ("--nats=", word.strip_prefix("--nats=")?),
    };
    let (scheme, rest) = url.split_once("://")?;
    let (credentials, host) = rest.rsplit_once('@').filter(|_| !redactor.is_off())?;
    Some(format!("{flag}{scheme}://{}@{host}", redactor.tag(credentials.as_bytes())))
}

/// Quotes a word unless it is plain.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The machine: name, system, processor, cores.
pub fn host() -> String {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let name = read("/proc/sys/kernel/hostname").filter(|name| !name.is_empty());
    let system = read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = format!("{cores} {}", if cores == 1 { "core" } else { "cores" });
    let parts = [name, system, model(), Some(cores)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([1; 16], gake_text::redact::SecretNames::default())
    }

    fn shown(line: &[&str]) -> String {
        let words: Vec<_> = line.iter().map(|word| (*word).to_owned()).collect();
        command(&words, &redactor())
    }

    #[test]
    fn a_shell_reads_the_shown_command() {
        let line = ["/usr/bin/gake", "run", "http://h/?a=1&b", "--slo", "p99<50ms", "it's", ""];
        assert_eq!(shown(&line), r"gake run 'http://h/?a=1&b' --slo 'p99<50ms' 'it'\''s' ''");
        let again = crate::options::words(&shown(&line)).unwrap();
        assert_eq!(again[1..], line[1..]);
        // `-u` is a number of users in gake and k6, not a user name.
        assert_eq!(shown(&["gake", "run", "s.js", "-u", "10"]), "gake run s.js -u 10");
        // A host and its port are not a header.
        assert_eq!(shown(&["gake", "localhost:8080"]), "gake localhost:8080");
    }

    #[test]
    fn a_stored_spec_is_a_spec_without_secrets() {
        use gake_core::spec::file::SpecFile;
        let text = r#"
            [connection]
            proxy = "http://me:s3cret@proxy:3128"
            [[scenario]]
            url = "http://me:s3cret@h/?token=s3cret"
            user = "me:s3cret"
            headers = ["Authorization: Bearer s3cret", "X-Api-Key: s3cret", "A: b"]
            body = '{"password":"s3cret"}'
            duration = "10s"
        "#;
        let spec = SpecFile::read("a.toml", text.as_bytes()).unwrap().spec().unwrap();
        let json = spec_json(&spec, &redactor()).unwrap();
        assert!(!json.contains("s3cret"), "{json}");
        let again = SpecFile::read("a.json", json.as_bytes()).unwrap().spec().unwrap();
        assert_eq!(again.scenarios[0].load, spec.scenarios[0].load);
        assert_eq!(again.scenarios[0].duration, spec.scenarios[0].duration);
        assert_eq!(again.scenarios[0].request.headers[2], ("A".to_owned(), "b".to_owned()));
        let whole = spec_json(&spec, &Redactor::off()).unwrap();
        assert_eq!(SpecFile::read("a.json", whole.as_bytes()).unwrap().spec().unwrap(), spec);
    }

    #[test]
    fn a_stored_form_has_no_secrets() {
        use gake_core::spec::file::SpecFile;
        let text = r#"
            [[scenario]]
            url = "http://h/"
            headers = ["Content-Type: multipart/form-data; boundary=B"]
            body = "--B\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\ns3cret\r\n--B--"
            duration = "10s"
        "#;
        let spec = SpecFile::read("a.toml", text.as_bytes()).unwrap().spec().unwrap();
        let json = spec_json(&spec, &redactor()).unwrap();
        assert!(!json.contains("s3cret") && json.contains("form-data"), "{json}");
    }

    #[test]
    fn secrets_are_hidden() {
        let tag = |value: &str| redactor().tag(value.as_bytes());
        let s3 = tag("s3");
        let line = ["gake", "-H", "Authorization: Bearer s3", "-H", "X-Api-Key:s3", "-H", "A: b"];
        assert_eq!(
            shown(&line),
            format!("gake -H 'Authorization: Bearer {s3}' -H 'X-Api-Key: {s3}' -H 'A: b'")
        );
        let line = ["hey", "-a", "me:s3", "--user=me:s3", "http://me:s3@h:80/a@b?token=s3"];
        let user = tag("me:s3");
        assert_eq!(
            shown(&line),
            format!("hey -a {user} --user={user} 'http://me:{s3}@h:80/a@b?token={s3}'")
        );
        let line =
            ["gake", "--nats", "nats://s3@h:4222", "--nats=tls://me:s3@h", "--nats", "nats://h"];
        assert_eq!(
            shown(&line),
            format!("gake --nats nats://{s3}@h:4222 --nats=tls://{user}@h --nats nats://h")
        );
        let line =
            ["gake", "-d", r#"{"password":"s3"}"#, "--marker-secret", "s3", "--record-secrets"];
        let body = format!(r#"'{{"password":"{s3}"}}'"#);
        assert_eq!(shown(&line), format!("gake -d {body} --marker-secret {s3} --record-secrets"));
    }
}
