//! Destinations that are slow, silent or away.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use super::*;

/// A destination that waits before each response, and the bodies it received.
fn destination(wait: impl Fn() + Send + 'static) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (url, responding(listener, wait))
}

fn serving(listener: TcpListener) -> mpsc::Receiver<String> {
    responding(listener, || {})
}

fn responding(listener: TcpListener, wait: impl Fn() + Send + 'static) -> mpsc::Receiver<String> {
    let (taken, bodies) = mpsc::channel();
    let serve = move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            while let Some(body) = body(&mut stream) {
                wait();
                // The test may be over.
                let _ = taken.send(body);
                stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            }
        }
    };
    std::thread::spawn(serve);
    bodies
}

/// The body of the next request; `None` at the connection's end.
fn body(stream: &mut impl BufRead) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = String::new();
    stream.take(length).read_to_string(&mut body).unwrap();
    Some(body)
}

fn push(url: String, kind: &str, retry: Duration) -> Push {
    let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
    Push::new(&Post::new(url, headers, None), retry, &Spill::default())
}

fn row() -> FigureBatch {
    FigureBatch { bytes: b"row\n".to_vec(), rows: 1 }
}

#[test]
fn a_slow_destination_does_not_delay_the_end_of_a_run() {
    // 80 documents would take it 8 s.
    let (url, bodies) = destination(|| std::thread::sleep(Duration::from_millis(100)));
    let mut push = push(url, "application/json", Duration::ZERO);
    for _ in 0..80 {
        push.carry(row());
    }
    let begun = Instant::now();
    push.finish();
    assert!(begun.elapsed() < LAST + PATIENCE, "{:?}", begun.elapsed());
    let lost = push.lost();
    assert_eq!(lost.rows + bodies.try_iter().count() as u64, 80);
    assert!(lost.rows > 0);
    assert_eq!(lost.why.as_deref(), Some(TOO_SLOW));
}

/// Lines to a database that is away until `opens`, with a queue in memory of 32 MiB.
fn delivered_after(
    opens: impl FnOnce(TcpListener) -> mpsc::Receiver<String>,
    spill: &Spill,
    batches: usize,
) -> (LostFigures, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let post = Post::new(url, vec![("Content-Type".to_owned(), "text/plain".to_owned())], None);
    let mut push = Push::new(&post, Duration::from_secs(60), spill);
    // Less memory, so that the file is used.
    push.shared.lock().waiting = SpillQueue::new(1 << 10, spill.clone());
    for _ in 0..batches {
        push.carry_samples(FigureBatch { bytes: vec![b'\n'; 100], rows: 100 });
    }
    let bodies = opens(listener);
    push.finish();
    (push.lost(), bodies.try_iter().map(|body| body.len()).sum())
}

#[test]
fn everything_that_waits_on_disk_is_delivered_after_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut spill = Spill { folder: Some(folder.path().to_owned()), bytes: 1 << 20, watch: None };
    let (lost, rows) = delivered_after(serving, &spill, 1_000);
    assert_eq!((lost.rows, rows), (0, 100_000), "{:?}", lost.why);
    // A bound of 10 batches with their headers, besides 10 in memory and at most 20 in flight.
    spill.bytes = 10 * 116;
    let (lost, rows) = delivered_after(serving, &spill, 1_000);
    assert_eq!(lost.rows as usize + rows, 100_000);
    assert!((2_000..=4_000).contains(&rows), "{rows}");
}

#[test]
fn the_user_can_end_the_delivery() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let rows = Arc::clone(&seen);
    let watch = move |_: &str, left| {
        rows.lock().unwrap().push(left);
        false
    };
    let watch: Option<crate::DrainWatch> = Some(Arc::new(watch));
    let spill = Spill { folder: Some(folder.path().to_owned()), bytes: 1 << 20, watch };
    // It takes connections, and never responds.
    let silent = |listener: TcpListener| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(60));
            drop(listener);
        });
        mpsc::channel().1
    };
    let begun = Instant::now();
    let (lost, _) = delivered_after(silent, &spill, 100);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(seen.lock().unwrap()[0], 10_000);
    assert_eq!(lost.rows, 10_000);
}

#[test]
fn the_queue_is_sent_at_the_end_without_retries() {
    let (url, bodies) = destination(|| {});
    let mut push = push(url, "application/json", Duration::ZERO);
    push.carry(row());
    push.finish();
    assert_eq!((push.lost().rows, bodies.try_iter().count()), (0, 1));
}

#[test]
fn queued_lines_are_joined() {
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (url, bodies) = destination(move || {
        begin.send(()).unwrap();
        // After the release each response is immediate.
        let _ = released.recv();
    });
    let mut push = push(url, "text/plain; charset=utf-8", Duration::from_secs(5));
    push.carry(row());
    begun.recv().unwrap();
    for _ in 0..50 {
        push.carry(row());
    }
    drop(release);
    push.finish();
    assert_eq!(push.lost().rows, 0);
    let rows: Vec<_> = bodies.try_iter().map(|body| body.matches("row\n").count()).collect();
    assert_eq!(rows, [1, 50]);
}

#[test]
fn lines_are_joined_up_to_a_limit_and_documents_never() {
    let queue = || {
        let mut queue = SpillQueue::new(usize::MAX, Spill::default());
        for _ in 0..3 {
            let batch = FigureBatch { bytes: vec![b'x'; JOINED_MAX / 2], rows: 1 };
            queue.push(batch, Importance::Samples, None);
        }
        PushQueue { waiting: queue, ..PushQueue::default() }
    };
    let rows = |is_lines| {
        let mut queue = queue();
        std::iter::from_fn(|| queue.pop(is_lines)).map(|batch| batch.rows).collect::<Vec<_>>()
    };
    assert_eq!((rows(true), rows(false)), (vec![2, 1], vec![1; 3]));
}
