//! Misbehaving shadows.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::backend::{Backend, read_request};

/// Accepts requests and never responds.
pub fn hangs() -> Backend {
    Backend::raw(|mut stream, _| drop(stream.read_to_end(&mut Vec::new())))
}

/// Resets every connection.
pub fn resets() -> Backend {
    Backend::raw(|stream: TcpStream, _| {
        let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    })
}

/// Sends its response body at one byte per second.
pub fn drips() -> Backend {
    Backend::raw(|mut stream, _| {
        read_request(&mut stream, &mut Vec::new());
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_secs(1));
        }
    })
}

/// Sends a gigabyte, counting the bytes written.
pub fn floods() -> (Backend, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    let backend = Backend::raw(move |mut stream, _| {
        read_request(&mut stream, &mut Vec::new());
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n");
        let piece = vec![b'x'; 65536];
        while stream.write_all(&piece).is_ok() {
            counted.fetch_add(piece.len() as u64, Ordering::SeqCst);
        }
    });
    (backend, sent)
}

/// Accepts, and never reads. Small buffers and segments limit what the kernel buffers to 100 KB
/// instead of 4 MB.
pub fn never_reads() -> Backend {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = socket2::SockRef::from(&listener);
    options.set_recv_buffer_size(4096).unwrap();
    options.set_tcp_mss(536).unwrap();
    Backend::on(listener, |stream, _| {
        std::thread::sleep(Duration::from_secs(120));
        drop(stream);
    })
}
