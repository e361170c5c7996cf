//! Backends: a small shop in Go in an old and a new version, and some that do not respond.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use crate::support::*;

/// The shop.
fn program() -> PathBuf {
    go_program("app")
}

/// An instance of the shop.
pub fn shop(name: &str, flags: &[&str]) -> Peer {
    Peer::start(Command::new(program()).args(["-name", name]).args(flags))
}

/// The requests that a shop received, in its order.
pub fn asked(shop: Peer) -> Vec<String> {
    shop.end().lines().skip(1).map(str::to_owned).collect()
}

/// A backend that accepts connections and never responds, until the test ends.
pub fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut held = Vec::new();
        held.extend(listener.incoming());
    });
    url
}

/// A backend that hangs up on everybody.
pub fn hanging_up() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    url
}
