//! A shadow proxy with hooks: cargo run -p gake-shadow --example hooks

use gake_shadow::Proxy;
use gake_shadow::config::{Backend, Config, Shadow};
use gake_shadow::hooks::{HookSet, Selection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::new(Backend::new("production", "http://127.0.0.1:8081")?);
    config.listen = "127.0.0.1:8080".parse()?;
    config.shadows.push(Shadow::new(Backend::new("sandbox", "http://127.0.0.1:8082")?));
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
        .on_backends_finished(|exchange| {
            let outcomes = exchange.backends.iter().map(|outcome| match &outcome.result {
                Ok(answer) => format!("{} {}", outcome.name, answer.status.as_u16()),
                Err(failure) => format!("{} {failure}", outcome.name),
            });
            eprintln!("{}: {}", exchange.request.uri, outcomes.collect::<Vec<_>>().join(", "));
        });
    let proxy = Proxy::new(config)?.hooks(hooks).start()?;
    // Until somebody ends it: proxy.control() does.
    let _ = proxy.join();
    Ok(())
}
