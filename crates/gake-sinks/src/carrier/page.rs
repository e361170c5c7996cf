//! A page that others fetch: the last batch, whole.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Batch, Carrier, Lost};
use crate::visitor::{read_head, send};

/// How long a visitor may take for its request, and for the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two looks whether somebody came, or the page is over.
const PAUSE: Duration = Duration::from_millis(20);
/// What OpenMetrics is served as.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the newest figures at `/metrics`.
pub(crate) struct Page {
    listener: Option<TcpListener>,
    text: Arc<Mutex<Vec<u8>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    linger: Duration,
    lost: Lost,
}

impl Page {
    /// Listens at `address`; on loopback when it has no host.
    pub(crate) fn bind(address: &str, linger: Duration) -> Result<Self, String> {
        let host = match address.strip_prefix(':') {
            Some(port) => format!("127.0.0.1:{port}"),
            None => address.to_owned(),
        };
        let bind = || {
            let listener = TcpListener::bind(&host)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = bind().map_err(|error: io::Error| format!("{host}: {error}"))?;
        Ok(Self {
            listener: Some(listener),
            text: Arc::default(),
            over: Arc::default(),
            thread: None,
            linger,
            lost: Lost::default(),
        })
    }

    /// Starts to serve, on a thread that the sink's own thread starts: it has its class.
    fn serve(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        let (text, over) = (Arc::clone(&self.text), Arc::clone(&self.over));
        let serve = move || {
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((visitor, _)) => drop(answer(visitor, &text)),
                    Err(_) => std::thread::sleep(PAUSE),
                }
            }
        };
        match std::thread::Builder::new().name("gake-page".to_owned()).spawn(serve) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => self.lost.add(1, error.to_string()),
        }
    }
}

fn answer(mut visitor: TcpStream, text: &Mutex<Vec<u8>>) -> io::Result<()> {
    let head = read_head(&mut visitor, PATIENCE)?;
    let is_page = head.starts_with(b"GET /metrics ") || head.starts_with(b"GET / ");
    let (status, body) = match is_page {
        true => ("200 OK", text.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        false => ("404 Not Found", b"the figures are at /metrics\n".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    send(&mut visitor, &[head.as_bytes(), &body].concat(), PATIENCE)
}

impl Carrier for Page {
    fn carry(&mut self, batch: Batch) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = batch.bytes;
        self.serve();
    }

    fn finish(&mut self) {
        std::thread::sleep(self.linger);
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn lost(&self) -> Lost {
        self.lost.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_visitor_that_drips_does_not_hold_up_the_end() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // It lingers, so that the visitor is received before the end.
        let mut page = Page::bind(&format!(":{port}"), Duration::from_millis(500)).unwrap();
        let mut visitor = TcpStream::connect(("127.0.0.1", port)).unwrap();
        page.carry(Batch { bytes: b"# EOF\n".to_vec(), rows: 1 });
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        // Far longer than anybody has patience.
        let drips = std::thread::spawn(move || {
            let drip = |_: &u32| {
                std::thread::sleep(Duration::from_millis(100));
                !told.load(Ordering::Relaxed) && visitor.write_all(b"x").is_ok()
            };
            (0..600).take_while(drip).count()
        });
        page.finish();
        over.store(true, Ordering::Relaxed);
        assert!(drips.join().unwrap() < 600);
    }
}
