//! Times of rows, as the values of Go that k6's scripts see.

use rquickjs::function::Func;
use rquickjs::object::Property;
use rquickjs::{Ctx, Object, Value};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// A date and a time of day, in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GoTime {
    year: i64,
    month: i64,
    day: i64,
    /// Hour, minute, second.
    clock: [i64; 3],
    /// As written, without trailing zeroes.
    fraction: String,
    /// Seconds east of Greenwich; `None` if the server wrote no zone.
    zone: Option<i64>,
}

impl GoTime {
    /// Parses a time of a server: `2024-01-02 03:04:05.6+07`, a date, or a time of day.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, rest) = match text.split_once([' ', 'T']) {
            Some((date, rest)) => (date, rest),
            None if text.contains('-') && !text.contains(':') => (text, "00:00:00"),
            // A time of day has Go's year 0, in UTC.
            None => ("0000-01-01", text),
        };
        let mut parts = date.splitn(3, '-').map(|part| part.parse().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let (time, zone) = match rest.find(['+', '-', 'Z', ' ']) {
            Some(at) => (&rest[..at], Some(zone_of(rest[at..].trim())?)),
            None => (rest, (year == 0).then_some(0)),
        };
        let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut parts = time.split(':').map(|part| part.parse().ok());
        let clock = [parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?];
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) || fraction.len() > 9 {
            return None;
        }
        let fraction = fraction.trim_end_matches('0').to_owned();
        Some(Self { year, month, day, clock, fraction, zone })
    }

    /// In UTC if the server wrote no zone, as the drivers of MySQL and SQLite take it.
    pub(super) fn or_utc(mut self) -> Self {
        self.zone.get_or_insert(0);
        self
    }

    fn date_and_time(&self, separator: char) -> String {
        let Self { year, month, day, clock: [hour, minute, second], fraction, .. } = self;
        let point = if fraction.is_empty() { "" } else { "." };
        format!(
            "{year:04}-{month:02}-{day:02}{separator}{hour:02}:{minute:02}:{second:02}{point}{fraction}"
        )
    }

    /// `2024-01-02 03:04:05 +0000 UTC`, as Go prints it.
    fn text(&self) -> String {
        let offset = offset(self.zone.unwrap_or(0), "");
        let name = match self.zone {
            Some(0) => "UTC".to_owned(),
            _ => offset.clone(),
        };
        format!("{} {offset} {name}", self.date_and_time(' '))
    }

    /// By RFC 3339, as Go's JSON has it.
    fn json(&self) -> String {
        let zone = match self.zone.unwrap_or(0) {
            0 => "Z".to_owned(),
            seconds => offset(seconds, ":"),
        };
        self.date_and_time('T') + &zone
    }

    /// Seconds since 1970.
    fn unix(&self) -> i64 {
        // Days by the algorithm of Howard Hinnant's `days_from_civil`.
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, month) = (year.div_euclid(400), (self.month + 9) % 12);
        let of_year = (153 * month + 2) / 5 + self.day - 1;
        let of_era = year.rem_euclid(400);
        let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year + era * 146_097 - 719_468;
        let [hour, minute, second] = self.clock;
        days * DAY + hour * 3_600 + minute * 60 + second - self.zone.unwrap_or(0)
    }

    fn nanos(&self) -> i64 {
        format!("{:0<9}", self.fraction).parse().unwrap_or(0)
    }

    /// An object with the methods that scripts use.
    pub(super) fn shown<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        let shown = Object::new(ctx.clone())?;
        for (name, text) in
            [("toString", self.text()), ("string", self.text()), ("toJSON", self.json())]
        {
            shown.prop(name, Property::from(Func::from(move || text.clone())))?;
        }
        let (unix, nanos) = (self.unix(), self.nanos());
        let [hour, minute, second] = self.clock;
        for (name, number) in [
            ("unix", unix as f64),
            ("unixMilli", (unix * 1_000 + nanos / 1_000_000) as f64),
            ("unixMicro", (unix * 1_000_000 + nanos / 1_000) as f64),
            ("unixNano", unix as f64 * 1e9 + nanos as f64),
            ("year", self.year as f64),
            ("month", self.month as f64),
            ("day", self.day as f64),
            ("hour", hour as f64),
            ("minute", minute as f64),
            ("second", second as f64),
            ("nanosecond", nanos as f64),
        ] {
            shown.prop(name, Property::from(Func::from(move || number)))?;
        }
        Ok(shown.into_value())
    }
}

/// Seconds of a zone such as `+07`, `-03:30` or `Z`.
fn zone_of(text: &str) -> Option<i64> {
    if text == "Z" || text == "UTC" {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let mut parts = digits.split(':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes) = (parts.next()??, parts.next().unwrap_or(Some(0))?);
    Some(sign * (hours * 3_600 + minutes * 60))
}

fn offset(seconds: i64, separator: &str) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_go() {
        for (text, shown, json, unix) in [
            (
                "2024-02-29 03:04:05.670",
                "2024-02-29 03:04:05.67 +0000 +0000",
                "2024-02-29T03:04:05.67Z",
                1_709_175_845,
            ),
            (
                "2024-01-02 03:04:05+00",
                "2024-01-02 03:04:05 +0000 UTC",
                "2024-01-02T03:04:05Z",
                1_704_164_645,
            ),
            (
                "1969-12-31 23:59:59-03:30",
                "1969-12-31 23:59:59 -0330 -0330",
                "1969-12-31T23:59:59-03:30",
                12_599,
            ),
            (
                "2024-01-02",
                "2024-01-02 00:00:00 +0000 +0000",
                "2024-01-02T00:00:00Z",
                1_704_153_600,
            ),
        ] {
            let time = GoTime::parse(text).unwrap();
            assert_eq!((time.text().as_str(), time.json().as_str()), (shown, json));
            assert_eq!(time.unix(), unix, "{text}");
        }
        assert_eq!(GoTime::parse("03:04").unwrap().text(), "0000-01-01 03:04:00 +0000 UTC");
        for wrong in ["", "infinity", "2024-13-01", "2024-01-02 x", "1-2", "::"] {
            assert_eq!(GoTime::parse(wrong), None, "{wrong}");
        }
    }
}
