//! The types of a stream: enough to find a result's fields by name and to skip the others.

use std::collections::HashMap;

use super::input::{GobError, MessageReader};

/// Most types of a stream and fields of a struct; Vegeta's needs four and twelve.
const DEFINITIONS_MAX: usize = 1_000;

/// Most nesting of skipped values.
const DEPTH_MAX: u32 = 64;

pub(super) mod builtin {
    pub(in super::super) const BOOL: i64 = 1;
    pub(in super::super) const INT: i64 = 2;
    pub(in super::super) const UINT: i64 = 3;
    pub(in super::super) const FLOAT: i64 = 4;
    pub(in super::super) const BYTES: i64 = 5;
    pub(in super::super) const STRING: i64 = 6;
    pub(in super::super) const COMPLEX: i64 = 7;
    pub(in super::super) const INTERFACE: i64 = 8;
}
use builtin::{BOOL, BYTES, COMPLEX, FLOAT, INT, INTERFACE, STRING, UINT};

#[derive(Debug, Clone)]
pub(super) enum GobType {
    /// An array or a slice of this type.
    List(i64),
    /// A map from one type to another.
    Map(i64, i64),
    /// A struct with the names and types of its fields.
    Struct(Vec<(String, i64)>),
    /// Bytes with an encoding of their own.
    Opaque,
}

#[derive(Debug, Default)]
pub(super) struct TypeTable {
    defined: HashMap<i64, GobType>,
}

impl TypeTable {
    pub(super) fn get(&self, number: i64) -> Option<&GobType> {
        self.defined.get(&number)
    }

    /// Reads the definition of the type `number`. A later definition replaces an earlier one: a
    /// file may contain several streams.
    pub(super) fn define(
        &mut self,
        number: i64,
        input: &mut MessageReader<'_>,
    ) -> Result<(), GobError> {
        let kind = input.uint()?;
        let defined = match kind {
            1 => list(input, true)?,
            2 => list(input, false)?,
            3 => structure(input)?,
            4 => map(input)?,
            5..=7 => {
                skip_common(input)?;
                GobType::Opaque
            }
            _ => return Err(format!("it defines a type of the unknown kind {kind}")),
        };
        if self.defined.len() >= DEFINITIONS_MAX {
            return Err("it defines too many types".to_owned());
        }
        self.defined.insert(number, defined);
        Ok(())
    }

    /// Skips a value of the type `number`.
    pub(super) fn skip(&self, number: i64, input: &mut MessageReader<'_>) -> Result<(), GobError> {
        self.skip_in(number, input, DEPTH_MAX)
    }

    fn skip_in(
        &self,
        number: i64,
        input: &mut MessageReader<'_>,
        depth: u32,
    ) -> Result<(), GobError> {
        let depth = depth.checked_sub(1).ok_or("its values stand too deep in one another")?;
        match number {
            BOOL | INT | UINT | FLOAT => return input.uint().map(drop),
            BYTES | STRING => return input.bytes().map(drop),
            COMPLEX => return input.uint().and_then(|_| input.uint()).map(drop),
            INTERFACE => return skip_interface(input),
            _ => {}
        }
        match self.get(number).ok_or("it has a value of a type that was not defined")? {
            GobType::Opaque => input.bytes().map(drop),
            GobType::List(element) => {
                for _ in 0..input.count()? {
                    self.skip_in(*element, input, depth)?;
                }
                Ok(())
            }
            GobType::Map(key, value) => {
                for _ in 0..input.count()? {
                    self.skip_in(*key, input, depth)?;
                    self.skip_in(*value, input, depth)?;
                }
                Ok(())
            }
            GobType::Struct(fields) => {
                let mut numbers = FieldNumbers::default();
                while let Some(at) = numbers.next(input)? {
                    let (_, kind) = fields.get(at).ok_or("it has a field too many")?;
                    self.skip_in(*kind, input, depth)?;
                }
                Ok(())
            }
        }
    }
}

/// The numbers of a struct's fields in order, from 0.
#[derive(Debug, Default)]
pub(super) struct FieldNumbers {
    /// The number after the last one.
    next: usize,
}

impl FieldNumbers {
    /// The next field; `None` at the end of the struct.
    pub(super) fn next(
        &mut self,
        input: &mut MessageReader<'_>,
    ) -> Result<Option<usize>, GobError> {
        let delta = input.uint()?;
        if delta == 0 {
            return Ok(None);
        }
        let next = usize::try_from(delta).ok().and_then(|delta| self.next.checked_add(delta));
        self.next = next.ok_or("it has a field too many")?;
        Ok(Some(self.next - 1))
    }
}

/// An interface value: the name of its type, empty for nil, the type's number, and its bytes.
fn skip_interface(input: &mut MessageReader<'_>) -> Result<(), GobError> {
    if input.bytes()?.is_empty() {
        return Ok(());
    }
    input.int()?;
    input.bytes().map(drop)
}

/// `{Common, Elem}` of a slice, and `Len` of an array.
fn list(input: &mut MessageReader<'_>, array: bool) -> Result<GobType, GobError> {
    let mut element = None;
    each_field(input, |at, input| match at {
        0 => skip_common_body(input),
        1 => input.int().map(|number| element = Some(number)),
        2 if array => input.int().map(drop),
        _ => Err(unknown_definition()),
    })?;
    end(input)?;
    element.map(GobType::List).ok_or_else(unknown_definition)
}

/// `{Common, Key, Elem}`.
fn map(input: &mut MessageReader<'_>) -> Result<GobType, GobError> {
    let (mut key, mut element) = (None, None);
    each_field(input, |at, input| match at {
        0 => skip_common_body(input),
        1 => input.int().map(|number| key = Some(number)),
        2 => input.int().map(|number| element = Some(number)),
        _ => Err(unknown_definition()),
    })?;
    end(input)?;
    key.zip(element).map(|(key, element)| GobType::Map(key, element)).ok_or_else(unknown_definition)
}

/// `{Common, StructFields}`.
fn structure(input: &mut MessageReader<'_>) -> Result<GobType, GobError> {
    let mut fields = Vec::new();
    each_field(input, |at, input| match at {
        0 => skip_common_body(input),
        1 => {
            let count = input.count()?;
            if count > DEFINITIONS_MAX as u64 {
                return Err("it defines too many fields".to_owned());
            }
            for _ in 0..count {
                fields.push(field(input)?);
            }
            Ok(())
        }
        _ => Err(unknown_definition()),
    })?;
    end(input)?;
    Ok(GobType::Struct(fields))
}

/// `{Name, Id}`.
fn field(input: &mut MessageReader<'_>) -> Result<(String, i64), GobError> {
    let (mut name, mut number) = (String::new(), 0);
    each_field(input, |at, input| match at {
        0 => input.text().map(|text| name = text),
        1 => input.int().map(|value| number = value),
        _ => Err(unknown_definition()),
    })?;
    Ok((name, number))
}

/// A definition that contains only `Common`.
fn skip_common(input: &mut MessageReader<'_>) -> Result<(), GobError> {
    each_field(input, |at, input| match at {
        0 => skip_common_body(input),
        _ => Err(unknown_definition()),
    })?;
    end(input)
}

/// `{Name, Id}` of the type itself.
fn skip_common_body(input: &mut MessageReader<'_>) -> Result<(), GobError> {
    field(input).map(drop)
}

fn each_field<'a>(
    input: &mut MessageReader<'a>,
    mut read: impl FnMut(usize, &mut MessageReader<'a>) -> Result<(), GobError>,
) -> Result<(), GobError> {
    let mut numbers = FieldNumbers::default();
    while let Some(at) = numbers.next(input)? {
        read(at, input)?;
    }
    Ok(())
}

/// The end of the struct around a definition.
fn end(input: &mut MessageReader<'_>) -> Result<(), GobError> {
    if input.uint()? == 0 { Ok(()) } else { Err(unknown_definition()) }
}

fn unknown_definition() -> GobError {
    "it defines a type in an unknown way".to_owned()
}
