//! The NATS server and the token of a fleet, from flags and environment.

use std::path::Path;

use gake_fleet::{FleetError, FleetToken, NatsSettings};

use crate::cli::NatsArgs;
use crate::exit::Failure;

/// Bytes of a token file that are read.
const TOKEN_MAX: u64 = 4_096;

/// The NATS server and the token.
///
/// # Errors
/// When one of them is missing or cannot be read.
pub fn settings(args: &NatsArgs) -> Result<(NatsSettings, FleetToken), Failure> {
    let missing = "which NATS server? give it by --nats URL or in the variable GAKE_NATS";
    let url = args.nats.clone().or_else(|| variable("GAKE_NATS"));
    let nats = NatsSettings {
        url: url.ok_or_else(|| Failure::usage(missing))?,
        ca_certificates: args.nats_ca.clone(),
        identity: args.nats_cert.clone().zip(args.nats_key.clone()),
    };
    let secret = match &args.fleet_token_file {
        Some(path) => read(path)?,
        None => variable("GAKE_FLEET_TOKEN").ok_or_else(|| {
            Failure::usage(
                "a fleet needs a token: give it by --fleet-token-file FILE or in the variable \
                 GAKE_FLEET_TOKEN",
            )
        })?,
    };
    Ok((nats, FleetToken::new(&secret).map_err(failure)?))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = gake_files::read(path, "token", TOKEN_MAX).map_err(Failure::could_not)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("the token in {} is not UTF-8", path.display())))
}

/// What a fleet cannot do, as an error of the command line.
pub fn failure(error: FleetError) -> Failure {
    match error {
        FleetError::Spec(_) | FleetError::Token(_) => Failure::usage(error),
        error => Failure::could_not(error),
    }
}
