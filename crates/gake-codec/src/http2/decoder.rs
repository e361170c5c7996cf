//! The HPACK decoder of a connection (RFC 7541).
//!
//! Under load, a server repeats the same header block. A block identical to the previous one has the
//! same fields, unless it resizes the table, or both adds to the table and refers to it. Its
//! additions are deferred until a different block comes.

use super::fields::ResponseFields;
use super::hpack_error::HpackError;
use super::integer::{take_integer, take_string};
use super::static_table::{self, STATIC_LEN};
use super::table::{DynamicTable, ENTRY_OVERHEAD};

/// The default table size, which gake never changes.
pub(super) const TABLE_SIZE: usize = 4096;

/// Longer blocks are not remembered.
const REMEMBERED_MAX: usize = 2048;

/// Called with the name and value of each field.
type FieldSink<'a> = Option<&'a mut dyn FnMut(&[u8], &[u8])>;

/// Decodes the header blocks of one connection, all of them and in order.
#[derive(Debug)]
pub struct HeaderDecoder {
    table: DynamicTable,
    /// Maximum size of the fields of one block, in the table's measure.
    bytes_max: usize,
    /// The name and value of the current field.
    text: Vec<u8>,
    last: LastBlock,
}

#[derive(Debug, Default)]
struct LastBlock {
    bytes: Vec<u8>,
    fields: ResponseFields,
    /// Whether a repetition of it need not be decoded.
    is_kept: bool,
    /// Whether it adds to the table.
    adds: bool,
    /// Its repetitions, up to `repeats_max`.
    repeats: usize,
    /// From this many repetitions on, the table holds only additions of this block.
    repeats_max: usize,
}

/// The effect of a block: its fields, and its changes of the table.
#[derive(Debug, Default)]
struct BlockEffect {
    fields: ResponseFields,
    bytes: usize,
    refers: bool,
    resizes: bool,
    added: usize,
}

impl HeaderDecoder {
    /// A decoder of blocks of at most `bytes_max`, counted as in the table: 32 bytes per field more
    /// than its text.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let (table, last) = (DynamicTable::new(TABLE_SIZE), LastBlock::default());
        Self { table, bytes_max, text: Vec::new(), last }
    }

    /// Decodes a block.
    ///
    /// # Errors
    /// The block is not valid HPACK. The decoder is unusable afterwards.
    #[inline]
    pub fn decode(&mut self, block: &[u8]) -> Result<ResponseFields, HpackError> {
        let last = &mut self.last;
        if last.is_kept && last.bytes == block {
            if last.adds && last.repeats < last.repeats_max {
                last.repeats += 1;
            }
            return Ok(last.fields);
        }
        self.decode_anew(block)
    }

    /// Decodes a block and passes each field to `show`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_shown(
        &mut self,
        block: &[u8],
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<ResponseFields, HpackError> {
        self.catch_up()?;
        self.last.is_kept = false;
        Ok(self.run(block, Some(show))?.fields)
    }

    #[cold]
    fn decode_anew(&mut self, block: &[u8]) -> Result<ResponseFields, HpackError> {
        self.catch_up()?;
        let effect = self.run(block, None)?;
        let last = &mut self.last;
        last.is_kept = block.len() <= REMEMBERED_MAX
            && !effect.resizes
            && !(effect.refers && effect.added > 0);
        if last.is_kept {
            last.bytes.clear();
            last.bytes.extend_from_slice(block);
            last.fields = effect.fields;
            last.adds = effect.added > 0;
            last.repeats_max = self.table.max() / effect.added.max(1) + 2;
        }
        Ok(effect.fields)
    }

    /// Applies the deferred additions of the previous block's repetitions.
    fn catch_up(&mut self) -> Result<(), HpackError> {
        let repeats = std::mem::take(&mut self.last.repeats);
        if repeats > 0 {
            let bytes = std::mem::take(&mut self.last.bytes);
            for _ in 0..repeats {
                self.run(&bytes, None)?;
            }
            self.last.bytes = bytes;
        }
        Ok(())
    }

    fn run(
        &mut self,
        mut block: &[u8],
        mut show: FieldSink<'_>,
    ) -> Result<BlockEffect, HpackError> {
        let mut effect = BlockEffect::default();
        let mut has_fields = false;
        while let Some(&first) = block.first() {
            if first & 0xe0 == 0x20 {
                let size = take_integer(&mut block, 5)?;
                if has_fields || size > TABLE_SIZE {
                    return Err(HpackError::SizeUpdate);
                }
                self.table.resize(size);
                effect.resizes = true;
                continue;
            }
            has_fields = true;
            if first & 0x80 != 0 {
                let index = take_integer(&mut block, 7)?;
                effect.refers |= index > STATIC_LEN;
                let (name, value) = lookup(&self.table, index)?;
                effect.take(name, value, &mut show);
            } else {
                self.literal(first, &mut block, &mut effect, &mut show)?;
            }
            if effect.bytes > self.bytes_max {
                return Err(HpackError::TooLarge);
            }
        }
        Ok(effect)
    }

    fn literal(
        &mut self,
        first: u8,
        block: &mut &[u8],
        effect: &mut BlockEffect,
        show: &mut FieldSink<'_>,
    ) -> Result<(), HpackError> {
        let is_added = first & 0x40 != 0;
        let index = take_integer(block, if is_added { 6 } else { 4 })?;
        self.text.clear();
        if index == 0 {
            take_string(block, &mut self.text)?;
        } else {
            effect.refers |= index > STATIC_LEN;
            self.text.extend_from_slice(lookup(&self.table, index)?.0);
        }
        let name = self.text.len();
        take_string(block, &mut self.text)?;
        let (name, value) = self.text.split_at(name);
        effect.take(name, value, show);
        if is_added {
            effect.added += name.len() + value.len() + ENTRY_OVERHEAD;
            self.table.push(name, value);
        }
        Ok(())
    }
}

impl BlockEffect {
    fn take(&mut self, name: &[u8], value: &[u8], show: &mut FieldSink<'_>) {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD;
        self.fields.add(name, value);
        if let Some(show) = show {
            show(name, value);
        }
    }
}

/// The field at an index of either table.
fn lookup(table: &DynamicTable, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
    match index.checked_sub(STATIC_LEN + 1) {
        Some(back) => table.get(back).ok_or(HpackError::Index),
        None => {
            let (name, value) = static_table::entry(index).ok_or(HpackError::Index)?;
            Ok((name.as_bytes(), value.as_bytes()))
        }
    }
}
