//! From flags and the file to the proxy's settings.

use std::path::Path;

use gake_shadow::config::{
    Backend, Config, ConfigError, ForwardedPolicy, HostPolicy, MarkerSecret, Sampling, ServerTls,
    Shadow, methods, parse_marker,
};
use gake_shadow::exchange::Role;

use crate::cli::{CopyArgs, ForwardedArg, ProxyArgs, ServiceArgs, ShadowArgs};
use gake_session::Failure;
use gake_session::random;

/// Maximum bytes of a secret's file.
const SECRET_BYTES_MAX: u64 = 1 << 16;

/// The `--noise` value for the master itself, which then gets each request twice.
const AGAIN: &str = "master";

/// The settings. Flags override the file.
pub(super) fn from(args: &ShadowArgs) -> Result<Config, Failure> {
    let mut config = match (&args.config, &args.master) {
        (Some(path), _) => Config::from_file(path).map_err(Failure::usage)?,
        (None, Some(master)) => Config::new(backend(master, "master")?),
        (None, None) => {
            return Err(Failure::usage(
                "--master is required: the backend that responds to clients",
            ));
        }
    };
    if let (Some(_), Some(master)) = (&args.config, &args.master) {
        config.set_master(backend(master, "master")?);
    }
    match args.listen {
        Some(listen) => config.listen = listen,
        None if args.config.is_none() => {
            return Err(Failure::usage(
                "--listen is required: the address that clients connect to, such as 127.0.0.1:8080",
            ));
        }
        None => {}
    }
    for (texts, role, default) in
        [(&args.shadow, Role::Shadow, "shadow"), (&args.noise, Role::Secondary, "secondary")]
    {
        for text in texts {
            let shadow = if role == Role::Secondary && text == AGAIN {
                Shadow::repeat_of(&config.master, &format!("{}-again", config.master.name))
            } else {
                Shadow { role, ..Shadow::new(backend(text, default)?) }
            };
            config.shadows.push(shadow);
        }
    }
    for shadow in &mut config.shadows {
        copies(&args.copies, shadow).map_err(Failure::usage)?;
    }
    if let Some(limit) = args.copies.shadow_body_limit {
        config.limits.shadow_body = limit;
    }
    if let Some(limit) = args.copies.answer_body_limit {
        config.limits.response_body = limit;
    }
    config.seed = args.copies.seed.unwrap_or(config.seed);
    config.shadow_nice = args.copies.shadow_nice.unwrap_or(config.shadow_nice);
    config.marker_secret = marker_secret(&args.copies)?;
    http(&args.http, &mut config).map_err(Failure::usage)?;
    config.threads = args.service.threads.unwrap_or(config.threads);
    config.limits.connections = args.service.max_connections.unwrap_or(config.limits.connections);
    config.admin = args.service.admin.or(config.admin);
    Ok(config)
}

fn backend(text: &str, default: &str) -> Result<Backend, Failure> {
    Backend::parse(text, default).map_err(Failure::usage)
}

fn copies(args: &CopyArgs, shadow: &mut Shadow) -> Result<(), ConfigError> {
    shadow.percentage = args.percentage.unwrap_or(shadow.percentage);
    shadow.ramp = args.ramp.or(shadow.ramp);
    if let Some(sample) = &args.sample {
        shadow.sample = sample.parse::<Sampling>()?;
    }
    if !args.shadow_methods.is_empty() {
        shadow.methods = methods(&args.shadow_methods)?;
    }
    if let Some(marker) = &args.marker {
        shadow.marker = parse_marker(marker)?;
    }
    shadow.timeout = args.shadow_timeout.unwrap_or(shadow.timeout);
    shadow.rate = args.shadow_rate.or(shadow.rate);
    shadow.queue = args.shadow_queue.unwrap_or(shadow.queue);
    shadow.connections = args.shadow_connections.unwrap_or(shadow.connections);
    shadow.breaker.failures = args.breaker.unwrap_or(shadow.breaker.failures);
    Ok(())
}

fn http(args: &ProxyArgs, config: &mut Config) -> Result<(), ConfigError> {
    if let Some(host) = &args.host {
        let host: HostPolicy = host.parse()?;
        let backends = config.shadows.iter_mut().map(|shadow| &mut shadow.backend);
        for backend in backends.chain([&mut config.master]) {
            backend.host = host.clone();
        }
    }
    config.forwarded = match args.forwarded {
        None => config.forwarded,
        Some(ForwardedArg::Append) => ForwardedPolicy::Append,
        Some(ForwardedArg::Replace) => ForwardedPolicy::Replace,
        Some(ForwardedArg::Off) => ForwardedPolicy::Off,
    };
    config.underscores_in_headers |= args.underscores_in_headers;
    if let Some(cert) = &args.tls_cert {
        let key = args.tls_key.as_ref().unwrap_or(cert).clone();
        config.tls = Some(ServerTls { cert: cert.clone(), key });
    }
    config.backend_tls.insecure |= args.insecure;
    if let Some(path) = &args.cacert {
        config.backend_tls.cacert = vec![path.clone()];
    }
    let timeouts = &mut config.timeouts;
    for (setting, given) in [
        (&mut timeouts.head, args.head_timeout),
        (&mut timeouts.client, args.client_timeout),
        (&mut timeouts.connect, args.connect_timeout),
        (&mut timeouts.first_byte, args.first_byte_timeout),
        (&mut timeouts.idle, args.idle_timeout),
    ] {
        *setting = given.unwrap_or(*setting);
    }
    Ok(())
}

/// The key that signs the markers of copies.
fn marker_secret(args: &CopyArgs) -> Result<Option<MarkerSecret>, Failure> {
    let CopyArgs { marker_secret_file, marker_secret, .. } = args;
    let given = secret("marker secret", marker_secret_file.as_deref(), marker_secret.as_deref())?;
    given.map(|text| MarkerSecret::new(&text).map_err(Failure::usage)).transpose()
}

/// A secret from a file, or from the environment.
fn secret(
    what: &'static str,
    file: Option<&Path>,
    given: Option<&str>,
) -> Result<Option<String>, Failure> {
    let Some(path) = file else { return Ok(given.map(str::to_owned)) };
    let text = gake_files::read_to_string(path, what, SECRET_BYTES_MAX);
    text.map(Some).map_err(|error| Failure::could_not(format!("the {what}: {error}")))
}

/// Sets the token for changes, when there is an admin service; returns it when it is new and
/// it is not known yet.
pub(super) fn token(args: &ShadowArgs, config: &mut Config) -> Result<Option<String>, Failure> {
    if config.admin.is_none() {
        return Ok(None);
    }
    let ServiceArgs { admin_token_file, admin_token, .. } = &args.service;
    if let Some(text) = secret("token", admin_token_file.as_deref(), admin_token.as_deref())? {
        let token = text.trim();
        if token.is_empty() {
            return Err(Failure::usage("the admin token is empty"));
        }
        config.admin_token = Some(token.to_owned());
        return Ok(None);
    }
    let bytes: [u8; 16] = random::bytes()
        .map_err(|error| Failure::could_not(format!("no token can be made: {error}")))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    config.admin_token = Some(token.clone());
    Ok(Some(token))
}
