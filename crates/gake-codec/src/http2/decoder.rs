//! The HPACK decoder of a connection (RFC 7541).
//!
//! Servers under load send the same header block again and again. A block that is byte for byte
//! the last one means the same, unless it changes the size of the table, or both adds to the table
//! and refers to it. What it adds is added later, when a different block comes.

use super::fields::FieldsMeaning;
use super::hpack_error::HpackError;
use super::integer::{take_integer, take_string};
use super::static_table::{self, STATIC_LEN};
use super::table::{DynamicTable, ENTRY_OVERHEAD};

/// The size of the table that both sides start with; gake asks for no other.
pub(super) const TABLE_SIZE: usize = 4096;

/// Bytes of the longest block that is remembered.
const REMEMBERED_MAX: usize = 2048;

/// Shows each field to somebody, in order.
pub(super) type Shown<'a> = Option<&'a mut dyn FnMut(&[u8], &[u8])>;

/// Decodes the header blocks of one connection, which must all be given to it, in order.
#[derive(Debug)]
pub struct HeaderDecoder {
    table: DynamicTable,
    /// Maximum bytes of the fields of one block, as they count in the table.
    bytes_max: usize,
    /// The name and value being decoded.
    text: Vec<u8>,
    last: LastBlock,
}

/// The last block, when it can be taken for the next.
#[derive(Debug, Default)]
struct LastBlock {
    bytes: Vec<u8>,
    meaning: FieldsMeaning,
    is_kept: bool,
    /// Whether it adds to the table.
    adds: bool,
    /// How often it came again, as far as that makes a difference.
    again: usize,
    /// From this often on, the table holds nothing but what the block adds.
    again_max: usize,
}

/// What decoding a block did to the table.
#[derive(Debug, Default)]
struct Effect {
    meaning: FieldsMeaning,
    bytes: usize,
    refers: bool,
    resizes: bool,
    /// Bytes added to the table.
    added: usize,
}

impl HeaderDecoder {
    /// A decoder of blocks whose fields have at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let (table, last) = (DynamicTable::new(TABLE_SIZE), LastBlock::default());
        Self { table, bytes_max, text: Vec::new(), last }
    }

    /// Decodes a block.
    ///
    /// # Errors
    /// When it is not HPACK. The decoder cannot be used after that.
    #[inline]
    pub fn decode(&mut self, block: &[u8]) -> Result<FieldsMeaning, HpackError> {
        let last = &mut self.last;
        if last.is_kept && last.bytes == block {
            if last.adds && last.again < last.again_max {
                last.again += 1;
            }
            return Ok(last.meaning);
        }
        self.decode_anew(block)
    }

    /// The same, showing each field to `show`.
    ///
    /// # Errors
    /// When it is not HPACK. The decoder cannot be used after that.
    pub fn decode_shown(
        &mut self,
        block: &[u8],
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<FieldsMeaning, HpackError> {
        self.catch_up()?;
        self.last.is_kept = false;
        Ok(self.run(block, Some(show))?.meaning)
    }

    #[cold]
    fn decode_anew(&mut self, block: &[u8]) -> Result<FieldsMeaning, HpackError> {
        self.catch_up()?;
        let effect = self.run(block, None)?;
        let last = &mut self.last;
        last.is_kept = block.len() <= REMEMBERED_MAX
            && !effect.resizes
            && !(effect.refers && effect.added > 0);
        if last.is_kept {
            last.bytes.clear();
            last.bytes.extend_from_slice(block);
            last.meaning = effect.meaning;
            last.adds = effect.added > 0;
            last.again_max = self.table.max() / effect.added.max(1) + 2;
        }
        Ok(effect.meaning)
    }

    /// Adds to the table what the last block would have added each time that it came again.
    fn catch_up(&mut self) -> Result<(), HpackError> {
        let again = std::mem::take(&mut self.last.again);
        if again > 0 {
            let bytes = std::mem::take(&mut self.last.bytes);
            for _ in 0..again {
                self.run(&bytes, None)?;
            }
            self.last.bytes = bytes;
        }
        Ok(())
    }

    fn run(&mut self, mut block: &[u8], mut show: Shown<'_>) -> Result<Effect, HpackError> {
        let mut effect = Effect::default();
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
        effect: &mut Effect,
        show: &mut Shown<'_>,
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

impl Effect {
    fn take(&mut self, name: &[u8], value: &[u8], show: &mut Shown<'_>) {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD;
        self.meaning.add(name, value);
        if let Some(show) = show {
            show(name, value);
        }
    }
}

/// The field with an index of either table.
fn lookup(table: &DynamicTable, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
    match index.checked_sub(STATIC_LEN + 1) {
        Some(back) => table.get(back).ok_or(HpackError::Index),
        None => {
            let (name, value) = static_table::entry(index).ok_or(HpackError::Index)?;
            Ok((name.as_bytes(), value.as_bytes()))
        }
    }
}
