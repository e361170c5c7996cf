//! TLS to clients, and to a master that is another proxy.

use std::fs;

use gake_shadow::Proxy;
use gake_shadow::config::{Backend as BackendConfig, Config, ServerTls};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::backend::Backend;
use crate::client::get;
use crate::{config, start, stop};

#[test]
fn tls_is_spoken_to_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    fs::write(path("cert.pem"), cert.pem()).unwrap();
    fs::write(path("key.pem"), signing_key.serialize_pem()).unwrap();
    let tls = ServerTls { cert: path("cert.pem"), key: path("key.pem") };

    let master = Backend::hello();
    let mut inner = config(&master, &[]);
    inner.tls = Some(tls.clone());
    let inner = start(inner);
    let url = format!("https://localhost:{}", inner.addr().port());
    let outer = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::new(BackendConfig::new("inner", &url).unwrap());
        change(&mut config);
        Proxy::new(config).unwrap().start().unwrap()
    };

    let trusting = outer(&|config| {
        config.tls = Some(tls.clone());
        config.backend_tls.cacert = vec![path("cert.pem")];
    });
    let curl = gake_testkit::command("curl")
        .args(["-sS", "--cacert", path("cert.pem").to_str().unwrap()])
        .arg(format!("https://localhost:{}/x", trusting.addr().port()))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&curl.stdout), "hello", "{curl:?}");
    assert_eq!(master.requests()[0].get("x-forwarded-proto"), "https");
    stop(trusting);

    let doubting = outer(&|_| {});
    let response = get(doubting.addr(), "/");
    assert_eq!(response.status, 502);
    assert!(response.body.contains("issuer is not trusted"), "{}", response.body);
    stop(doubting);

    let careless = outer(&|config| config.backend_tls.insecure = true);
    assert_eq!(get(careless.addr(), "/").body, "hello");
    stop(careless);
    stop(inner);
}
