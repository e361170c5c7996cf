//! The number of the machine's cores.

use std::fs;

/// The machine's cores, also those that neither affinity nor quota allow this process.
pub(crate) fn count() -> f64 {
    fs::read_to_string("/proc/stat").map_or(1, |text| cores_in_stat(&text).max(1)) as f64
}

/// The cores that `text`, that of /proc/stat, has a line for.
#[must_use]
pub fn cores_in_stat(text: &str) -> u64 {
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    text.lines().filter(is_core).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_have_a_line_each_beside_their_sum() {
        let text = "cpu  10 0 20 60 5 1 2 2 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nctxt 7\n";
        assert_eq!(cores_in_stat(text), 2);
        assert_eq!(cores_in_stat("cpu  1 2 3\ncpu0 1 2\ncpu1 1 2\nintr 5\nctxt 1\n"), 2);
        assert!(count() >= 1.0);
    }
}
