//! Advice on each fault.

use gake_core::record::{ErrorCode, Fault, GrpcStatus, Phase};

/// One clause on what to try when `fault` occurs.
#[must_use]
#[expect(clippy::too_many_lines, reason = "a table of faults")]
pub fn advice(fault: Fault) -> &'static str {
    match fault {
        Fault::Dns => "check the host name, or give its address with --resolve",
        Fault::ConnectRefused => "is the server running, and is this its port?",
        Fault::ConnectTimeout => {
            "the server or a firewall does not respond: check the route, or the server's accept \
             queue"
        }
        Fault::ConnectReset => "the server, a balancer or the network rejected the connection",
        Fault::Unreachable(_) => "check the address and the route of this machine to it",
        Fault::NoLocalPort => {
            "this machine is out of local ports: keep connections alive, widen \
             net.ipv4.ip_local_port_range, or give more addresses with --interface"
        }
        Fault::NoDescriptors => {
            "this machine is out of file descriptors: raise ulimit -n, or use \
             fewer connections"
        }
        Fault::NoMemory => "raise --body-memory, or discard the bodies that scripts do not read",
        Fault::NotAllowed(_) => {
            "the limits of an agent forbid the connection: start the agent with the --allow or \
             --max-connections that the load needs"
        }
        Fault::Tls("the peer does not speak TLS") => {
            "the port speaks no TLS: for plain HTTP use http:// (ws:// for WebSocket)"
        }
        Fault::Tls("the peer closed during the handshake" | "the peer reset the handshake") => {
            "does the port speak TLS? for plain HTTP use http://; otherwise look at the server's log"
        }
        Fault::Tls(_) => {
            "check the certificate and the host name, or give --cacert; --insecure \
             skips the check"
        }
        Fault::Write => {
            "the peer closed while the request was written: look at its size limits \
             and log"
        }
        Fault::Reset => "the server or a balancer reset the connection: look at its limits and log",
        Fault::ClosedEarly(Phase::Body) => {
            "the server closed in the middle of a response: look at its log"
        }
        Fault::ClosedEarly(_) => {
            "the server closed the connection without a response: look at its log, its \
             keep-alive limits, and how many connections it lets in"
        }
        Fault::Malformed(_) => {
            "the response is not HTTP of the requested version: check port, scheme and --http"
        }
        Fault::Timeout(Phase::Connect) => {
            "no connection in time: look at the server's accept \
             queue, or raise --connect-timeout"
        }
        Fault::Timeout(Phase::FirstByte) => {
            "no response in time: the server is overloaded or hangs; lower the load, or raise \
             --timeout"
        }
        Fault::Timeout(Phase::Body) => {
            "the response did not end in time: look at the bandwidth, or raise --timeout"
        }
        Fault::TooLarge("message") => {
            "a message is too large for --ws-expect and --expect-body: leave them out"
        }
        Fault::TooLarge(_) => "the head of the response exceeds the limits: check the URL",
        Fault::RedirectLimit => {
            "the redirects do not end: load the final URL, or raise \
             --max-redirs"
        }
        Fault::Proxy(_) => {
            "the error comes from the proxy, not the target: check --proxy, or \
                            leave it out"
        }
        Fault::StreamReset(ErrorCode::RefusedStream | ErrorCode::H3RequestRejected) => {
            "the server keeps refusing streams: use fewer --streams, or raise its limit"
        }
        Fault::StreamReset(ErrorCode::EnhanceYourCalm | ErrorCode::H3ExcessiveLoad)
        | Fault::Goaway(ErrorCode::EnhanceYourCalm) => {
            "the server protects itself from overload: lower the load, or raise the server's limits"
        }
        Fault::StreamReset(_) => {
            "the server aborted the request: the error code and its log show \
                                  why"
        }
        Fault::Goaway(_) => {
            "the server closed connections with requests in flight: look at its limit on requests \
             per connection, and at restarts"
        }
        Fault::Quic("version_negotiation") => {
            "the server supports no QUIC version that gake supports: check which server listens \
             on the port"
        }
        Fault::Quic("idle_timeout") => {
            "the server sent nothing within its own idle time-out: it is overloaded or hangs, or \
             packets are lost"
        }
        Fault::Quic(_) => "the QUIC connection ended: the error and the server's log show why",
        Fault::WebSocketClosed(_) => {
            "the server closed sessions with messages in flight: the close code and its log show \
             why"
        }
        Fault::Grpc(GrpcStatus::UNIMPLEMENTED) => {
            "the server has no such method: check the service and method in the URL"
        }
        Fault::Grpc(GrpcStatus::RESOURCE_EXHAUSTED | GrpcStatus::UNAVAILABLE) => {
            "the server sheds load or is not ready: lower the load, or look at its limits"
        }
        Fault::Grpc(GrpcStatus::DEADLINE_EXCEEDED) => {
            "the server missed the deadline that --timeout set"
        }
        Fault::Grpc(_) => "the server failed the calls: the status and its log show why",
        Fault::Script => "the script threw: run it once with one user and -v",
        Fault::Other(_) => "see the system's error in the detail",
    }
}
