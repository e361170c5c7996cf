//! The provenance of a run: the command line without its secrets, the machine, the version.

use std::fs;

use gake_core::record::Provenance;
use gake_core::spec::{BodySpec, RequestSource, RunSpec};
use gake_judge::Objective;
use gake_text::redact::{Redacted, Redactor};

/// The provenance of a run in this process, judged against `objectives`.
pub fn origin(objectives: &[Objective], redactor: &Redactor) -> Provenance {
    let words: Vec<_> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    Provenance {
        commands: vec![redactor.command_line(&words)],
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
pub fn spec_json(spec: &RunSpec, redactor: &Redactor) -> Option<Redacted> {
    let mut spec = spec.clone();
    for scenario in &mut spec.scenarios {
        hide_body(&scenario.request.headers, &mut scenario.request.body, redactor);
        hide_headers(&mut scenario.request.headers, redactor);
        if let Some(user) = scenario.request.user.as_mut().filter(|_| !redactor.is_off()) {
            *user = redactor.tag(user.as_bytes()).into_inner();
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
    Some(redactor.json(&json, false)).filter(|kept| kept.len() <= SPEC_JSON_MAX)
}

/// Hides the secrets of a body of the type that the headers name, such as fields of a form.
fn hide_body(headers: &[(String, String)], body: &mut Option<BodySpec>, redactor: &Redactor) {
    let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if let (Some(BodySpec::Bytes(bytes)), Some((_, kind))) = (body, kind) {
        *bytes = redactor.body(kind, bytes).to_vec().into();
    }
}

fn hide_headers(headers: &mut [(String, String)], redactor: &Redactor) {
    for (name, value) in headers {
        *value = redactor.header(name, value.as_bytes()).text().into_inner();
    }
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

    #[test]
    fn a_shell_reads_the_shown_command() {
        let line = ["/usr/bin/gake", "run", "http://h/?a=1&b", "--slo", "p99<50ms", "it's", ""];
        let shown = redactor().command_line(&line.map(str::to_owned));
        assert_eq!(shown, r"gake run 'http://h/?a=1&b' --slo 'p99<50ms' 'it'\''s' ''");
        assert_eq!(crate::options::words(&shown).unwrap()[1..], line[1..]);
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
}
