//! Dates in Go's layout `time.RFC1123`: `Mon, 02 Jan 2006 15:04:05 MST`.

const LAYOUT: &str = "Mon, 02 Jan 2006 15:04:05 MST";

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses a date and writes it as an HTTP date; any zone counts as GMT.
///
/// # Errors
/// The date in quotes, and Go's error.
pub fn rfc1123(text: &str) -> Result<String, String> {
    let wrong = |why: String| format!("{text:?}: parsing time {text:?}{why}");
    let mut rest = DateReader(text);
    let unparsed = |(rest, part): (&str, &str)| {
        wrong(format!(" as {LAYOUT:?}: cannot parse {rest:?} as {part:?}"))
    };
    let out_of_range = |what: &str| wrong(format!(": {what} out of range"));
    let day_name = rest.one_of(&DAYS, "Mon").map_err(unparsed)?;
    rest.literal(", ").map_err(unparsed)?;
    let day = rest.number(2, 2, "02").map_err(unparsed)?;
    rest.literal(" ").map_err(unparsed)?;
    let month = rest.one_of(&MONTHS, "Jan").map_err(unparsed)?;
    rest.literal(" ").map_err(unparsed)?;
    let year = rest.number(4, 4, "2006").map_err(unparsed)?;
    rest.literal(" ").map_err(unparsed)?;
    let hour = rest.number(1, 2, "15").map_err(unparsed)?;
    if hour > 23 {
        return Err(out_of_range("hour"));
    }
    rest.literal(":").map_err(unparsed)?;
    let minute = rest.number(2, 2, "04").map_err(unparsed)?;
    if minute > 59 {
        return Err(out_of_range("minute"));
    }
    rest.literal(":").map_err(unparsed)?;
    let second = rest.number(2, 2, "05").map_err(unparsed)?;
    if second > 59 {
        return Err(out_of_range("second"));
    }
    rest.literal(" ").map_err(unparsed)?;
    rest.zone().map_err(unparsed)?;
    if !rest.0.is_empty() {
        return Err(wrong(format!(": extra text: {:?}", rest.0)));
    }
    if day == 0 || day > days(year, month) {
        return Err(out_of_range("day"));
    }
    let (name, month) = (DAYS[day_name], MONTHS[month]);
    Ok(format!("{name}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"))
}

/// The days of a month; January is 0.
fn days(year: u32, month: usize) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 => 28 + u32::from(is_leap),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

/// The unread text of a date. Errors have that text and the expected element of the layout.
struct DateReader<'a>(&'a str);

impl<'a> DateReader<'a> {
    fn one_of(
        &mut self,
        names: &[&str],
        part: &'static str,
    ) -> Result<usize, (&'a str, &'static str)> {
        let start = self.0.get(..3).unwrap_or_default();
        let at = names.iter().position(|name| name.eq_ignore_ascii_case(start));
        let at = at.ok_or((self.0, part))?;
        self.0 = &self.0[3..];
        Ok(at)
    }

    fn literal(&mut self, part: &'static str) -> Result<(), (&'a str, &'static str)> {
        self.0 = self.0.strip_prefix(part).ok_or((self.0, part))?;
        Ok(())
    }

    /// A number with a minimum and a maximum of digits.
    fn number(
        &mut self,
        least: usize,
        most: usize,
        part: &'static str,
    ) -> Result<u32, (&'a str, &'static str)> {
        let digits = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return Err((self.0, part));
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        Ok(number.parse().unwrap_or_default())
    }

    /// An abbreviation of three letters, or of four or five ending in T.
    fn zone(&mut self) -> Result<(), (&'a str, &'static str)> {
        let letters = self.0.bytes().take(6).take_while(u8::is_ascii_uppercase).count();
        let (zone, rest) = self.0.split_at(letters);
        match letters {
            3 => {}
            4 | 5 if zone.ends_with('T') || zone == "WITA" => {}
            _ => return Err((self.0, "MST")),
        }
        self.0 = rest;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_by_go() {
        let same = "Mon, 02 Jan 2096 15:04:05 GMT";
        assert_eq!(rfc1123(same).as_deref(), Ok(same));
        assert_eq!(rfc1123("mon, 02 jan 2096 15:04:05 MST").as_deref(), Ok(same));
        for (text, why) in [
            ("soon", "cannot parse \"soon\" as \"Mon\""),
            ("", "cannot parse \"\" as \"Mon\""),
            (
                "Monday, 02-Jan-96 15:04:05 GMT",
                "cannot parse \"day, 02-Jan-96 15:04:05 GMT\" as \", \"",
            ),
            ("Mon, 2 Jan 2096 15:04:05 GMT", "cannot parse \"2 Jan 2096 15:04:05 GMT\" as \"02\""),
            ("Mon, 02 Jan 2096 15:04:05 +0100", "cannot parse \"+0100\" as \"MST\""),
            ("Mon, 02 Jan 2096 25:04:05 GMT", ": hour out of range"),
            ("Mon, 30 Feb 2096 15:04:05 GMT", ": day out of range"),
            ("Mon, 02 Jan 2096 15:04:05 GMTé", ": extra text: \"é\""),
            ("é, 02 Jan 2096 15:04:05 GMT", "as \"Mon\""),
        ] {
            let error = rfc1123(text).unwrap_err();
            assert!(error.starts_with(&format!("{text:?}: parsing time {text:?}")), "{error}");
            assert!(error.ends_with(why), "{error}");
        }
    }
}
