//! Errors of a spec in the words of the command line: by the flag of the field that is wrong.

use gake_core::spec::{FieldPath, SpecError};
use gake_run::RunError;

use crate::Failure;

/// The fields of a spec that have a flag, and the flag.
const FLAGS: &[(&str, &str)] = &[
    ("rate", "--rate"),
    ("stages", "--stages"),
    ("users", "--users"),
    ("connections", "-c"),
    ("duration", "-d"),
    ("requests", "-n"),
    ("iterations_per_user", "--once"),
    ("warmup", "--warmup"),
    ("arrivals", "--arrivals"),
    ("seed", "--seed"),
    ("think", "--think"),
    ("lanes", "--max-in-flight"),
    ("overflow", "--overflow"),
    ("graceful_stop", "--drain"),
    ("threads", "--threads"),
    ("spin", "--spin"),
    ("max_series", "--max-series"),
    ("to", "--target"),
    ("speed", "--speed"),
    ("select", "--select"),
    ("method", "--method"),
    ("headers", "--header"),
    ("body", "--data"),
    ("user", "--user"),
    ("expect", "--expect"),
    ("expect_body", "--expect-body"),
    ("ws_message", "--ws-message"),
    ("ws_expect", "--ws-expect"),
    ("ws_send_only", "--ws-send-only"),
    ("proto", "--proto"),
    ("proto_paths", "--proto-path"),
    ("stream", "--stream"),
    ("body_errors", "--body-errors"),
    ("abort", "--abort"),
    ("timeout", "--timeout"),
    ("connect_timeout", "--connect-timeout"),
    ("first_byte_timeout", "--first-byte-timeout"),
    ("connect_rate", "--connect-rate"),
    ("sources", "--interface"),
    ("http", "--http"),
    ("keepalive", "--no-keepalive"),
    ("max_redirects", "--max-redirs"),
    ("streams", "--streams"),
    ("resolve", "--resolve"),
    ("connect_to", "--connect-to"),
    ("proxy", "--proxy"),
    ("certificate", "--cert"),
    ("key", "--key"),
    ("ca_certificates", "--cacert"),
    ("min_version", "--tls-min"),
    ("max_version", "--tls-max"),
    ("ciphers", "--ciphers"),
    ("session_tickets", "--session-tickets"),
    ("early_data", "--tls-early-data"),
    ("ech", "--ech"),
    ("key_log", "--key-log"),
    ("objectives", "--slo"),
    ("watch", "--watch"),
];

/// The flag of a field.
pub fn flag(field: &str) -> Option<&'static str> {
    FLAGS.iter().find(|(known, _)| *known == field).map(|(_, flag)| *flag)
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        failure(&error)
    }
}

/// What is wrong, in the words of the command line.
pub fn failure(error: &RunError) -> Failure {
    match error {
        RunError::Cannot(problem) | RunError::Sink(problem) => Failure::could_not(problem),
        RunError::Spec(SpecError { path, problem }) => Failure::usage(said(path, problem)),
    }
}

/// What is wrong with a field, in terms of its flag.
fn said(path: &FieldPath, problem: &str) -> String {
    let Some(flag) = path.field().and_then(flag) else { return problem.to_owned() };
    let problem = problem.replace("iterations_per_user", "--once");
    match problem.strip_prefix("it ") {
        Some(rest) => {
            let rest = rest.replace("needs a rate", "needs a --rate");
            format!("{flag} {}", rest.replace("an objective", "an objective (--slo)"))
        }
        None => format!("{flag}: {problem}"),
    }
}
