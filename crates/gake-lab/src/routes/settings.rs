//! `/config`: the settings in force, as JSON.

use std::time::Duration;

use gake_text::duration::format_duration;
use serde_json::json;

use crate::DatabaseKind;
use crate::shared::Shared;

/// Absent settings are `null`; durations are written as on the command line.
pub(crate) fn render(shared: &Shared) -> String {
    let config = &shared.config;
    let text = |duration: Duration| format_duration(duration);
    let service = config.service.map(|service| {
        json!({
            "distribution": service.to_string(),
            "mean_s": service.mean().as_secs_f64(),
            "scv": service.scv(),
        })
    });
    let stall = config
        .stall
        .map(|stall| json!({ "after": text(stall.after), "length": text(stall.length) }));
    let metastable = config.metastable.map(
        |rule| json!({ "wait": text(rule.wait), "factor": rule.factor, "rest": text(rule.rest) }),
    );
    let database = config.database.as_ref().map(|db| {
        let model = match &db.kind {
            DatabaseKind::Model(model) => Some(model),
            // Its URL may contain a password.
            DatabaseKind::Real(_) => None,
        };
        json!({
            "connect": model.map(|model| text(model.connect)),
            "statement": model.map(|model| text(model.statement)),
            "server_max": model.and_then(|model| model.server_max),
            "max_open": db.max_open,
            "max_idle": db.max_idle,
            "acquire_timeout": db.acquire_timeout.map(text),
            "lifetime": db.lifetime.map(text),
            "lose_every": db.lose_every,
        })
    });
    let settings = json!({
        "listen": shared.addr.to_string(),
        "unix_socket": config.unix_socket,
        "cores": shared.counters.len(),
        "threads": config.threads,
        "queue": config.queue,
        "accept_count": config.accept_count,
        "max_connections": config.max_connections,
        "connection_timeout": config.connection_timeout.map(text),
        "service": service,
        "metastable": metastable,
        "seed": config.seed,
        "database": database,
        "stall": stall,
        "stall_every": config.stall_every.map(text),
        "leak_every": config.leak_every,
        "h2_max_streams": config.h2_max_streams,
        "goaway_every": config.goaway_every,
        "reset_rate": config.reset_rate,
        "tls": config.tls,
        "early_data": config.early_data,
        "reject_early_data_every": config.reject_early_data_every,
        "record_arrivals": config.record_arrivals,
    });
    format!("{settings:#}\n")
}
