//! The sampler against sources that live and die.

// All of it is test code.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use gake_core::record::{GaugeReading, UNANSWERED, WatchRecord};
use gake_lab::{Lab, LabConfig};
use gake_watch::{Batch, Sampler};

const EVERY: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);

fn sampler(sources: &[&str]) -> Sampler {
    let sources = sources.iter().map(|source| source.parse().unwrap()).collect();
    Sampler::start(sources, EVERY, || ()).unwrap()
}

/// Batches until one is what is waited for.
fn until<T>(sampler: &Sampler, mut wanted: impl FnMut(Batch) -> Option<T>) -> T {
    loop {
        let batch = sampler.batches.recv_timeout(PATIENCE).expect("the source fell silent");
        if let Some(found) = wanted(batch) {
            return found;
        }
    }
}

fn level(readings: &[GaugeReading], name: &str) -> Option<f64> {
    readings.iter().find(|reading| reading.name == name).map(|reading| reading.value)
}

#[test]
fn a_lab_is_watched_by_its_port_and_by_its_metrics() {
    let lab = Lab::start(LabConfig { threads: Some(4), ..LabConfig::default() }).unwrap();
    let port = format!("port:{}", lab.addr().port());
    let metrics = format!("prometheus:http://{}/metrics", lab.addr());
    let sampler = sampler(&[&port, &metrics]);
    let mut watched = WatchRecord::default();
    let (mut has_cpu, mut has_pool) = (false, false);
    until(&sampler, |batch| {
        if let Batch::Readings { at, readings } = &batch {
            watched.add(*at, readings);
            has_cpu |= level(readings, "cpu").is_some();
            has_pool |= level(readings, "pool") == Some(0.0);
        }
        (has_cpu && has_pool).then_some(())
    });
    let sources: Vec<_> = watched.named("established").map(|gauge| gauge.source.clone()).collect();
    assert_eq!(sources, [port.clone(), metrics.clone()]);
    assert!(watched.named("rss").next().unwrap().max().unwrap() > 1e6);
    lab.shutdown();
    let reason = until(&sampler, |batch| match batch {
        Batch::Failed { reason, .. } if reason.starts_with(&metrics) => Some(reason),
        _ => None,
    });
    assert!(reason.contains("cannot be watched"), "{reason}");
}

#[test]
fn chosen_metrics_alone_are_taken() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    let source = format!("prometheus:http://{}/metrics#gake_lab_in_flight", lab.addr());
    let sampler = sampler(&[&source]);
    let names = until(&sampler, |batch| match batch {
        Batch::Readings { readings, .. } => {
            Some(readings.into_iter().map(|reading| reading.name).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(names, ["gake_lab_in_flight"]);
}

#[test]
fn an_application_tells_its_levels_and_its_settings() {
    let url = application();
    let sampler = sampler(&[&format!("actuator:{url}/actuator")]);
    let settings = until(&sampler, |batch| match batch {
        Batch::Settings(settings) => Some(settings),
        _ => None,
    });
    assert_eq!(
        (settings[0].name.as_str(), settings[0].value.as_str()),
        ("server.tomcat.threads.max", "200")
    );
    let readings = until(&sampler, |batch| match batch {
        Batch::Readings { readings, .. } => Some(readings),
        _ => None,
    });
    assert_eq!(level(&readings, "pool"), Some(0.25));
    assert_eq!(level(&readings, "pool_busy"), Some(50.0));
    assert_eq!(level(&readings, "db_pool"), None);
}

#[test]
fn a_source_that_cannot_be_read_is_told_before_the_run() {
    let lab = Lab::start(LabConfig::default()).unwrap();
    for (source, said) in [
        ("pid:2147483647".to_owned(), "no process"),
        (format!("prometheus:http://{}/fast", lab.addr()), "no Prometheus metrics"),
        (format!("prometheus:http://{}/nothing-here", lab.addr()), "404"),
        (format!("prometheus:http://{}/metrics#absent", lab.addr()), "no metric absent"),
        (format!("actuator:http://{}/actuator", lab.addr()), "404"),
    ] {
        let error =
            Sampler::start(vec![source.parse().unwrap()], EVERY, || ()).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("cannot be watched"), "{source}: {error}");
    }
}

/// A target that has no other connection to give, as one under load.
#[test]
fn a_late_answer_is_silence_and_then_a_reading_on_the_same_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("prometheus:http://{}/metrics#up", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        drop(listener);
        let mut bytes = [0; 4096];
        for number in 0.. {
            if !matches!(client.read(&mut bytes), Ok(1..)) {
                return;
            }
            if number == 1 {
                std::thread::sleep(20 * EVERY);
            }
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup {number}\n");
            if client.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    let sampler = sampler(&[&source]);
    let (mut silent, mut reasons) = (0, Vec::new());
    until(&sampler, |batch| match batch {
        Batch::Readings { readings, .. } if level(&readings, UNANSWERED).is_some() => {
            silent += 1;
            None
        }
        Batch::Readings { readings, .. } => (level(&readings, "up")? >= 3.0).then_some(()),
        Batch::Failed { reason, .. } => {
            reasons.push(reason);
            None
        }
        _ => None,
    });
    // Those due within the second, but for the first; fewer where this thread had no core.
    assert!((1..=20).contains(&silent), "{silent}");
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].ends_with("no answer within 0.1 s"), "{reasons:?}");
}

/// A Spring Boot application, as far as Actuator shows it.
fn application() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            std::thread::spawn(move || answer(client));
        }
    });
    url
}

fn answer(mut client: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = client.read(&mut bytes) {
        let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let path = request.split(' ').nth(1).unwrap_or_default();
        let value =
            |value: f64| format!(r#"{{"measurements":[{{"statistic":"VALUE","value":{value}}}]}}"#);
        let body = match path.strip_prefix("/actuator/").unwrap_or_default() {
            "metrics" => {
                r#"{"names":["tomcat.threads.busy","tomcat.threads.config.max","x"]}"#.to_owned()
            }
            "metrics/tomcat.threads.busy" => value(50.0),
            "metrics/tomcat.threads.config.max" => value(200.0),
            "configprops" => r#"{"contexts":{"a":{"beans":{"b":{"prefix":"server",
                "properties":{"tomcat":{"threads":{"max":200}}}}}}}}"#
                .to_owned(),
            _ => String::new(),
        };
        let status = if body.is_empty() { "404 Not Found" } else { "200 OK" };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if client.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
