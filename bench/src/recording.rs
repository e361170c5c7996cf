//! The bench's handle on a recorder process: started, pinned, asked, ended.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::process::{Launch, OURSELVES, Running};
use super::recorder::{QUIT, Stall};

/// A recorder that is running.
pub struct Recording {
    process: Running,
    address: SocketAddr,
}

impl Recording {
    /// Starts one on a free loopback port, pinned to a core.
    pub fn start(core: usize, stall: Option<Stall>, limit: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut args = vec!["recorder".to_owned()];
        if let Some(stall) = stall {
            args.extend([stall.after, stall.length].map(|time| time.as_millis().to_string()));
        }
        let program = Path::new(OURSELVES);
        let stdin = Some(listener.into());
        let process = Launch { program, args: &args, stdin, core: Some(core), limit }.start()?;
        Ok(Self { process, address })
    }

    /// What a client is pointed at.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits until it responds; the request that asks is among its arrivals.
    pub fn await_ready(&self) -> Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
        stream.read_exact(&mut [0]).context("the recorder did not answer")
    }

    /// Ends the recorder and returns the instant of every request, in order.
    pub fn finish(self) -> Result<Vec<u64>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(QUIT)?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).context("the recorder did not answer")?;
        self.process.wait()?.accept("the recorder", &[0])?;
        let instants = bytes.chunks_exact(8).filter_map(|bytes| bytes.try_into().ok());
        Ok(instants.map(u64::from_le_bytes).collect())
    }
}
