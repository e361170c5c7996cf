//! Opening the listening sockets, and taking connections from them.

use std::io;
use std::net::SocketAddr;
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
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), None)?;
        // A lab that is started again must not wait for old connections to fade.
        socket.set_reuse_address(true)?;
        // Accepted sockets inherit it on Linux, which saves a call for each.
        socket.set_tcp_nodelay(true)?;
        socket.bind(&addr.into())?;
        socket.listen(backlog_int(backlog))?;
        Ok(socket)
    };
    open().map_err(|source| LabError::Listen { addr, source })
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
