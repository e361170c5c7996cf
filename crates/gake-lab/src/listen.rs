//! Listening sockets, and accepting from them.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::unix::AsyncFd;

use crate::LabError;
use crate::readable::watch_readable;

pub(crate) fn tcp(addr: SocketAddr, backlog: u32) -> Result<Socket, LabError> {
    let open = || {
        let socket = bound(addr, false)?;
        socket.listen(backlog_int(backlog))?;
        Ok(socket)
    };
    open().map_err(|source| LabError::Listen { addr, source })
}

/// Attempts at a free port that UDP has not taken.
const PORTS_TRIED: usize = 20;

/// Listens on a TCP address, and on the same port over UDP with one socket per thread.
pub(crate) fn tcp_and_udp(
    addr: SocketAddr,
    backlog: u32,
    threads: usize,
) -> Result<(Socket, Vec<UdpSocket>), LabError> {
    let mut tries = if addr.port() == 0 { PORTS_TRIED } else { 1 };
    loop {
        let tcp = tcp(addr, backlog)?;
        let taken = tcp.local_addr()?.as_socket().unwrap_or(addr);
        let sockets: io::Result<Vec<_>> = (0..threads).map(|_| udp(taken)).collect();
        tries -= 1;
        match sockets {
            Ok(sockets) => return Ok((tcp, sockets)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
            Err(source) => return Err(LabError::Listen { addr: taken, source }),
        }
    }
}

/// One of several sockets on an address; the kernel assigns each client to one of them.
fn udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM.nonblocking(), None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// Reserves a TCP address without another listener, for [`one_of_many`].
pub(crate) fn reserve(addr: SocketAddr) -> Result<Socket, LabError> {
    bound(addr, false).map_err(|source| LabError::Listen { addr, source })
}

/// Listens on a TCP address beside other listeners of this user.
pub(crate) fn one_of_many(addr: SocketAddr, backlog: u32) -> Result<Socket, LabError> {
    let open = || {
        let socket = bound(addr, true)?;
        socket.listen(backlog_int(backlog))?;
        Ok(socket)
    };
    open().map_err(|source| LabError::Listen { addr, source })
}

fn bound(addr: SocketAddr, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), None)?;
    // A restarted lab must not wait for sockets in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(is_shared)?;
    // Accepted sockets inherit it on Linux: saves a call per connection.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// Listens on a Unix socket, replacing a stale one.
pub(crate) fn unix(path: &Path, backlog: u32) -> Result<Socket, LabError> {
    let open = || {
        let addr = SockAddr::unix(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
        if let Err(error) = socket.bind(&addr) {
            if error.kind() != io::ErrorKind::AddrInUse || !is_stale(path, &addr) {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            socket.bind(&addr)?;
        }
        socket.listen(backlog_int(backlog))?;
        Ok(socket)
    };
    open().map_err(|source| LabError::UnixSocket { path: path.to_owned(), source })
}

/// Removes the socket's file on drop.
#[derive(Debug)]
pub(crate) struct UnixPath(pub(crate) PathBuf);

impl Drop for UnixPath {
    fn drop(&mut self) {
        // It may be gone already, and an error could not be handled here.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A listening socket registered with the current runtime.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) fd: AsyncFd<OwnedFd>,
    pub(crate) is_unix: bool,
}

impl Listener {
    pub(crate) fn new(socket: Socket) -> io::Result<Listener> {
        let is_unix = socket.domain()? == Domain::UNIX;
        Ok(Listener { fd: watch_readable(socket.into())?, is_unix })
    }
}

/// Accepts one connection as a non-blocking socket.
pub(crate) fn take(socket: &OwnedFd) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
    let (fd, peer) = acceptfrom_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    Ok((fd, peer.and_then(|peer| SocketAddr::try_from(peer).ok())))
}

fn is_stale(path: &Path, addr: &SockAddr) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let probe = || Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?.connect(addr);
    is_socket && probe().is_err_and(refused)
}

fn backlog_int(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}
