//! The order of JavaScript's `localeCompare`: `alpha`, `Beta`, `zeta`.

use std::cmp::Ordering;

/// ASCII in order; case decides last. Other characters follow by code point.
const ORDER: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";

pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let letters = |text: &str| text.chars().map(rank).collect::<Vec<_>>();
    let cases = |text: &str| text.chars().map(|c| c.is_ascii_uppercase()).collect::<Vec<_>>();
    letters(a).cmp(&letters(b)).then_with(|| cases(a).cmp(&cases(b)))
}

/// The order of two metrics: sub-metrics follow their metric.
pub(super) fn compare_metrics(a: &str, b: &str) -> Ordering {
    let split = |name: &'_ str| {
        let at = name.find('{').unwrap_or(name.len());
        (name[..at].to_owned(), name[at..].to_owned())
    };
    let ((a, a_tags), (b, b_tags)) = (split(a), split(b));
    compare(&a, &b).then_with(|| compare(&a_tags, &b_tags))
}

fn rank(c: char) -> usize {
    let known = ORDER.find(c.to_ascii_lowercase());
    known.unwrap_or(ORDER.len() + u32::from(c) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut names: Vec<&str>) -> Vec<&str> {
        names.sort_by(|a, b| compare_metrics(a, b));
        names
    }

    #[test]
    fn case_decides_last() {
        let names = vec!["Zeta", "my_a", "alpha", "Beta", "myA", "aB", "ab", "aBc", "abd"];
        assert_eq!(
            sorted(names),
            ["ab", "aB", "aBc", "abd", "alpha", "Beta", "my_a", "myA", "Zeta"]
        );
    }

    #[test]
    fn sub_metrics_follow_their_metric() {
        let names = vec!["a_b", "a{name:GET /x}", "a", "a{status:200}", "a{name:a}", "a1"];
        assert_eq!(
            sorted(names),
            ["a", "a{name:a}", "a{name:GET /x}", "a{status:200}", "a_b", "a1"]
        );
    }
}
