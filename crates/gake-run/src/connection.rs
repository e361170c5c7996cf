//! Connection settings of a spec, for the wire.

use std::sync::Arc;

use gake_codec::http1::{ResponseLimits, Version};
use gake_core::spec::{
    ConnectionSpec, FieldPath, HttpVersion, IpFamily, RunSpec, ScenarioSpec, TlsSpec, WebSocketSpec,
};
use gake_wire::{
    BodyCheck, BodyCheckError, ClientSettings, Inspection, KeepLimits, Protocol, RedirectRules,
    ReplyRule, Resolver, SourceAddresses, TlsKeyLog, TlsOptions, tls_suites,
};

use crate::RunError;

/// Settings for up to `connections` connections with `streams` each: shared by all users
/// (`pooled`), or one set for each user.
pub(crate) fn settings(
    spec: &ConnectionSpec,
    pooled: bool,
    (connections, streams): (usize, usize),
) -> Result<ClientSettings, RunError> {
    let mut sources = SourceAddresses::default();
    let list = FieldPath::root().key("connection").key("sources");
    for (i, source) in spec.sources.iter().enumerate() {
        sources.add(source).map_err(|error| RunError::spec(list.index(i), error))?;
    }
    Ok(ClientSettings {
        labels: false,
        timeouts: spec.timeouts(),
        keepalive: spec.keepalive,
        pooled,
        connections,
        idle_connections: spec.idle_connections,
        connect_rate: spec.connect_rate,
        sources,
        limits: ResponseLimits::default(),
        max_redirects: spec.max_redirects,
        redirect_rules: RedirectRules::default(),
        keep: spec.keep_answers.map(|responses| KeepLimits {
            responses,
            body_bytes: spec.keep_body_bytes.unwrap_or(0),
        }),
        max_idle: spec.max_idle,
        inspect: None,
        stream: false,
        feed: None,
        version: match spec.http {
            HttpVersion::Http10 => Version::Http10,
            _ => Version::Http11,
        },
        protocol: protocol(spec.http),
        streams,
        stream_window: spec.stream_window,
        connection_window: spec.connection_window,
        reply: ReplyRule::Next,
        permit: None,
        dns_ttl: spec.dns_ttl,
    })
}

/// The inspection of a scenario's responses, if it needs one.
pub(crate) fn inspection(
    scenario: &ScenarioSpec,
    at: &FieldPath,
) -> Result<Option<Inspection>, RunError> {
    let check = scenario.expect_body.as_deref().map(str::parse::<BodyCheck>).transpose();
    let body = check.map_err(|error| RunError::spec(at.key("expect_body"), error))?.map(Arc::new);
    let failed_bodies = scenario.body_errors;
    let expect = scenario.expect.clone();
    Ok((failed_bodies || body.is_some()).then_some(Inspection { expect, failed_bodies, body }))
}

/// The message that ends an exchange of a WebSocket session.
pub(crate) fn reply_rule(websocket: &WebSocketSpec, at: &FieldPath) -> Result<ReplyRule, RunError> {
    match &websocket.expect {
        _ if websocket.send_only => Ok(ReplyRule::None),
        None => Ok(ReplyRule::Next),
        Some(check) => check
            .parse()
            .map(ReplyRule::Matching)
            .map_err(|error: BodyCheckError| RunError::spec(at.key("ws_expect"), error)),
    }
}

/// The protocol of connections that speak a version of HTTP.
pub(crate) const fn protocol(version: HttpVersion) -> Protocol {
    match version {
        HttpVersion::Http10 | HttpVersion::Http11 => Protocol::Http1,
        HttpVersion::Http2 => Protocol::Http2,
        HttpVersion::Auto => Protocol::Negotiated,
        HttpVersion::Http3 => Protocol::Http3,
        HttpVersion::Auto3 => Protocol::Advertised,
    }
}

/// The resolver: address family, proxy, and rules that override DNS.
pub(crate) fn resolver(spec: &RunSpec) -> Result<Resolver, RunError> {
    let (spec, at) = (&spec.connection, FieldPath::root().key("connection"));
    let mut resolver = Resolver::default();
    resolver.unix_socket.clone_from(&spec.unix_socket);
    (resolver.family, resolver.prefers) = match spec.family {
        None => (None, None),
        Some(IpFamily::Ipv4) => (Some(4), None),
        Some(IpFamily::Ipv6) => (Some(6), None),
        Some(IpFamily::PreferIpv4) => (None, Some(4)),
        Some(IpFamily::PreferIpv6) => (None, Some(6)),
    };
    resolver.takes_first = spec.first_address;
    let proxy = spec.proxy.as_deref().map(str::parse).transpose();
    resolver.proxy = proxy.map_err(|error| RunError::spec(at.key("proxy"), error))?;
    for (i, rule) in spec.resolve.iter().enumerate() {
        let path = at.key("resolve").index(i);
        resolver.fix(rule).map_err(|error| RunError::spec(path, error))?;
    }
    for (i, rule) in spec.connect_to.iter().enumerate() {
        let path = at.key("connect_to").index(i);
        let rule = rule.parse().map_err(|error| RunError::spec(path, error))?;
        resolver.connect_to.push(rule);
    }
    Ok(resolver)
}

/// TLS options, without the key log.
pub(crate) fn tls(spec: &TlsSpec) -> Result<TlsOptions, RunError> {
    let list = FieldPath::root().key("tls").key("ciphers");
    for (i, name) in spec.ciphers.iter().enumerate() {
        if !tls_suites().any(|known| known == *name) {
            let known: Vec<String> = tls_suites().collect();
            let problem =
                format!("{name:?} is not a cipher suite; known suites are {}", known.join(", "));
            return Err(RunError::spec(list.index(i), problem));
        }
    }
    Ok(TlsOptions {
        insecure: spec.insecure,
        cacert: spec.ca_certificates.clone(),
        session_tickets: spec.session_tickets,
        early_data: spec.early_data,
        cert: spec.certificate.clone(),
        key: spec.key.clone(),
        version: spec.only_version(),
        ciphers: spec.ciphers.clone(),
        ech: spec.ech.clone(),
        ..TlsOptions::default()
    })
}

/// Opens the TLS key log, if the spec has one.
pub(crate) fn key_log(spec: &TlsSpec) -> Result<Option<Arc<TlsKeyLog>>, RunError> {
    let Some(path) = &spec.key_log else { return Ok(None) };
    let log = TlsKeyLog::open(path)
        .map_err(|error| RunError::cannot(format!("the key log {}: {error}", path.display())))?;
    Ok(Some(Arc::new(log)))
}
