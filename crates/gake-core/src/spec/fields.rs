//! Tables of fields, from which drafts, layering, keys, flags, the reference in docs/spec.md and
//! the JSON schema are derived.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::value::{CountValue, RateValue, TimeValue};
use crate::plan::Rate;

/// A field of a spec.
#[derive(Debug, Clone, Copy)]
pub struct SpecField {
    /// The key in spec files.
    pub key: &'static str,
    /// The flags of `gake run` that set it, separated by commas; may be empty.
    pub flag: &'static str,
    /// Description in Markdown.
    pub meaning: &'static str,
    /// Default in Markdown; fields without one are not in the reference.
    pub default: Option<&'static str>,
}

impl SpecField {
    /// A Markdown table of the fields that have a default.
    #[must_use]
    pub fn reference(fields: &[Self]) -> String {
        let mut text =
            "| field | flag | meaning | default |\n| --- | --- | --- | --- |\n".to_owned();
        for Self { key, flag, meaning, default } in fields {
            let Some(default) = default else { continue };
            let flags: Vec<_> =
                flag.split(", ").filter(|f| !f.is_empty()).map(|f| format!("`{f}`")).collect();
            let (flags, meaning) = (flags.join(", "), meaning.trim());
            text.push_str(&format!("| `{key}` | {flags} | {meaning} | {default} |\n"));
        }
        text
    }
}

/// A value of a draft: unset until a layer sets it.
pub trait Layer: Default {
    /// Whether it is left to the layers below.
    fn is_unset(&self) -> bool;

    /// Applies the layer above.
    fn overlay(&mut self, above: Self) {
        if !above.is_unset() {
            *self = above;
        }
    }
}

impl<T> Layer for Option<T> {
    fn is_unset(&self) -> bool {
        self.is_none()
    }
}

impl<T> Layer for Vec<T> {
    fn is_unset(&self) -> bool {
        self.is_empty()
    }
}

impl<K: Ord, V> Layer for BTreeMap<K, V> {
    fn is_unset(&self) -> bool {
        self.is_empty()
    }
}

/// Declares a draft and its [`SpecField`]s: `key: Type ["--flag"] = "default";`.
macro_rules! fields {
    (
        $(#[$outer:meta])*
        pub struct $draft:ident {$(
            $(#[doc = $meaning:literal])*
            $(#[serde($($serde:tt)*)])?
            $key:ident: $type:ty $([$flag:literal])? $(= $default:literal)?;
        )*}
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $draft {$(
            $(#[doc = $meaning])*
            #[serde(default, skip_serializing_if = "Layer::is_unset" $(, $($serde)*)?)]
            pub $key: $type,
        )*}

        impl $draft {
            /// Its fields, in the order of files.
            pub const FIELDS: &'static [$crate::spec::SpecField] = &[$($crate::spec::SpecField {
                key: stringify!($key),
                flag: concat!($($flag)?),
                meaning: concat!($($meaning),*),
                default: $crate::spec::fields::first!($(Some($default),)? None),
            },)*];

            /// The keys that are set.
            #[must_use]
            pub fn keys(&self) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if !Layer::is_unset(&self.$key) {
                    keys.push(stringify!($key));
                })*
                keys
            }

            /// Unsets these keys.
            pub fn unset(&mut self, keys: &[&str]) {
                $(if keys.contains(&stringify!($key)) {
                    self.$key = Default::default();
                })*
            }
        }

        impl Layer for $draft {
            fn is_unset(&self) -> bool {
                $(Layer::is_unset(&self.$key))&&*
            }

            fn overlay(&mut self, above: Self) {
                $(Layer::overlay(&mut self.$key, above.$key);)*
            }
        }
    };
}

/// The first of several values.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

/// Declares settings with their draft: `key: Type = default, ["--flag"] = "default in words";`.
macro_rules! settings {
    (
        $(#[$outer:meta])*
        pub struct $spec:ident, $draft:ident {$(
            $(#[doc = $meaning:literal])*
            $key:ident: $type:ty = $value:expr, $([$flag:literal])? = $default:literal;
        )*}
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $spec {$(
            $(#[doc = $meaning])*
            pub $key: $type,
        )*}

        fields! {
            $(#[$outer])*
            pub struct $draft {$(
                $(#[doc = $meaning])*
                $key: <$type as Setting>::Draft $([$flag])? = $default;
            )*}
        }

        impl Default for $spec {
            fn default() -> Self {
                Self { $($key: $value,)* }
            }
        }

        impl $spec {
            pub(super) fn draft(&self) -> $draft {
                let default = Self::default();
                $draft { $($key: Setting::draft(&self.$key, &default.$key),)* }
            }
        }

        impl From<$draft> for $spec {
            /// Applies defaults, without checks for contradictions.
            fn from(draft: $draft) -> Self {
                let default = Self::default();
                Self { $($key: Setting::decided(draft.$key, default.$key),)* }
            }
        }
    };
}

macro_rules! setting {
    ($($type:ty, $draft:ty, $to:expr, $from:expr;)*) => {$(
        impl $crate::spec::fields::Setting for $type {
            type Draft = Option<$draft>;

            fn draft(&self, default: &Self) -> Self::Draft {
                (self != default).then(|| $to(self.clone()))
            }

            fn decided(draft: Self::Draft, default: Self) -> Self {
                draft.map_or(default, $from)
            }
        }

        impl $crate::spec::fields::Setting for Option<$type> {
            type Draft = Option<$draft>;

            fn draft(&self, _: &Self) -> Self::Draft {
                self.clone().map($to)
            }

            fn decided(draft: Self::Draft, default: Self) -> Self {
                draft.map($from).or(default)
            }
        }
    )*};
}

pub(super) use {fields, first, setting, settings};

/// A setting of a spec, and its type in a draft.
pub trait Setting: Sized {
    /// The type in a draft.
    type Draft: Layer;
    /// The draft of this value, unset if it is the default.
    fn draft(&self, default: &Self) -> Self::Draft;
    /// The value of a draft, or the default.
    fn decided(draft: Self::Draft, default: Self) -> Self;
}

impl<T: Clone> Setting for Vec<T> {
    type Draft = Self;

    fn draft(&self, _: &Self) -> Self {
        self.clone()
    }

    fn decided(draft: Self, _: Self) -> Self {
        draft
    }
}

pub(super) fn same<T>(value: T) -> T {
    value
}

setting! {
    bool, bool, same, same;
    u32, u32, same, same;
    String, String, same, same;
    PathBuf, PathBuf, same, same;
    u64, CountValue, CountValue, |CountValue(count)| count;
    usize, CountValue, |count| CountValue(count as u64), CountValue::size;
    Duration, TimeValue, TimeValue, |TimeValue(time)| time;
    f64, RateValue, |rate| RateValue(Rate::PerSecond(rate)), RateValue::per_second;
}
