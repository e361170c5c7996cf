//! A server that accepts slowly.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

pub struct Listener {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

pub fn listen() -> Listener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket.listen(4).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&ended);
    let thread = thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let (stream, _) = socket.accept().unwrap();
            answer(stream.into());
            thread::sleep(Duration::from_millis(50));
        }
    });
    Listener { address, ended, thread: Some(thread) }
}

fn answer(mut stream: TcpStream) {
    let mut head = [0; 4096];
    // A client that has gone meanwhile gets no response.
    let _ = stream.read(&mut head);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

impl Listener {
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // It waits in `accept`.
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}
