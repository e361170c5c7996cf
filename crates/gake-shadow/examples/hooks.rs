//! A shadow proxy with hooks: cargo run -p gake-shadow --example hooks

use std::fs::File;
use std::io::Write;

use gake_shadow::Proxy;
use gake_shadow::config::{Backend, Config, Shadow};
use gake_shadow::hooks::{HookSet, Selection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::new(Backend::new("production", "http://127.0.0.1:8081")?);
    config.listen = "127.0.0.1:8080".parse()?;
    config.shadows.push(Shadow::new(Backend::new("sandbox", "http://127.0.0.1:8082")?));
    let log = File::create("outcomes.log")?;
    let hooks = HookSet::new()
        .on_select_backends(|request| match request.uri.path() {
            "/health" => Selection::Names(vec!["production".to_owned()]),
            _ => Selection::All,
        })
        .on_munge_request(|backend, request| {
            if backend == "sandbox" {
                request.headers.remove("authorization");
            }
        })
        .on_backends_finished(move |exchange| {
            let outcomes = exchange.backends.iter().map(|outcome| match &outcome.result {
                Ok(response) => format!("{} {}", outcome.name, response.status.as_u16()),
                Err(failure) => format!("{} {failure}", outcome.name),
            });
            let outcomes = outcomes.collect::<Vec<_>>().join(", ");
            let _ = writeln!(&log, "{}: {outcomes}", exchange.request.uri);
        });
    let proxy = Proxy::new(config)?.hooks(hooks).start()?;
    // Until the proxy is stopped through its control.
    let _ = proxy.join();
    Ok(())
}
