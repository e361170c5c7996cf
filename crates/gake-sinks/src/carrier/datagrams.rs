//! UDP datagrams of whole lines.

use std::net::UdpSocket;

use super::{Carrier, FigureBatch, LostFigures};

/// Maximum bytes of a datagram, to avoid fragmentation on Ethernet.
const DATAGRAM_MAX: usize = 1_400;

/// Sends lines to an address without confirmation.
pub(crate) struct Datagrams {
    socket: UdpSocket,
    lost: LostFigures,
}

impl Datagrams {
    pub(crate) fn new(address: &str) -> Result<Self, String> {
        let connect = || {
            let addr = std::net::ToSocketAddrs::to_socket_addrs(address)?
                .next()
                .ok_or_else(|| std::io::Error::other("the name has no address"))?;
            let any = if addr.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(addr)?;
            Ok(socket)
        };
        let socket = connect().map_err(|error: std::io::Error| format!("{address}: {error}"))?;
        Ok(Self { socket, lost: LostFigures::default() })
    }
}

impl Carrier for Datagrams {
    fn carry(&mut self, batch: FigureBatch) {
        let mut lost = 0;
        let mut why = None;
        let mut send = |lines: &[u8]| {
            if !lines.is_empty()
                && let Err(error) = self.socket.send(lines)
            {
                lost += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
                why.get_or_insert(error.to_string());
            }
        };
        let mut start = 0;
        let mut end = 0;
        for line in batch.bytes.split_inclusive(|byte| *byte == b'\n') {
            if end - start + line.len() > DATAGRAM_MAX {
                send(&batch.bytes[start..end]);
                start = end;
            }
            end += line.len();
        }
        send(&batch.bytes[start..end]);
        if lost > 0 {
            self.lost.add(lost, why.unwrap_or_default());
        }
    }

    fn finish(&mut self) {}

    fn lost(&self) -> LostFigures {
        self.lost.clone()
    }
}
