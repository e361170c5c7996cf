//! MySQL: texts without arguments go as they are, others are prepared.

use super::binary::{Column, argument_bytes, binary_row, text_row};
use super::{ResultSet, Room, SqlError, SqlValue, take_room};
use crate::mysql::{MySql, go_error, number, unexpected};
use crate::reply::ReplyReader;
use crate::stream::SqlTransport;

/// Columns of a result; servers have at most 4,096.
const COLUMNS_MAX: u64 = 65_535;

/// Bytes of a packet that is continued in the next one.
const PACKET_MAX: usize = 0xff_ffff;

/// The server's flag for another result after this one.
const MORE_RESULTS: u64 = 0x8;

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

impl<S: SqlTransport> MySql<S> {
    pub(super) async fn execute(
        &mut self,
        statement: &str,
        arguments: &[SqlValue],
        room: Room<'_>,
    ) -> Result<ResultSet, SqlError> {
        if arguments.is_empty() {
            self.command(QUERY, statement.as_bytes()).await?;
            return self.results(false, room).await;
        }
        self.command(PREPARE, statement.as_bytes()).await?;
        let (id, parameters) = self.prepared().await?;
        let result = match parameters == arguments.len() {
            true => {
                self.command(EXECUTE, &argument_bytes(id, arguments)).await?;
                self.results(true, room).await
            }
            false => Err(SqlError::Refused(format!(
                "sql: expected {parameters} arguments, got {}",
                arguments.len()
            ))),
        };
        // Without a reply.
        self.command(CLOSE, &id.to_le_bytes()).await?;
        result
    }

    async fn command(&mut self, command: u8, payload: &[u8]) -> Result<(), SqlError> {
        if payload.len() >= PACKET_MAX {
            let why = "packet for query is too large: gake sends at most 16 MiB".to_owned();
            return Err(SqlError::Refused(why));
        }
        self.sequence = 0;
        Ok(self.send(&[&[command], payload].concat()).await?)
    }

    /// The number of a prepared statement, and that of its parameters.
    async fn prepared(&mut self) -> Result<(u32, usize), SqlError> {
        let packet = self.packet().await?;
        let mut reply = ReplyReader(&packet);
        match reply.byte()? {
            0 => {}
            0xff => return Err(refused(reply)),
            _ => return Err(unexpected().into()),
        }
        let id = reply.little(4)? as u32;
        let (columns, parameters) = (reply.little(2)?, reply.little(2)? as usize);
        for count in [parameters as u64, columns] {
            // Definitions and their end.
            for _ in 0..if count == 0 { 0 } else { count + 1 } {
                self.packet().await?;
            }
        }
        Ok((id, parameters))
    }

    async fn results(&mut self, is_binary: bool, room: Room<'_>) -> Result<ResultSet, SqlError> {
        let mut result = ResultSet::default();
        loop {
            let head = self.packet().await?;
            let mut reply = ReplyReader(&head);
            let status = match reply.0.first() {
                Some(0xff) => return Err(refused(ReplyReader(&reply.0[1..]))),
                Some(0) => {
                    reply.byte()?;
                    result.affected = number(&mut reply)?;
                    result.last_id = Some(number(&mut reply)?);
                    reply.little(2)?
                }
                _ => {
                    let count = number(&mut reply)?;
                    if count == 0 || count > COLUMNS_MAX {
                        return Err(unexpected().into());
                    }
                    self.rows(count as usize, is_binary, &mut result, room).await?
                }
            };
            if status & MORE_RESULTS == 0 {
                return Ok(result);
            }
        }
    }

    /// Reads the columns and rows of a result; returns the server's status. Only the first result is
    /// kept.
    async fn rows(
        &mut self,
        count: usize,
        is_binary: bool,
        result: &mut ResultSet,
        room: Room<'_>,
    ) -> Result<u64, SqlError> {
        let mut columns = Vec::new();
        for _ in 0..count {
            columns.push(Column::read(&self.packet().await?)?);
        }
        self.packet().await?;
        let is_kept = result.columns.is_empty();
        if is_kept {
            result.columns = columns.iter().map(|column| column.name.clone()).collect();
        }
        loop {
            let packet = self.row_packet(count, room).await?;
            match packet.first() {
                Some(0xfe) if packet.len() < 9 => {
                    let mut reply = ReplyReader(&packet[1..]);
                    // After the number of warnings.
                    reply.little(2)?;
                    return Ok(reply.little(2)?);
                }
                Some(0xff) => return Err(refused(ReplyReader(&packet[1..]))),
                _ if !is_kept => {}
                _ if is_binary => result.rows.push(binary_row(&packet, &columns)?),
                _ => result.rows.push(text_row(&packet, &columns)?),
            }
        }
    }

    /// A packet of a row, which may be long.
    async fn row_packet(&mut self, columns: usize, room: Room<'_>) -> Result<Vec<u8>, SqlError> {
        let head = self.stream.take_bytes(4).await?;
        let mut reply = ReplyReader(&head);
        let (length, sequence) = (reply.little(3)? as usize, reply.byte()?);
        self.sequence = sequence.wrapping_add(1);
        if length >= PACKET_MAX {
            return Err(SqlError::NoRoom);
        }
        take_room(room, length, columns)?;
        Ok(self.stream.take_unbounded(length).await?)
    }
}

fn refused(reply: ReplyReader<'_>) -> SqlError {
    SqlError::Refused(go_error(reply))
}
