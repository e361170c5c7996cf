//! A metrics page that serves the last batch.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Carrier, FigureBatch, LostFigures};
use crate::visitor::{accept_until, listen, read_head, respond};

/// Time limit for a request, and for its response.
const PATIENCE: Duration = Duration::from_secs(2);

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) struct PageCarrier {
    listener: Option<TcpListener>,
    text: Arc<Mutex<Vec<u8>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    linger: Duration,
    lost: LostFigures,
}

impl PageCarrier {
    /// Listens at `address`; on loopback without a host.
    pub(crate) fn bind(address: &str, linger: Duration) -> Result<Self, String> {
        let host = match address.strip_prefix(':') {
            Some(port) => format!("127.0.0.1:{port}"),
            None => address.to_owned(),
        };
        let listener = listen(&host).map_err(|error| format!("{host}: {error}"))?;
        Ok(Self {
            listener: Some(listener),
            text: Arc::default(),
            over: Arc::default(),
            thread: None,
            linger,
            lost: LostFigures::default(),
        })
    }

    /// Starts the serving thread, which inherits the scheduling class of the sink's thread.
    fn serve(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        let (text, over) = (Arc::clone(&self.text), Arc::clone(&self.over));
        let serve = move || {
            accept_until(
                &listener,
                || over.load(Ordering::Relaxed),
                |visitor| drop(serve_page(visitor, &text)),
            );
        };
        match std::thread::Builder::new().name("gake-page".to_owned()).spawn(serve) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => self.lost.add(1, error.to_string()),
        }
    }
}

fn serve_page(mut visitor: TcpStream, text: &Mutex<Vec<u8>>) -> io::Result<()> {
    let head = read_head(&mut visitor, PATIENCE)?;
    let is_page = head.starts_with(b"GET /metrics ") || head.starts_with(b"GET / ");
    let (status, body) = match is_page {
        true => ("200 OK", text.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        false => ("404 Not Found", b"the figures are at /metrics\n".to_vec()),
    };
    respond(&mut visitor, status, CONTENT_TYPE, "Connection: close\r\n", &body, PATIENCE)
}

impl Carrier for PageCarrier {
    fn carry(&mut self, batch: FigureBatch) {
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

    fn lost(&self) -> LostFigures {
        self.lost.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_slow_visitor_does_not_delay_the_end() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // It lingers, so that the visitor is accepted before the end.
        let mut page = PageCarrier::bind(&format!(":{port}"), Duration::from_millis(500)).unwrap();
        let mut visitor = TcpStream::connect(("127.0.0.1", port)).unwrap();
        page.carry(FigureBatch { bytes: b"# EOF\n".to_vec(), rows: 1 });
        let over = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&over);
        // Far longer than the time limit.
        let drips = std::thread::spawn(move || {
            let drip = |_: &u32| {
                std::thread::sleep(Duration::from_millis(100));
                !stopped.load(Ordering::Relaxed) && visitor.write_all(b"x").is_ok()
            };
            (0..600).take_while(drip).count()
        });
        page.finish();
        over.store(true, Ordering::Relaxed);
        assert!(drips.join().unwrap() < 600);
    }
}
