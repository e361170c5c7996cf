//! The task of an HTTP/3 connection: its unidirectional streams, and its end.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_codec::http3::{
    ControlEvent, ControlReader, StreamViolation, control_opening, stream_kind,
};
use gake_core::record::{Fault, Phase};
use quinn::{ConnectionError, ReadError, RecvStream, VarInt};

use super::http3_link::Http3Link;
use crate::quic::{QuicSocket, of_lost};

/// Maximum bytes of a stream's type.
const KIND_MAX: usize = 8;

pub(super) async fn run(link: Rc<Http3Link>, socket: Arc<QuicSocket>) {
    let fault = tokio::select! {
        biased;
        error = serve(&link) => of_lost(&error, Phase::FirstByte),
        () = socket.refused() => {
            // The peer is gone.
            link.connection().close(VarInt::from_u32(0), b"");
            Fault::Reset
        }
    };
    link.end(fault);
}

/// Opens the client's control stream and accepts the server's streams, until the connection is lost.
async fn serve(link: &Rc<Http3Link>) -> ConnectionError {
    let connection = link.connection();
    let mut control = match connection.open_uni().await {
        Ok(control) => control,
        Err(error) => return error,
    };
    let opening = control_opening(link.limits.header_bytes);
    if control.write_all(&opening).await.is_ok() {
        link.add_bytes(0, opening.len());
    }
    let has_control: Rc<Cell<bool>> = Rc::default();
    loop {
        match connection.accept_uni().await {
            Ok(stream) => {
                let (link, has_control) = (Rc::clone(link), Rc::clone(&has_control));
                tokio::task::spawn_local(async move {
                    if let Err(violation) = read(&link, stream, &has_control).await {
                        link.fail(violation);
                    }
                });
            }
            Err(error) => return error,
        }
    }
}

/// Reads a stream of the server to its end. QPACK's streams are irrelevant without a dynamic table;
/// unknown types are skipped.
async fn read(
    link: &Http3Link,
    mut stream: RecvStream,
    has_control: &Cell<bool>,
) -> Result<(), StreamViolation> {
    let (mut start, mut reader) = (Vec::new(), None);
    loop {
        let chunk = match stream.read_chunk(usize::MAX, true).await {
            Ok(Some(chunk)) => chunk.bytes,
            Ok(None) | Err(ReadError::Reset(_)) if reader.is_some() => {
                return Err(StreamViolation::ControlClosed);
            }
            Ok(None) | Err(_) => return Ok(()),
        };
        link.add_bytes(chunk.len(), 0);
        if let Some(reader) = &mut reader {
            receive(link, reader, &chunk)?;
            continue;
        }
        if start.len() >= KIND_MAX {
            continue;
        }
        start.extend_from_slice(&chunk);
        let mut rest = &start[..];
        match stream_kind::take(&mut rest) {
            None => {}
            Some(stream_kind::PUSH) => return Err(StreamViolation::Push),
            Some(stream_kind::CONTROL) => {
                if has_control.replace(true) {
                    return Err(StreamViolation::SecondControl);
                }
                let mut control = ControlReader::default();
                receive(link, &mut control, rest)?;
                reader = Some(control);
            }
            Some(_) => start.resize(KIND_MAX, 0),
        }
    }
}

fn receive(
    link: &Http3Link,
    reader: &mut ControlReader,
    bytes: &[u8],
) -> Result<(), StreamViolation> {
    reader.receive(bytes, |ControlEvent::Goaway(first)| link.goes_away(first))
}
