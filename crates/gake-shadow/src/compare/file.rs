//! The file of comparisons: one JSON document, `gake.shadow/1`.
//!
//! It is replaced atomically while traffic is compared, so that a crash leaves a recent state. Files
//! of several proxies or days merge by addition.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use gake_files::Access;
use serde::{Deserialize, Serialize};

use super::ShadowComparison;
use crate::config::SHADOWS_MAX;

/// The format's name and version.
pub const SCHEMA: &str = "gake.shadow/1";

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

#[derive(Serialize)]
struct ComparisonFileRef<'a> {
    schema: &'static str,
    comparisons: &'a [ShadowComparison],
}

#[derive(Deserialize)]
struct ComparisonFile {
    schema: String,
    #[serde(deserialize_with = "super::bounded::list::<SHADOWS_MAX, _, _>")]
    comparisons: Vec<ShadowComparison>,
}

/// Why a file of comparisons cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonFileError {
    /// It cannot be opened, or is too large.
    #[error("{0}")]
    Read(#[from] gake_files::InputError),
    /// It is not JSON of the right structure.
    #[error("it is not a comparison written by `gake shadow --diff-out`: {0}")]
    Json(#[from] serde_json::Error),
    /// It has another format or version.
    #[error("its format is {0:?}; this version reads {SCHEMA:?}")]
    Schema(String),
}

/// Replaces the file at `path`, with permissions for its owner only. There is one comparison per
/// shadow.
///
/// # Errors
/// When the file cannot be written; an existing one is left unchanged.
pub fn write(path: &Path, comparisons: &[ShadowComparison]) -> io::Result<()> {
    gake_files::replace(path, Access::Owner, |file| {
        let mut out = BufWriter::new(file);
        serde_json::to_writer(&mut out, &ComparisonFileRef { schema: SCHEMA, comparisons })?;
        out.write_all(b"\n")?;
        out.flush()
    })
}

/// Reads a file of comparisons.
///
/// # Errors
/// When it cannot be read or parsed.
pub fn read(path: &Path) -> Result<Vec<ShadowComparison>, ComparisonFileError> {
    parse(&gake_files::read(path, "a comparison", FILE_BYTES_MAX)?)
}

/// Parses the bytes of a file.
///
/// # Errors
/// When they are not a file of comparisons of this version.
pub fn parse(bytes: &[u8]) -> Result<Vec<ShadowComparison>, ComparisonFileError> {
    let file: ComparisonFile = serde_json::from_slice(bytes)?;
    if file.schema != SCHEMA {
        return Err(ComparisonFileError::Schema(file.schema));
    }
    Ok(file.comparisons)
}

/// Merges comparisons of the same shadow.
#[must_use]
pub fn join(comparisons: Vec<ShadowComparison>) -> Vec<ShadowComparison> {
    let mut joined: Vec<ShadowComparison> = Vec::new();
    for comparison in comparisons {
        match joined.iter_mut().find(|known| known.shadow == comparison.shadow) {
            Some(known) => known.merge(comparison),
            None => joined.push(comparison),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::judge::{Terms, judge};
    use crate::compare::{ComparisonRules, show};

    /// The report of a file with these comparisons.
    fn shown(comparisons: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.json");
        let text = format!("{{\"schema\":\"{SCHEMA}\",\"comparisons\":{comparisons}}}");
        std::fs::write(&path, text).unwrap();
        let read = join(read(&path).map_err(|error| error.to_string())?);
        let judged =
            read.iter().map(|one| judge(one, &ComparisonRules::default(), Terms::default()));
        Ok(judged.map(|report| show::text(&report)).collect())
    }

    fn one(endpoint: &str) -> String {
        format!(
            "[{{\"master\":\"m\",\"shadow\":\"s\",\"secondary\":\"t\",\"skipped\":0,\
             \"endpoints\":{{\"GET /\":{endpoint}}},\"templates\":{{\"names\":[]}}}}]"
        )
    }

    #[test]
    fn impossible_counts_are_rejected() {
        for count in
            ["9223372036854775808", "18446744073709551615", "9007199254740992", "-1", "0.5"]
        {
            for endpoint in [
                format!("{{\"exchanges\":{count}}}"),
                format!("{{\"statuses\":{{\"200 200\":{count}}}}}"),
                format!("{{\"latency\":{{\"master\":{{\"1\":{count}}}}}}}"),
                format!(
                    "{{\"fields\":[{{\"path\":\"$\",\"kind\":\"value\",\"only_shadow\":{count}}}]}}"
                ),
            ] {
                shown(&one(&endpoint)).unwrap_err();
            }
        }
        // The largest accepted counts can be judged.
        let most = 1_u64 << 50;
        let field = format!(
            "{{\"path\":\"$\",\"kind\":\"value\",\"shadow\":{most},\"only_shadow\":{most},\
             \"only_secondary\":{most},\"both\":{most}}}"
        );
        let endpoint = format!("{{\"exchanges\":{most},\"paired\":{most},\"fields\":[{field}]}}");
        assert!(shown(&one(&endpoint)).unwrap().contains("1 endpoint"));
    }

    #[test]
    fn collections_over_the_bound_are_rejected() {
        let many =
            |each: &dyn Fn(u32) -> String| (0..20_000).map(each).collect::<Vec<_>>().join(",");
        let fields = many(&|n| format!("{{\"path\":\"$.a{n}\",\"kind\":\"value\"}}"));
        let counts = many(&|n| format!("\"{n}\":1"));
        for comparisons in [
            one(&format!("{{\"fields\":[{fields}]}}")),
            one(&format!("{{\"statuses\":{{{counts}}}}}")),
            one(&format!("{{\"latency\":{{\"shadow\":{{{counts}}}}}}}")),
            one("{}").replace("\"GET /\":{}", &many(&|n| format!("\"GET /{n}\":{{}}"))),
            one("{}")
                .replace("\"names\":[]", &format!("\"names\":[{}]", many(&|n| format!("\"{n}\"")))),
            format!("[{}]", vec![&one("{}")[1..one("{}").len() - 1]; 100].join(",")),
        ] {
            let error = shown(&comparisons).unwrap_err();
            assert!(error.contains("at most"), "{error}");
        }
        let deep = one("{}").replace("\"skipped\"", &format!("\"x\":{}", "[".repeat(100_000)));
        shown(&deep).unwrap_err();
    }
}
