//! Accounts of NATS with the permissions that docs/fleet.md gives: they are enough, and two accounts
//! do not see each other.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use super::fleet::*;
use crate::support::*;

const DOCS: &str = include_str!("../../../../docs/fleet.md");

/// The configuration in the documentation.
fn documented() -> String {
    let block = DOCS.lines().skip_while(|line| *line != "    accounts {");
    let block = block.take_while(|line| line.starts_with("    "));
    let config: Vec<_> = block.map(|line| &line[4..]).collect();
    assert!(config.len() > 5, "{config:?}");
    config.join("\n")
}

/// A command at the server as one of its users.
fn as_user(nats: &Nats, user: &str, line: &str) -> Started {
    start(with(nats, TOKEN, &words(line)).env("GAKE_NATS", nats.url_of(user)))
}

/// A pair of keys from the documentation of NATS.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

#[test]
fn a_key_of_nats_opens_its_server() {
    let nats = Nats::configured(&format!("authorization {{ users: [ {{ nkey: {PUBLIC} }} ] }}"));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let ls =
        |flags: &str| start(&mut with(&nats, TOKEN, &words(&format!("fleet ls {flags}")))).wait();
    let both = file("both", &format!("{SEED}\n{PUBLIC}\n"));
    ls(&format!("--nats-nkey {both}")).done();
    ls("").refused(1, "authorization violation");
    let none = file("none", PUBLIC);
    ls(&format!("--nats-nkey {none}")).refused(2, "no seed of a user key found");
    let broken = ls(&format!("--nats-creds {none}"));
    broken.refused(1, "cannot parse user JWT from the credentials file");
    ls(&format!("--nats-nkey {both} --nats-creds {both}")).refused(2, "cannot be used with");
}

#[test]
fn credentials_open_a_server_of_an_operator() {
    let nats = Nats::configured(include_str!("../peers/nats/server.conf"));
    let creds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/nats/agent.creds");
    let flags = ["--nats-creds", creds.to_str().unwrap()];
    let agent = agents(&nats, &["a"], &[HERE, &flags].concat());
    let lab = lab();
    let mut run = run_of(&nats, &url(&lab, "/fast"), "-r 50 -d 1s --agents 1");
    let ran = start(run.args(flags)).wait().done();
    assert_eq!([ran.json().count("requests.ok"), lab.stats().requests], [50, 50], "{ran:?}");
    start(&mut with(&nats, TOKEN, &["fleet", "ls"])).wait().refused(1, "authorization violation");
    end(agent);
}

#[test]
fn a_server_with_tls_and_its_clients_know_each_other_by_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let own = authority("one");
    let signed = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &own).unwrap();
        let path = write(&format!("{name}.pem"), &certificate.pem());
        (path, write(&format!("{name}.key"), &key.serialize_pem()))
    };
    let (ca, other) =
        (write("ca.pem", &own.pem()), write("other.pem", &authority("another").pem()));
    let ((server, server_key), (client, client_key)) = (signed("server"), signed("client"));
    let nats = Nats::configured(&format!(
        "tls {{ cert_file: {server:?}, key_file: {server_key:?}, ca_file: {ca:?}, verify: true }}"
    ));
    let identity = ["--nats-cert", &client, "--nats-key", &client_key];
    let flags = [&["--nats-ca", &ca][..], &identity].concat();
    let agent = agents(&nats, &["a"], &[HERE, &flags].concat());
    let lab = lab();
    let mut run = run_of(&nats, &url(&lab, "/fast"), "-r 50 -d 1s --agents 1");
    let ran = start(run.args(&flags)).wait().done();
    assert_eq!([ran.json().count("requests.ok"), lab.stats().requests], [50, 50], "{ran:?}");
    let ls =
        |flags: &[&str]| start(&mut with(&nats, TOKEN, &[&["fleet", "ls"], flags].concat())).wait();
    assert!(ls(&flags).done().stdout.starts_with("a  free"));
    let untrusted = "its certificate's issuer is not trusted";
    ls(&identity).refused(1, untrusted);
    ls(&[&["--nats-ca", &other][..], &identity].concat()).refused(1, untrusted);
    ls(&["--nats-ca", &ca]).refused(1, "if it requires a client certificate, give one");
    end(agent);
}

#[test]
fn the_documented_permissions_are_enough_and_accounts_do_not_see_each_other() {
    let (nats, lab) = (Nats::configured(&documented()), lab());
    let parent = std::process::id();
    let agent = |name: &str, user: &str| {
        let line = format!("agent --name {name} --allow 127.0.0.0/8 --cores 1 --parent {parent}");
        as_user(&nats, user, &line)
    };
    let all = vec![agent("a", "agent"), agent("b", "agent"), agent("theirs", "other")];
    let url = url(&lab, "/fast");
    let run = |user: &str, flags: &str| {
        as_user(&nats, user, &format!("run {url} --agents-wait 60s -o json {flags}"))
    };
    // Both agents, their figures, and a journal: without one, 60 s are refused.
    let ran = run("run", "-r 100 -d 1s --agents 2 --attach-within 60s").wait().done();
    let counts = [ran.json().count("requests.ok"), lab.stats().requests];
    assert_eq!(counts, [100, 100], "{ran:?}");
    for (user, own, hidden) in [("run", &["a", "b"][..], "theirs"), ("other", &["theirs"][..], "a")]
    {
        eventually("its own agents are listed", || {
            let listed = as_user(&nats, user, "fleet ls").wait().stdout;
            let names: Vec<_> = listed.lines().map(|line| words(line)[0]).collect();
            assert!(!names.contains(&hidden), "{user}: {listed}");
            names == own
        });
    }
    // Other accounts cannot use the agents, and the agents' account starts no runs.
    for (user, told) in
        [("other", "1 of 2 agents are available"), ("agent", "0 of 2 agents are available")]
    {
        let line = format!("run {url} -r 9 -d 1s --agents 2 --agents-wait 1500ms");
        as_user(&nats, user, &line).wait().refused(1, told);
    }
    // A run's coordinator ends it and confirms the request.
    let going = run("run", "-r 100 -d 600s --agents 2 --drain 20s");
    eventually("the run continues", || lab.stats().requests > 120);
    let listed = as_user(&nats, "run", "fleet ls").wait().stdout;
    let id = words(&listed)[1].to_owned();
    as_user(&nats, "other", &format!("fleet stop {id}")).wait().refused(1, "there is no run");
    let stopped = as_user(&nats, "run", &format!("fleet stop {id}")).wait().done();
    assert!(stopped.stderr.contains("its coordinator ends the run"), "{stopped:?}");
    let ended = going.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_eq!(ended.json().written() + 100, lab.stats().requests, "it drained");
    let logs = as_user(&nats, "run", "fleet logs a").wait().done().stdout;
    assert!(logs.contains("a  done"), "{logs}");
    end(all);
}
