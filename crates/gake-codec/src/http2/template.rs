//! The header block of a request, encoded once.
//!
//! The fields that requests have in common are added to the server's table by the first request of
//! a connection, and are a byte each from then on. The path, and what else differs, is always
//! literal, so the indices never shift. A connection whose table holds other fields gets them as
//! literals.

use std::sync::Arc;

use super::integer::{put_integer, put_string};
use super::static_table::{self, STATIC_LEN};
use super::table::ENTRY_OVERHEAD;

/// Fields that requests share, in each form in which they are sent.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedFields {
    /// Adds them to the table.
    adding: Box<[u8]>,
    /// Refers to them there, when the table holds them and nothing else.
    indexed: Box<[u8]>,
    /// Spells them out.
    literal: Box<[u8]>,
    /// Bytes of the table that they take.
    table_size: usize,
}

/// How the shared fields of a request are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldsForm {
    Adding,
    Indexed,
    Literal,
}

/// A request in HTTP/2.
#[derive(Debug, Clone)]
pub struct RequestTemplate {
    /// The pseudo-headers and what else is this request's own; pseudo-headers come first.
    own: Box<[u8]>,
    shared: Arc<SharedFields>,
    /// The headers behind the shared ones.
    tail: Box<[u8]>,
    /// The body, never empty.
    pub body: Option<Arc<[u8]>>,
    /// Whether the method is HEAD, so that the answer has no body.
    pub is_head: bool,
    /// Whether it is a call of gRPC, whose answer has a status in its trailers.
    pub is_grpc: bool,
}

impl SharedFields {
    /// The forms of these fields, in this order.
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
                for form in [&mut adding, &mut indexed, &mut literal] {
                    put_integer(form, 0x80, 7, index);
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

    /// Bytes of the table that they take.
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

    /// Adds a header behind all others.
    pub fn push(&mut self, name: &str, value: &[u8]) {
        self.tail = [&self.tail[..], &literals(&[(name, value)])].concat().into_boxed_slice();
    }

    /// Bytes of the longest form of its block, and of the body.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let shared = self.shared.adding.len().max(self.shared.literal.len());
        let body = self.body.as_ref().map_or(0, |body| body.len());
        self.own.len() + shared + self.tail.len() + body
    }

    /// The fields that it can share with others.
    #[must_use]
    pub fn shared(&self) -> &Arc<SharedFields> {
        &self.shared
    }

    /// Takes its shared fields from another request that has the same ones.
    pub fn share(&mut self, fields: &Arc<SharedFields>) {
        self.shared = Arc::clone(fields);
    }

    /// The pieces of its header block, to be written one after the other.
    pub(super) fn block(&self, form: FieldsForm) -> [&[u8]; 3] {
        let shared = match form {
            FieldsForm::Adding => &self.shared.adding,
            FieldsForm::Indexed => &self.shared.indexed,
            FieldsForm::Literal => &self.shared.literal,
        };
        [&self.own, shared, &self.tail]
    }
}

/// Fields that no table will hold.
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

/// A literal whose name has an index, or is spelled out.
fn put_literal(out: &mut Vec<u8>, first: u8, bits: u32, name: (usize, &str), value: &[u8]) {
    put_integer(out, first, bits, name.0);
    if name.0 == 0 {
        put_string(out, name.1.as_bytes());
    }
    put_string(out, value);
}
