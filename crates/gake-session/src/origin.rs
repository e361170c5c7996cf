//! Where a run comes from: the command line without its secrets, the machine, the version.

use std::fs;

use gake_core::record::Provenance;
use gake_core::spec::{RequestSource, RunSpec};
use gake_judge::Objective;
use gake_text::redact::Redactor;

/// Flags, of gake and of the tools it behaves as, that name a user and a password.
const CREDENTIALS: [&str; 4] = ["--user", "-a", "-A", "-P"];

/// Flags that give a header, of all these tools.
const HEADERS: [&str; 3] = ["-H", "--header", "-header"];

/// The origin of a run that this process fires, judged against `objectives`.
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

/// Longest spec that is kept, in bytes: one may hold thousands of requests.
const KEPT_MAX: usize = 256 << 10;

/// `spec` as JSON that a run file keeps, without its secrets; `None` when it is longer than
/// 256 KiB, or a path in it is not UTF-8.
pub fn kept(spec: &RunSpec, redactor: &Redactor) -> Option<String> {
    let mut spec = spec.clone();
    for scenario in &mut spec.scenarios {
        hide_headers(&mut scenario.request.headers, redactor);
        if let Some(user) = scenario.request.user.as_mut().filter(|_| !redactor.is_off()) {
            *user = redactor.tag(user.as_bytes());
        }
        match &mut scenario.source {
            RequestSource::Requests(requests) => {
                requests.iter_mut().for_each(|one| hide_headers(&mut one.headers, redactor));
            }
            RequestSource::Script(script) => hide_headers(&mut script.environment, redactor),
            _ => {}
        }
    }
    let json = serde_json::to_string(&spec).ok()?;
    Some(redactor.json(&json, false).into_owned()).filter(|kept| kept.len() <= KEPT_MAX)
}

fn hide_headers(headers: &mut [(String, String)], redactor: &Redactor) {
    for (name, value) in headers {
        *value = String::from_utf8_lossy(&redactor.header(name, value.as_bytes())).into_owned();
    }
}

/// A command line as a shell reads it, without its secrets.
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

/// A word without the secret in it; `before` is the flag whose value it may be.
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
    // A header, as `-H` takes it.
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

/// The URL of a NATS server without its credentials: a token there looks like a user's name.
fn nats(before: &str, word: &str, redactor: &Redactor) -> Option<String> {
    let (flag, url) = match before {
        "--nats" => ("", word),
        _ => ("--nats=", word.strip_prefix("--nats=")?),
    };
    let (scheme, rest) = url.split_once("://")?;
    let (credentials, host) = rest.rsplit_once('@').filter(|_| !redactor.is_off())?;
    Some(format!("{flag}{scheme}://{}@{host}", redactor.tag(credentials.as_bytes())))
}

/// A word in quotes, when a shell would take it for more than one or for a pattern.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The machine: name, system, processor.
pub fn host() -> String {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let name = read("/proc/sys/kernel/hostname").filter(|name| !name.is_empty());
    let system = read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = format!("{cores} {}", if cores == 1 { "core" } else { "cores" });
    let parts = [name, system, model(), Some(cores)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The processor's model, where the system knows it.
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
    fn a_shell_reads_the_command_again() {
        let line = ["/usr/bin/gake", "run", "http://h/?a=1&b", "--slo", "p99<50ms", "it's", ""];
        assert_eq!(shown(&line), r"gake run 'http://h/?a=1&b' --slo 'p99<50ms' 'it'\''s' ''");
        let again = crate::options::words(&shown(&line)).unwrap();
        assert_eq!(again[1..], line[1..]);
        // Users are a number of gake and of k6, and no name.
        assert_eq!(shown(&["gake", "run", "s.js", "-u", "10"]), "gake run s.js -u 10");
        // A host and its port are no header.
        assert_eq!(shown(&["gake", "localhost:8080"]), "gake localhost:8080");
    }

    #[test]
    fn a_kept_spec_is_a_spec_without_secrets() {
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
        let json = kept(&spec, &redactor()).unwrap();
        assert!(!json.contains("s3cret"), "{json}");
        let again = SpecFile::read("a.json", json.as_bytes()).unwrap().spec().unwrap();
        assert_eq!(again.scenarios[0].load, spec.scenarios[0].load);
        assert_eq!(again.scenarios[0].duration, spec.scenarios[0].duration);
        assert_eq!(again.scenarios[0].request.headers[2], ("A".to_owned(), "b".to_owned()));
        let whole = kept(&spec, &Redactor::off()).unwrap();
        assert_eq!(SpecFile::read("a.json", whole.as_bytes()).unwrap().spec().unwrap(), spec);
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
