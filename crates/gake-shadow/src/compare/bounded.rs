//! Deserialises collections with a bound, so that a small file cannot expand to a large amount of
//! memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Larger than any real count, and small enough that sums do not overflow.
const COUNT_MAX: u64 = 1 << 50;

pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let count = u64::deserialize(from)?;
    if count > COUNT_MAX {
        return Err(Error::custom(format!("the count {count} is too large")));
    }
    Ok(count)
}

/// A bounded count as the value of a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count(pub(super) u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        count(from).map(Self)
    }
}

/// A map of at most `MAX` entries.
pub(super) fn map<'de, const MAX: usize, D, K, V>(from: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    struct Reads<const MAX: usize, K, V>(PhantomData<(K, V)>);

    impl<'de, const MAX: usize, K, V> Visitor<'de> for Reads<MAX, K, V>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
    {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a map of at most {MAX} entries")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry()? {
                map.insert(key, value);
                if map.len() > MAX {
                    return Err(Error::invalid_length(map.len(), &self));
                }
            }
            Ok(map)
        }
    }

    from.deserialize_map(Reads::<MAX, K, V>(PhantomData))
}

/// A list of at most `MAX` elements.
pub(super) fn list<'de, const MAX: usize, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Reads<const MAX: usize, T>(PhantomData<T>);

    impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for Reads<MAX, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX} elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::new();
            while let Some(element) = elements.next_element()? {
                list.push(element);
                if list.len() > MAX {
                    return Err(Error::invalid_length(list.len(), &self));
                }
            }
            Ok(list)
        }
    }

    from.deserialize_seq(Reads::<MAX, T>(PhantomData))
}

/// A set of at most `MAX` elements.
pub(super) fn set<'de, const MAX: usize, D, T>(from: D) -> Result<BTreeSet<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Ord,
{
    Ok(list::<MAX, _, _>(from)?.into_iter().collect())
}
