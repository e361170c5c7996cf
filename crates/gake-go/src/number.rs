//! Numbers as Go writes them by `%g`.

/// The shortest digits that identify a number, with an exponent from a million up.
#[must_use]
pub fn shortest(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let exponential = format!("{value:e}");
    let Some((digits, exponent)) = exponential.split_once('e') else { return exponential };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) || value == 0.0 {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_go() {
        for (value, text) in [
            (0.0, "0"),
            (154.0, "154"),
            (0.258186, "0.258186"),
            (123_456.0, "123456"),
            (123_456.7, "123456.7"),
            (1e6, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.000_012_34, "1.234e-05"),
            (-3.5e-10, "-3.5e-10"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(shortest(value), text);
        }
    }
}
