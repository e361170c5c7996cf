//! A question to a name server over UDP, and its response.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use gake_k6::user::vu::Vu;
use gake_wire::fault::go_text;
use serde_json::json;
use simple_dns::rdata::{OPT, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use tokio::net::UdpSocket;

use crate::later::{Rejection, within};

/// Maximum bytes of a response.
const RESPONSE_MAX: usize = 4096;

/// Time limit of a question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The type of records of this name.
///
/// # Errors
/// The extension's message.
pub(super) fn record_type(name: &str) -> Result<TYPE, Rejection> {
    match name {
        "A" => Ok(TYPE::A),
        "AAAA" => Ok(TYPE::AAAA),
        "TXT" => Ok(TYPE::TXT),
        other => Err(Rejection::Error(format!(
            "resolve operation failed with unsupported record type, {other} is an invalid DNS \
             record type"
        ))),
    }
}

/// Asks `server` for the records of a name.
///
/// # Errors
/// The extension's error: the question cannot be sent, or the response has no records.
pub(super) async fn ask(
    vu: &Vu,
    (name, record): (&str, TYPE),
    server: SocketAddr,
) -> Result<Vec<String>, Rejection> {
    let failed =
        |why: String| Rejection::Error(format!("querying the DNS nameserver failed: {why}"));
    if let Some(why) = gake_k6::user::dial::is_blocked(vu, &server.ip().to_string()) {
        return Err(failed(why));
    }
    let id = (vu.test.unix_ns() >> 8) as u16 ^ vu.number as u16;
    // The library leaves out empty labels.
    let has_labels = !name.starts_with('.') && !name.contains("..");
    let question = has_labels.then(|| question(id, name, record).ok()).flatten();
    // The only error is that of a name.
    let Some(question) = question else {
        return Err(failed("unable to serialize DNS packet; reason: dns: bad rdata".to_owned()));
    };
    let response = exchange(vu, id, &question, server).await.map_err(failed)?;
    let packet = Packet::parse(&response).map_err(|error| {
        failed(format!("unable to deserialize response DNS packet; reason: {error}"))
    })?;
    records(&packet)
}

fn question(id: u16, name: &str, record: TYPE) -> Result<Vec<u8>, simple_dns::SimpleDnsError> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name)?;
    let (record, class) = (QTYPE::TYPE(record), QCLASS::CLASS(CLASS::IN));
    packet.questions.push(Question::new(name, record, class, false));
    let size = RESPONSE_MAX as u16;
    *packet.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: size, version: 0 });
    packet.build_bytes_vec()
}

/// Sends a question and waits for the response with its number.
async fn exchange(
    vu: &Vu,
    id: u16,
    question: &[u8],
    server: SocketAddr,
) -> Result<Vec<u8>, String> {
    let any = match server.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let dial = |error: std::io::Error| format!("dial udp {server}: {}", go_text(&error));
    let socket = UdpSocket::bind((any, 0)).await.map_err(dial)?;
    socket.connect(server).await.map_err(dial)?;
    let local = socket.local_addr().map_err(dial)?;
    let sent = socket.send(question).await.map_err(|error| {
        let why = go_text(&error);
        format!(
            "unable to send request DNS packet; reason: write udp {local}->{server}: write: {why}"
        )
    })?;
    vu.count_traffic(sent as u64, 0);
    let mut buffer = vec![0; RESPONSE_MAX];
    let response = within(vu, TIMEOUT, async {
        loop {
            let length = socket.recv(&mut buffer).await?;
            vu.count_traffic(0, length as u64);
            // Anything else belongs to another question, or is forged.
            if buffer.get(..2) == Some(&id.to_be_bytes()) {
                return Ok::<_, std::io::Error>(length);
            }
        }
    });
    let why = match response.await {
        Some(Ok(length)) => {
            buffer.truncate(length);
            return Ok(buffer);
        }
        Some(Err(error)) => format!("read: {}", go_text(&error)),
        None => "i/o timeout".to_owned(),
    };
    Err(format!("unable to receive response DNS packet; reason: read udp {local}->{server}: {why}"))
}

fn records(packet: &Packet<'_>) -> Result<Vec<String>, Rejection> {
    let code = packet.rcode();
    if code != RCODE::NoError {
        return Err(refused(code));
    }
    let texts = packet.answers.iter().map(|record| match &record.rdata {
        RData::A(a) => Ok(Ipv4Addr::from(a.address).to_string()),
        RData::AAAA(aaaa) => Ok(Ipv6Addr::from(aaaa.address).to_string()),
        RData::TXT(text) => {
            String::try_from(text.clone()).map_err(|error| Rejection::Error(error.to_string()))
        }
        other => Err(Rejection::Error(format!(
            "resolve operation failed with unsupported record type: unhandled DNS answer type \
             *dns.{:?}",
            other.type_code()
        ))),
    });
    texts.collect()
}

/// The error of a response without records.
fn refused(code: RCODE) -> Rejection {
    let (number, name) = match code {
        RCODE::NoError | RCODE::FormatError => (1, "FormatError"),
        RCODE::ServerFailure => (2, "ServerFailure"),
        RCODE::NameError => (3, "NonExistingDomain"),
        RCODE::NotImplemented => (4, "NotImplemented"),
        RCODE::Refused => (5, "Refused"),
        RCODE::YXDOMAIN => (6, "YXDomain"),
        RCODE::YXRRSET => (7, "YXRrset"),
        RCODE::NXRRSET => (8, "NXRrset"),
        RCODE::NOTAUTH => (9, "NotAuth"),
        RCODE::NOTZONE => (10, "NotZone"),
        RCODE::BADVERS => (16, "BadVers"),
        RCODE::Reserved => (u16::MAX, "Reserved"),
    };
    error((number, name), name, "DNS query failed")
}

/// An error with a name, a message and a kind.
pub(super) fn error((kind, kind_name): (u16, &str), name: &str, message: &str) -> Rejection {
    let fields = vec![("name", json!(name)), ("message", json!(message)), ("kind", json!(kind))];
    Rejection::Fields(format!("{kind_name}: {message}"), fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_any_bytes_are_refused_or_read() {
        let whole = question(7, "a.test", TYPE::TXT).unwrap();
        for end in 0..whole.len() {
            // Cut anywhere, and with each byte changed.
            let _ = Packet::parse(&whole[..end]).map(|packet| records(&packet));
            let mut changed = whole.clone();
            for byte in [0, 0xc0, 0xff] {
                changed[end] = byte;
                let _ = Packet::parse(&changed).map(|packet| records(&packet));
            }
        }
    }
}
