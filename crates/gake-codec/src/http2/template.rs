//! The header block of a request, encoded once.
//!
//! The first request of a connection adds the fields that requests share to the server's table; from
//! then on they take a byte each. All other fields are literals, so that indices never shift. A
//! connection whose table holds other shared fields gets literals.

use std::sync::Arc;

use super::integer::{put_integer, put_string};
use super::static_table::{self, STATIC_LEN};
use super::table::ENTRY_OVERHEAD;

/// Fields that requests share, in every encoding.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedFields {
    /// Literals that are added to the table.
    adding: Box<[u8]>,
    /// Indices, valid while the table holds exactly these fields.
    indexed: Box<[u8]>,
    /// Literals that leave the table alone.
    literal: Box<[u8]>,
    /// Their size in the table, in bytes.
    table_size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldEncoding {
    Adding,
    Indexed,
    Literal,
}

/// An encoded request.
#[derive(Debug, Clone)]
pub struct RequestTemplate {
    /// The pseudo-headers that differ between requests.
    own: Box<[u8]>,
    shared: Arc<SharedFields>,
    /// The headers after the shared ones.
    tail: Box<[u8]>,
    /// The body, never empty.
    pub body: Option<Arc<[u8]>>,
    /// Whether the method is HEAD, so that the response has no body.
    pub is_head: bool,
    /// Whether it is a gRPC call, whose response has a status in its trailers.
    pub is_grpc: bool,
}

impl SharedFields {
    /// Encodes these fields, in this order.
    #[must_use]
    pub fn new(fields: &[(&str, &[u8])]) -> Self {
        let (mut adding, mut indexed, mut literal) = (Vec::new(), Vec::new(), Vec::new());
        let mut table_size = 0;
        let added =
            fields.iter().filter(|(name, value)| !static_table::find(name, value).1).count();
        let mut number = 0;
        for (name, value) in fields {
            let (index, is_whole) = static_table::find(name, value);
            if is_whole {
                for encoding in [&mut adding, &mut indexed, &mut literal] {
                    put_integer(encoding, 0x80, 7, index);
                }
                continue;
            }
            number += 1;
            table_size += name.len() + value.len() + ENTRY_OVERHEAD;
            put_literal(&mut adding, 0x40, 6, (index, name), value);
            // The newest entry has the lowest index.
            put_integer(&mut indexed, 0x80, 7, STATIC_LEN + 1 + added - number);
            put_literal(&mut literal, 0, 4, (index, name), value);
        }
        let [adding, indexed, literal] = [adding, indexed, literal].map(Vec::into_boxed_slice);
        Self { adding, indexed, literal, table_size }
    }

    pub(super) const fn table_size(&self) -> usize {
        self.table_size
    }
}

impl RequestTemplate {
    /// A request with these pseudo-headers (method, scheme, path), then `shared`, whose first is
    /// `:authority`, then `tail`.
    #[must_use]
    pub fn new(
        (method, scheme, path): (&str, &str, &str),
        shared: Arc<SharedFields>,
        tail: &[(&str, &[u8])],
        body: Option<Arc<[u8]>>,
    ) -> Self {
        let pseudo = [(":method", method), (":scheme", scheme), (":path", path)]
            .map(|(n, v)| (n, v.as_bytes()));
        Self {
            own: literals(&pseudo),
            shared,
            tail: literals(tail),
            body: body.filter(|body| !body.is_empty()),
            is_head: method == "HEAD",
            is_grpc: false,
        }
    }

    /// Appends a header.
    pub fn push(&mut self, name: &str, value: &[u8]) {
        self.tail = [&self.tail[..], &literals(&[(name, value)])].concat().into_boxed_slice();
    }

    /// Bytes of the longest encoding of its block, and of the body.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let shared = self.shared.adding.len().max(self.shared.literal.len());
        let body = self.body.as_ref().map_or(0, |body| body.len());
        self.own.len() + shared + self.tail.len() + body
    }

    /// The fields that other requests can share.
    #[must_use]
    pub fn shared(&self) -> &Arc<SharedFields> {
        &self.shared
    }

    /// Shares the fields of another request, which must be equal.
    pub fn share(&mut self, fields: &Arc<SharedFields>) {
        self.shared = Arc::clone(fields);
    }

    /// Its header block, in three consecutive slices.
    pub(super) fn block(&self, encoding: FieldEncoding) -> [&[u8]; 3] {
        let shared = match encoding {
            FieldEncoding::Adding => &self.shared.adding,
            FieldEncoding::Indexed => &self.shared.indexed,
            FieldEncoding::Literal => &self.shared.literal,
        };
        [&self.own, shared, &self.tail]
    }
}

/// Fields encoded without adding to the table.
fn literals(fields: &[(&str, &[u8])]) -> Box<[u8]> {
    let mut block = Vec::new();
    for (name, value) in fields {
        match static_table::find(name, value) {
            (index, true) => put_integer(&mut block, 0x80, 7, index),
            (index, false) => put_literal(&mut block, 0, 4, (index, name), value),
        }
    }
    block.into_boxed_slice()
}

/// Appends a literal; the name is an index, or text if that is 0.
fn put_literal(out: &mut Vec<u8>, first: u8, bits: u32, name: (usize, &str), value: &[u8]) {
    put_integer(out, first, bits, name.0);
    if name.0 == 0 {
        put_string(out, name.1.as_bytes());
    }
    put_string(out, value);
}
