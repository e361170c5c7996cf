//! What to do about each fault, in one clause.

use gake_core::record::{ErrorCode, Fault, GrpcStatus, Phase};

/// One clause that says what to try when `fault` occurs.
#[must_use]
pub fn advice(fault: Fault) -> &'static str {
    match fault {
        Fault::Dns => "check the host name, or give its address with --resolve",
        Fault::ConnectRefused => "is the server listening there, and is its backlog long enough?",
        Fault::ConnectTimeout => {
            "the server or a firewall does not answer: check the route, or \
             the server's accept queue"
        }
        Fault::ConnectReset => "the server, a balancer or the route turned the connection away",
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
            "the limits of an agent kept the connection from being opened: start it with the \
             --allow or --max-connections that the load needs"
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
            "the answer is not HTTP of the version asked for: check port, scheme and --http"
        }
        Fault::Timeout(Phase::Connect) => {
            "no connection in time: look at the server's accept \
             queue, or raise --connect-timeout"
        }
        Fault::Timeout(Phase::FirstByte) => {
            "no answer in time: the server is overloaded or \
             hangs; lower the load, or raise --timeout"
        }
        Fault::Timeout(Phase::Body) => {
            "the answer did not end in time: look at the bandwidth, or \
             raise --timeout"
        }
        Fault::TooLarge("message") => {
            "a message is over what --ws-expect and --expect-body can check: leave them out"
        }
        Fault::TooLarge(_) => "the head of the response is over the limits: check what is loaded",
        Fault::RedirectLimit => {
            "the redirects do not end: load the final URL, or raise \
             --max-redirs"
        }
        Fault::Proxy(_) => "the proxy, not the target, said so: check --proxy, or leave it out",
        Fault::StreamReset(ErrorCode::RefusedStream | ErrorCode::H3RequestRejected) => {
            "the server refuses streams again and again: fewer --streams, or raise its bound"
        }
        Fault::StreamReset(ErrorCode::EnhanceYourCalm | ErrorCode::H3ExcessiveLoad)
        | Fault::Goaway(ErrorCode::EnhanceYourCalm) => {
            "the server protects itself from too much load: lower it, or raise the server's bounds"
        }
        Fault::StreamReset(_) => "the server gave the request up: the code and its log say why",
        Fault::Goaway(_) => {
            "the server ended connections with requests under way: look at its bounds on requests \
             a connection, and at restarts"
        }
        Fault::Quic("version_negotiation") => {
            "the server speaks no version of QUIC that gake knows: check what listens on the port"
        }
        Fault::Quic("idle_timeout") => {
            "the server did not answer within its own idle time-out: it is overloaded or hangs, or \
             packets are lost"
        }
        Fault::Quic(_) => "the QUIC connection ended: the error and the server's log say why",
        Fault::WebSocketClosed(_) => {
            "the server closed sessions with messages under way: the code and its log say why"
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
        Fault::Grpc(_) => "the server failed the calls: the status and its log say why",
        Fault::Script => "the script threw: run it once with one user and -v",
        Fault::Other(_) => "the system says why; see the detail",
    }
}
