//! From flags and the file to the proxy's settings.

use std::io::Read;

use gake_shadow::config::{
    Backend, Config, ConfigError, Forwarded, Host, Sample, ServerTls, Shadow, methods, parse_marker,
};
use gake_shadow::exchange::Role;

use crate::cli::{CopyArgs, ForwardedArg, ProxyArgs, ShadowArgs};
use crate::exit::Failure;

/// As a source of noise: the master itself, asked a second time.
const AGAIN: &str = "master";

/// The settings. Flags count more than the file.
pub(super) fn from(args: &ShadowArgs) -> Result<Config, Failure> {
    let mut config = match (&args.config, &args.master) {
        (Some(path), _) => Config::from_file(path).map_err(Failure::usage)?,
        (None, Some(master)) => Config::new(backend(master, "master")?),
        (None, None) => return Err(Failure::usage("name the backend that answers: --master")),
    };
    if let (Some(_), Some(master)) = (&args.config, &args.master) {
        config.set_master(backend(master, "master")?);
    }
    match args.listen {
        Some(listen) => config.listen = listen,
        None if args.config.is_none() => {
            return Err(Failure::usage("say where clients come: --listen 127.0.0.1:8080"));
        }
        None => {}
    }
    for (texts, role, default) in
        [(&args.shadow, Role::Shadow, "shadow"), (&args.noise, Role::Secondary, "secondary")]
    {
        for text in texts {
            let shadow = if role == Role::Secondary && text == AGAIN {
                Shadow::again(&config.master, &format!("{}-again", config.master.name))
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
        config.limits.answer_body = limit;
    }
    config.seed = args.copies.seed.unwrap_or(config.seed);
    config.shadow_nice = args.copies.shadow_nice.unwrap_or(config.shadow_nice);
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
        shadow.sample = sample.parse::<Sample>()?;
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
        let host: Host = host.parse()?;
        let backends = config.shadows.iter_mut().map(|shadow| &mut shadow.backend);
        for backend in backends.chain([&mut config.master]) {
            backend.host = host.clone();
        }
    }
    config.forwarded = match args.forwarded {
        None => config.forwarded,
        Some(ForwardedArg::Append) => Forwarded::Append,
        Some(ForwardedArg::Replace) => Forwarded::Replace,
        Some(ForwardedArg::Off) => Forwarded::Off,
    };
    if let Some(cert) = &args.tls_cert {
        let key = args.tls_key.as_ref().unwrap_or(cert).clone();
        config.tls = Some(ServerTls { cert: cert.clone(), key });
    }
    config.backend_tls.insecure |= args.insecure;
    if let Some(path) = &args.cacert {
        config.backend_tls.cacert = vec![path.clone()];
    }
    let timeouts = &mut config.timeouts;
    for (setting, told) in [
        (&mut timeouts.head, args.head_timeout),
        (&mut timeouts.client, args.client_timeout),
        (&mut timeouts.connect, args.connect_timeout),
        (&mut timeouts.first_byte, args.first_byte_timeout),
        (&mut timeouts.idle, args.idle_timeout),
    ] {
        *setting = told.unwrap_or(*setting);
    }
    Ok(())
}

/// Sets the token for changes, when there is an admin service; returns it when it is new and
/// nobody knows it yet.
pub(super) fn token(args: &ShadowArgs, config: &mut Config) -> Result<Option<String>, Failure> {
    if config.admin.is_none() {
        return Ok(None);
    }
    let told = match (&args.service.admin_token_file, &args.service.admin_token) {
        (Some(path), _) => Some(std::fs::read_to_string(path).map_err(|error| {
            Failure::could_not(format!("the token in {}: {error}", path.display()))
        })?),
        (None, Some(token)) => Some(token.clone()),
        (None, None) => None,
    };
    if let Some(told) = told {
        let token = told.trim();
        if token.is_empty() {
            return Err(Failure::usage("the admin token is empty"));
        }
        config.admin_token = Some(token.to_owned());
        return Ok(None);
    }
    let token = random_token()
        .map_err(|error| Failure::could_not(format!("no token can be made: {error}")))?;
    config.admin_token = Some(token.clone());
    Ok(Some(token))
}

/// 128 bits that nobody can guess.
fn random_token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
