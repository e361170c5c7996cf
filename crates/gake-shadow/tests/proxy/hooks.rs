//! Hooks: selection, changes, and failures.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use expect_test::expect;
use gake_shadow::config::BreakerConfig;
use gake_shadow::exchange::{BackendFailure, RequestIds, Role};
use gake_shadow::hooks::{
    ChangeScope, HookCounts, HookError, HookRequest, HookRequestHead, HookSet, HookTimeout, Hooks,
    SelectFailure, Selection,
};
use gake_shadow::{Category, Proxy, RunningProxy};

use crate::backend::{Backend, ok, read_request};
use crate::client::{get, post, send_raw};
use crate::{LONG, config, stop, until, until_count};

fn named(name: &'static str) -> Backend {
    Backend::responding(move |seen| ok(&format!("{name}:{}", seen.text())))
}

fn with(hooks: HookSet, master: &Backend, shadows: &[&Backend]) -> RunningProxy {
    // A limit that is never reached.
    let proxy = Proxy::new(config(master, shadows)).unwrap().hooks(hooks).hook_limit(LONG);
    proxy.start().unwrap()
}

fn names(names: &[&str]) -> Selection {
    Selection::Names(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn selected_backends_get_the_request() {
    let (master, one, two) = (named("master"), named("one"), named("two"));
    let hooks = HookSet::new().on_select_backends(|head| match head.uri.path() {
        "/one" => names(&["master", "s0"]),
        "/master" => names(&["master"]),
        "/unknown" => names(&["master", "missing"]),
        "/none" => names(&[]),
        "/missing" => names(&["missing"]),
        "/shadow" => names(&["s1"]),
        _ => Selection::All,
    });
    let proxy = with(hooks, &master, &[&one, &two]);
    let of = |path: &str| {
        let response = get(proxy.addr(), path);
        (response.status, response.body)
    };
    for path in ["/all", "/one", "/master", "/unknown"] {
        assert_eq!(of(path), (200, "master:".to_owned()), "{path}");
    }
    for path in ["/none", "/missing"] {
        let (status, body) = of(path);
        assert_eq!(status, 421, "{path}");
        expect![[r#"
            gake: 421 Misdirected Request no backend was selected that may receive this request
        "#]]
        .assert_eq(&body);
    }
    assert_eq!(of("/shadow"), (200, "two:".to_owned()), "a selected shadow responds");
    assert_eq!(proxy.control().hooks().unknown_names, 2);
    let summary = stop(proxy);
    let counts = |number: usize| {
        let ledger = &summary.ledgers[number];
        [Category::Ok, Category::Unselected, Category::Raced].map(|c| ledger.count(c))
    };
    assert_eq!((counts(0), counts(1)), ([2, 5, 0], [1, 5, 1]));
}

#[test]
fn a_request_has_the_same_numbers_in_every_hook() {
    let (master, one) = (named("master"), named("one"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |seen: &Arc<Mutex<Vec<_>>>, place: &str, path: &str, ids: RequestIds| {
        seen.lock().unwrap().push((path.to_owned(), place.to_owned(), ids));
    };
    let [selected, munged, finished] = [(); 3].map(|()| Arc::clone(&seen));
    let hooks = HookSet::new()
        .on_select_backends(move |head| {
            note(&selected, "select", head.uri.path(), head.ids);
            Selection::All
        })
        .on_munge_body(move |backend, request| {
            note(&munged, backend, request.uri.path(), request.ids);
        })
        .on_backends_finished(move |exchange| {
            note(&finished, "finished", exchange.request.uri.path(), exchange.ids);
        });
    let proxy = with(hooks, &master, &[&one]);
    let kept =
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    send_raw(proxy.addr(), kept.as_bytes());
    get(proxy.addr(), "/c");
    until("every hook was called", || seen.lock().unwrap().len() == 12);
    stop(proxy);
    let seen = seen.lock().unwrap();
    let ids = |path: &str| {
        let mut calls = seen.iter().filter(|(of, ..)| of == path);
        let first = calls.next().unwrap().2;
        let others: Vec<_> = calls.map(|(_, place, ids)| (place.as_str(), *ids)).collect();
        assert_eq!(others.len(), 3);
        assert!(others.iter().all(|(_, ids)| *ids == first), "{path}: {first:?} {others:?}");
        first
    };
    let (a, b, c) = (ids("/a"), ids("/b"), ids("/c"));
    assert_eq!((a.sequence, b.sequence, c.sequence), (1, 2, 1));
    assert!(a.connection == b.connection && a.connection != c.connection);
    assert!(a.id != b.id && b.id != c.id && a.id != c.id);
}

#[test]
fn the_first_response_wins_a_race() {
    let deaf = Backend::raw(|mut stream, _| drop(stream.read_to_end(&mut Vec::new())));
    let quick = named("quick");
    let hooks = || HookSet::new().on_select_backends(|_| Selection::Race);
    let proxy = with(hooks(), &deaf, &[&Backend::refusing(), &quick]);
    assert_eq!(post(proxy.addr(), "/", "body").body, "quick:body");
    stop(proxy);
    let proxy = with(hooks(), &Backend::refusing(), &[&Backend::refusing()]);
    assert_eq!(get(proxy.addr(), "/").status, 502, "all have failed");
    stop(proxy);
}

#[test]
fn each_backend_gets_its_own_changes() {
    let (master, shadow) = (named("master"), named("shadow"));
    let hooks = HookSet::new()
        .on_munge_request(|backend, request| {
            request.headers.insert("x-for", backend.parse().unwrap());
        })
        .on_munge_body(|backend, request| {
            if backend == "s0" {
                request.uri = "/changed?x=1".parse().unwrap();
                request.method = "PUT".parse().unwrap();
                request.body = Some("another body".into());
            }
        });
    let proxy = with(hooks, &master, &[&shadow]);
    assert_eq!(post(proxy.addr(), "/", "body").body, "master:body");
    until_count(&proxy, 0, Category::Ok, 1);
    let (master, shadow) = (master.requests().remove(0), shadow.requests().remove(0));
    assert_eq!((master.line.as_str(), master.get("x-for")), ("POST / HTTP/1.1", "master"));
    assert_eq!((shadow.line.as_str(), shadow.get("x-for")), ("PUT /changed?x=1 HTTP/1.1", "s0"));
    assert_eq!(shadow.text(), "another body");
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(post(proxy.addr(), "/", &large).status, 413, "the body exceeds the buffer limit");
    stop(proxy);
}

#[test]
fn a_buffered_body_has_a_length_at_every_backend() {
    let (master, shadow) = (named("master"), named("shadow"));
    let hooks = HookSet::new().on_munge_body(|backend, request| {
        if backend == "master" {
            request.body = Some("changed".into());
        }
    });
    let proxy = with(hooks, &master, &[&shadow]);
    let body = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close";
    send_raw(proxy.addr(), format!("{head}\r\n\r\n{:X}\r\n{body}\r\n0\r\n\r\n", body.len()));
    until_count(&proxy, 0, Category::Ok, 1);
    let seen = shadow.requests();
    assert_eq!((seen.len(), seen[0].text().as_str(), shadow.leftovers()), (1, body, 0));
    stop(proxy);
}

#[test]
fn a_hook_that_panics_is_contained() {
    let (master, shadow) = (named("master"), named("shadow"));
    let hooks = HookSet::new()
        .on_select_backends(|_| panic!("a hook panics, as the test wants it"))
        .on_munge_request(|_, _| panic!("another hook panics, as the test wants it"))
        .on_backends_finished(|_| panic!("the last hook panics, as the test wants it"));
    let proxy = Proxy::new(config(&master, &[&shadow])).unwrap().hooks(hooks).hook_limit(LONG);
    let proxy = proxy.on_select_failure(SelectFailure::All).start().unwrap();
    for _ in 0..3 {
        assert_eq!(get(proxy.addr(), "/").body, "master:");
    }
    until_count(&proxy, 0, Category::MungeFailed, 3);
    // Four hooks per request.
    until("twelve panics", || proxy.control().hooks().panics == 12);
    assert!(shadow.requests().is_empty(), "a copy is not sent unchanged");
    stop(proxy);
}

#[test]
fn after_a_failed_selection_only_the_master_gets_the_request() {
    let (master, shadow) = (named("master"), named("shadow"));
    let failing = || HookSet::new().on_select_backends(|_| panic!("as the test wants it"));
    let proxy = with(failing(), &master, &[&shadow]);
    for _ in 0..3 {
        assert_eq!(get(proxy.addr(), "/").body, "master:");
    }
    let ledger = &stop(proxy).ledgers[0];
    assert_eq!((ledger.count(Category::SelectFailed), ledger.received), (3, 3));
    assert!(shadow.requests().is_empty(), "the hook might have withheld it");
    let proxy = Proxy::new(config(&master, &[&shadow])).unwrap().hooks(failing());
    let proxy = proxy.on_select_failure(SelectFailure::All).start().unwrap();
    assert_eq!(get(proxy.addr(), "/").body, "master:");
    until_count(&proxy, 0, Category::Ok, 1);
    stop(proxy);
}

#[test]
fn a_hanging_hook_times_out() {
    let master = named("master");
    let hooks = HookSet::new().on_select_backends(|_| {
        loop {
            std::thread::park();
        }
    });
    let proxy = Proxy::new(config(&master, &[])).unwrap().hooks(hooks);
    let proxy = proxy.hook_limit(Duration::from_millis(20)).start().unwrap();
    for _ in 0..5 {
        assert_eq!(get(proxy.addr(), "/").body, "master:");
    }
    assert_eq!(proxy.control().hooks().timeouts, 5);
    stop(proxy);
}

/// The number of concurrent clients that get the master's response.
fn crowd(proxy: &RunningProxy, clients: usize) -> usize {
    let address = proxy.addr();
    std::thread::scope(|scope| {
        let ask = |_| scope.spawn(move || get(address, "/").body);
        let asked: Vec<_> = (0..clients).map(ask).collect();
        let responses = asked.into_iter().map(|client| client.join().unwrap());
        responses.filter(|body| body == "master:").count()
    })
}

#[test]
fn waiting_for_a_hook_thread_is_no_hook_failure() {
    let (master, shadow) = (named("master"), named("shadow"));
    let start = |wait| {
        let hooks = HookSet::new().on_select_backends(|_| {
            std::thread::sleep(Duration::from_millis(50));
            Selection::All
        });
        let proxy = Proxy::new(config(&master, &[&shadow])).unwrap().hooks(hooks).hook_threads(1);
        proxy.hook_limit(Duration::from_millis(500)).hook_wait(wait).start().unwrap()
    };
    // The last of 20 waits for twice the time limit.
    let proxy = start(LONG);
    assert_eq!(crowd(&proxy, 20), 20);
    assert_eq!(proxy.control().hooks(), HookCounts::default());
    until("copies", || shadow.requests().len() == 20);
    stop(proxy);
    // Requests that wait too long go to the master only, and count as overflows.
    let proxy = start(Duration::from_millis(20));
    assert_eq!(crowd(&proxy, 20), 20);
    let HookCounts { overflows, timeouts, .. } = proxy.control().hooks();
    assert!((1..20).contains(&overflows) && timeouts == 0, "{overflows} {timeouts}");
    until_count(&proxy, 0, Category::SelectFailed, overflows);
    stop(proxy);
}

#[test]
fn a_hooks_own_timeout_is_counted_once() {
    struct Late;
    impl Hooks for Late {
        fn selects(&self) -> bool {
            true
        }
        fn select(&self, request: &HookRequestHead) -> Result<Selection, HookError> {
            match request.uri.path() {
                "/late" => Err(HookTimeout.into()),
                _ => Err("it does not want to".into()),
            }
        }
    }
    let master = named("master");
    let proxy = Proxy::new(config(&master, &[])).unwrap().hooks(Late).hook_limit(LONG);
    let proxy = proxy.hook_threads(1).start().unwrap();
    for path in ["/late", "/late", "/"] {
        assert_eq!(get(proxy.addr(), path).body, "master:");
    }
    let counts = stop(proxy).hooks;
    assert_eq!(counts, HookCounts { timeouts: 2, errors: 1, ..HookCounts::default() });
}

/// Always times out, when it selects and for `s0`.
#[derive(Clone, Default)]
struct AlwaysLate(Arc<Mutex<Vec<String>>>);

impl AlwaysLate {
    fn asked(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }

    fn times(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|asked| *asked == what).count()
    }
}

impl Hooks for AlwaysLate {
    fn selects(&self) -> bool {
        true
    }

    fn select(&self, _: &HookRequestHead) -> Result<Selection, HookError> {
        self.asked("select");
        Err(HookTimeout.into())
    }

    fn munges(&self, _: &str) -> ChangeScope {
        ChangeScope::Head
    }

    fn munge(&self, backend: &str, _: &mut HookRequest) -> Result<(), HookError> {
        self.asked(backend);
        if backend == "s0" { Err(HookTimeout.into()) } else { Ok(()) }
    }
}

#[test]
fn consecutive_timeouts_open_the_breaker() {
    let (master, shadow) = (named("master"), named("shadow"));
    let asked = |pause| {
        let hooks = AlwaysLate::default();
        let proxy = Proxy::new(config(&master, &[&shadow])).unwrap().hooks(hooks.clone());
        let proxy = proxy.hook_limit(LONG).hook_breaker(BreakerConfig { failures: 20, pause });
        let proxy = proxy.on_select_failure(SelectFailure::All).start().unwrap();
        for number in 1..=50 {
            assert_eq!(get(proxy.addr(), "/").body, "master:");
            until_count(&proxy, 0, Category::MungeFailed, number);
        }
        let times = ["select", "s0", "master"].map(|what| hooks.times(what));
        (times, stop(proxy).hooks)
    };
    let counts = |timeouts, skipped| HookCounts { timeouts, skipped, ..HookCounts::default() };
    // The master's hook is in time, and never skipped.
    assert_eq!(asked(Duration::MAX), ([20, 20, 50], counts(40, 60)));
    assert_eq!(asked(Duration::ZERO), ([50, 50, 50], counts(100, 0)), "it is tried again");
    assert!(shadow.requests().is_empty());
}

#[test]
fn finished_exchanges_have_all_backends() {
    let master = named("master");
    let bad = Backend::raw(|mut stream, _| {
        read_request(&mut stream, &mut Vec::new());
        let _ = stream.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf");
    });
    let (sender, finished) = mpsc::channel();
    let hooks = HookSet::new().on_backends_finished(move |exchange| {
        sender.send(exchange.clone()).unwrap();
    });
    let mut proxy =
        Proxy::new(config(&master, &[&bad, &Backend::refusing(), &named("three")])).unwrap();
    let exchanges = proxy.exchanges(10);
    let proxy = proxy.hooks(hooks).start().unwrap();
    assert_eq!(post(proxy.addr(), "/x?y", "body").body, "master:body");
    let exchange = finished.recv_timeout(LONG).unwrap();
    assert_eq!(
        (exchange.request.method.as_str(), exchange.request.uri.to_string()),
        ("POST", "/x?y".to_owned())
    );
    assert_eq!((&exchange.request.body.bytes[..], exchange.request.body.len), (&b"body"[..], 4));
    let names: Vec<&str> = exchange.backends.iter().map(|outcome| &*outcome.name).collect();
    assert_eq!(names, ["master", "s0", "s1", "s2"]);
    let response = exchange.master().unwrap().result.as_ref().unwrap();
    assert_eq!((response.status.as_u16(), &response.body.bytes[..]), (200, &b"master:body"[..]));
    let failure = |name: &str| match &exchange.backend(name).unwrap().result {
        Err(failure) => failure.name(),
        Ok(response) => panic!("{response:?}"),
    };
    assert_eq!((failure("s0"), failure("s1")), ("closed_early", "connect_refused"));
    let third = exchange.backend("s2").unwrap();
    assert_eq!(third.role, Role::Shadow);
    assert!(third.connect_ns > 0 && third.first_byte_ns.unwrap() >= third.connect_ns);
    assert!(third.total_ns >= third.first_byte_ns.unwrap());
    let same = exchanges.next_within(LONG).unwrap();
    assert_eq!(same.ids, exchange.ids);

    proxy.control().kill(Some("s2")).unwrap();
    assert_eq!(get(proxy.addr(), "/").status, 200);
    stop(proxy);
    let last = exchanges.next_within(LONG).unwrap();
    assert!(last.backend("s2").is_none(), "a copy that was never due is not listed");
    assert!(matches!(last.backend("s1").unwrap().result, Err(BackendFailure::Fault(_))));
}

#[test]
fn a_full_queue_of_exchanges_delays_no_client() {
    let master = named("master");
    let mut proxy = Proxy::new(config(&master, &[])).unwrap();
    let exchanges = proxy.exchanges(3);
    let proxy = proxy.start().unwrap();
    for _ in 0..10 {
        assert_eq!(get(proxy.addr(), "/").status, 200);
    }
    // A remaining handle does not keep the listener waiting.
    let _held = proxy.control().clone();
    assert_eq!(stop(proxy).exchanges_dropped, 7);
    assert_eq!((exchanges.dropped(), std::iter::from_fn(|| exchanges.next()).count()), (7, 3));
}
