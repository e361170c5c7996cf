//! Requests whose URLs are generated from a pattern, before the run, and sent in turn.

use gake_core::spec::RequestDraft;
use gake_run::{percent_encoded, without_password};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use regex_syntax::hir::{Hir, HirKind};

use crate::Failure;

/// Number of URLs generated from a pattern.
const URLS: usize = 10_000;

/// Maximum repetitions of `*` and `+`.
const REPEATS_MAX: u32 = 10;

/// Generates requests whose URLs match `pattern`: a URL whose path and query are a regular
/// expression.
///
/// # Errors
/// When it has no path, or the path is not a regular expression.
pub fn of_pattern(pattern: &str, seed: u64) -> Result<Vec<RequestDraft>, Failure> {
    let urls = urls(pattern, seed, REPEATS_MAX, None)
        .map_err(|why| Failure::usage(format!("--rand-url {pattern:?}: {why}")))?;
    let name = Some(without_password(pattern));
    let request =
        |url| RequestDraft { name: name.clone(), url: Some(url), ..RequestDraft::default() };
    Ok(urls.into_iter().map(request).collect())
}

/// Generates `count` URLs, by default 10,000, that match a pattern; `*` and `+` repeat at most
/// `repeats` times.
///
/// # Errors
/// Why it is not a pattern, in a sentence.
pub fn urls(
    pattern: &str,
    seed: u64,
    repeats: u32,
    count: Option<usize>,
) -> Result<Vec<String>, String> {
    let after_scheme = pattern.find("://").map_or(0, |at| at + 3);
    let Some(path) = pattern[after_scheme..].find('/').map(|at| after_scheme + at) else {
        return Err("it has no path that could vary".to_owned());
    };
    let (origin, expression) = pattern.split_at(path);
    let expression = regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .build()
        .parse(expression)
        .map_err(|error| format!("not a regular expression: {error}"))
        .and_then(|hir| {
            let longest = longest(&hir, u64::from(repeats));
            if longest > URL_MAX {
                return Err(format!(
                    "its texts have up to {longest} bytes, and a URL has {URL_MAX} at most"
                ));
            }
            let made = rand_regex::Regex::with_hir(hir, repeats);
            made.map_err(|error| format!("no text can be generated: {error}"))
        })?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let url = |_| -> String {
        let path: Vec<u8> = random.sample(&expression);
        let mut url = origin.to_owned();
        percent_encoded(&path, &mut url);
        url
    };
    Ok((0..count.unwrap_or(URLS)).map(url).collect())
}

/// Maximum bytes of a generated path and query.
const URL_MAX: u64 = 64 << 10;

/// The length of the longest text that is generated, where `*` and `+` repeat at most `repeats`
/// times more than they have to.
fn longest(hir: &Hir, repeats: u64) -> u64 {
    let of = |hir: &Hir| longest(hir, repeats);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(_) => 4,
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(of).fold(0, u64::saturating_add),
        HirKind::Alternation(parts) => parts.iter().map(of).max().unwrap_or(0),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.map_or(u64::from(repetition.min) + repeats, u64::from);
            of(&repetition.sub).saturating_mul(most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_match_their_pattern_and_repeat_with_the_seed() {
        let pattern = "http://u:p@127.0.0.1:80/users/[0-9]{3}/(a|b)\\?x=\\w+";
        let first = of_pattern(pattern, 7).unwrap();
        assert_eq!(first, of_pattern(pattern, 7).unwrap());
        assert_ne!(first, of_pattern(pattern, 8).unwrap());
        assert_eq!(first.len(), URLS);
        let mut different = std::collections::BTreeSet::new();
        for request in first.iter().filter_map(|request| request.url.as_ref()) {
            let path = request.strip_prefix("http://u:p@127.0.0.1:80/users/").unwrap();
            let (number, rest) = path.split_at(3);
            assert!(number.bytes().all(|byte| byte.is_ascii_digit()), "{path}");
            assert!(rest.starts_with("/a?x=") || rest.starts_with("/b?x="), "{path}");
            different.insert(request.clone());
        }
        assert!(different.len() > 1_000);
        assert!(!first[0].name.as_deref().unwrap().contains("u:p"), "{:?}", first[0].name);
        for wrong in ["http://h", "http://h/[", "h"] {
            assert!(of_pattern(wrong, 1).is_err(), "{wrong}");
        }
        let odd = of_pattern("http://h/[ \"#]", 1).unwrap();
        assert!(odd.iter().all(|one| {
            ["%20", "%22", "%23"].iter().any(|e| one.url.as_ref().unwrap().ends_with(e))
        }));
    }
}
