//! Opening the listening sockets, and taking connections from them.

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

/// Listens on a TCP address.
pub(crate) fn tcp(addr: SocketAddr, backlog: u32) -> Result<Socket, LabError> {
    let open = || {
        let socket = bound(addr, false)?;
        socket.listen(backlog_int(backlog))?;
        Ok(socket)
    };
    open().map_err(|source| LabError::Listen { addr, source })
}

/// Ports that are tried when any will do and UDP has taken the same number.
const PORTS_TRIED: usize = 20;

/// Listens on a TCP address, and on the same port over UDP with a socket for each of `threads`.
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

/// A socket among those that share an address: the kernel gives each client to one of them.
fn udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM.nonblocking(), None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// Takes a TCP address, on which nobody else listens, for [`one_of_many`].
pub(crate) fn reserve(addr: SocketAddr) -> Result<Socket, LabError> {
    bound(addr, false).map_err(|source| LabError::Listen { addr, source })
}

/// Listens on a TCP address beside others of this user who do.
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
    // A lab that is started again must not wait for old connections to fade.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(is_shared)?;
    // Accepted sockets inherit it on Linux, which saves a call for each.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// Listens on a Unix socket, in place of one that nobody listens on any more.
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

/// Removes the socket's file when the lab ends.
#[derive(Debug)]
pub(crate) struct UnixPath(pub(crate) PathBuf);

impl Drop for UnixPath {
    fn drop(&mut self) {
        // Somebody may have removed it already; nothing can be done here anyway.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A listening socket within a runtime.
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

/// Takes one connection from the kernel's queue, ready for non-blocking use.
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
