//! The floor of the arrival measurement: the simplest sender that keeps a rate.
//!
//! One connection, one write at each due instant, polled for without sleeping
//! (`xtask metronome`). What the recorder sees of it is the error of machine and
//! method; no tool can be better, and a tool close to it is as good as this
//! method can measure.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};

use super::clock::now_ns;

/// The hidden task: `metronome URL RATE SECONDS`.
pub fn main(args: &[String]) -> Result<()> {
    let [url, rate, seconds] = args else { bail!("usage: metronome URL RATE SECONDS") };
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let (rate, seconds): (u64, u64) = (rate.parse()?, seconds.parse()?);
    let mut stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let began = now_ns();
    let mut answers = [0; 4096];
    for number in 0..rate * seconds {
        let due = began + number * 1_000_000_000 / rate;
        while now_ns() < due {
            match stream.read(&mut answers) {
                Ok(0) => bail!("the server closed the connection"),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                _ => {}
            }
        }
        stream.write_all(b"GET / HTTP/1.1\r\nHost: floor\r\n\r\n")?;
    }
    Ok(())
}
