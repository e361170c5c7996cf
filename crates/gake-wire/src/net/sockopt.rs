//! Socket options that the libraries lack.

#![expect(unsafe_code, reason = "getsockopt TCP_INFO, and options that socket2 does not have")]

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use gake_core::clock::Nanos;

/// Fields of Linux's `TCP_INFO`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpInfo {
    /// Smoothed round-trip time.
    pub(crate) rtt: Nanos,
    /// Retransmitted segments of the connection, its SYN included.
    pub(crate) retransmits: u32,
}

/// Reads `TCP_INFO`; `None` if the system does not have it.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointers are valid for writes of the sizes given, and the descriptor is open for
    // as long as it is borrowed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return None;
    }
    // SAFETY: every field is an integer, and the kernel has written over zeroes.
    let info = unsafe { info.assume_init() };
    Some(TcpInfo { rtt: Nanos::from(info.tcpi_rtt) * 1_000, retransmits: info.tcpi_total_retrans })
}

/// Chooses the port at connect by the four-tuple, not at bind (`IP_BIND_ADDRESS_NO_PORT`), so that
/// sockets to different peers can share a port.
pub(crate) fn bind_address_no_port(socket: BorrowedFd<'_>) -> std::io::Result<()> {
    set(socket, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// The range of local ports of a socket, within the system's (Linux 6.3).
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

/// Sets the range of local ports that connect() searches.
pub(crate) fn local_port_range(
    socket: BorrowedFd<'_>,
    (first, last): (u16, u16),
) -> std::io::Result<()> {
    let range = u32::from(first) | u32::from(last) << 16;
    set(socket, IP_LOCAL_PORT_RANGE, range.cast_signed())
}

/// Whether the system has `IP_LOCAL_PORT_RANGE`.
pub(crate) fn has_local_port_range(first: u16, last: u16) -> bool {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0));
    socket.is_ok_and(|socket| local_port_range(socket.as_fd(), (first, last)).is_ok())
}

fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the pointer is valid for reads of the size given, and the descriptor is open for as
    // long as it is borrowed.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
