//! Scripted servers.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::client::PATIENCE;

/// Plays `script` on every connection; returns the address and the number of connections.
pub fn serve(
    script: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, script) = (Arc::clone(&count), Arc::new(script));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let script = Arc::clone(&script);
            let stream = stream.unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            counted.fetch_add(1, SeqCst);
            std::thread::spawn(move || script(stream));
        }
    });
    (address, count)
}
