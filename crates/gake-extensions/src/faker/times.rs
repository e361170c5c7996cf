//! Dates and times.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use super::random::Random;

/// Seconds of a day, and of a year.
const DAY: i64 = 86_400;
const YEAR: i64 = 365 * DAY;

/// The names of layouts.
const LAYOUTS: [(&str, &str); 7] = [
    ("ANSIC", "EEE MMM dd HH:mm:ss yyyy"),
    ("RFC822", "dd MMM yy HH:mm 'UTC'"),
    ("RFC850", "EEEE, dd-MMM-yy HH:mm:ss 'UTC'"),
    ("RFC1123", "EEE, dd MMM yyyy HH:mm:ss 'UTC'"),
    ("RFC3339", "yyyy-MM-dd'T'HH:mm:ss'Z'"),
    ("UnixDate", "EEE MMM dd HH:mm:ss 'UTC' yyyy"),
    ("RFC1123Z", "EEE, dd MMM yyyy HH:mm:ss '+0000'"),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// The value of a function, if it is one of these.
pub(super) fn value(
    random: &mut Random,
    name: &str,
    arguments: &Arguments,
) -> Result<Option<Json>, String> {
    Ok(Some(match name {
        "day" => json!(random.integer(1, 31)),
        "month" => json!(random.integer(1, 12)),
        "hour" => json!(random.integer(0, 23)),
        "minute" | "second" => json!(random.integer(0, 59)),
        "nanosecond" => json!(random.integer(0, 999_999_999)),
        "year" => json!(random.integer(1900, 2025)),
        "timezoneOffset" => json!(random.integer(-12, 14)),
        "date" => {
            let at = random.integer(-70 * YEAR, now());
            json!(shown(at, arguments.text("format")))
        }
        "dateRange" => {
            let format = arguments.text("format");
            let end = |name: &str| {
                let text = arguments.text(name);
                parsed(text).ok_or_else(|| format!("{name} {text:?} is not a date"))
            };
            let at = random.integer(end("startdate")?, end("enddate")?);
            json!(shown(at, format))
        }
        "pastTime" => json!(past(random)),
        "futureTime" => {
            let at = now() + random.integer(DAY / 24, YEAR / 30);
            json!(go_text(at, random))
        }
        _ => return Ok(None),
    }))
}

/// A time of the last weeks, as Go prints it.
fn past(random: &mut Random) -> String {
    let at = now() - random.integer(DAY / 24, YEAR / 30);
    go_text(at, random)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}

fn go_text(at: i64, random: &mut Random) -> String {
    let nanos = random.integer(1, 999_999_999);
    let fraction = format!("{nanos:09}");
    let time = shown(at, "yyyy-MM-dd HH:mm:ss");
    format!("{time}.{} +0000 UTC", fraction.trim_end_matches('0'))
}

/// Seconds since 1970 as a text of a layout: a name, Java's letters, or Go's example.
fn shown(at: i64, layout: &str) -> String {
    let named = LAYOUTS.iter().find(|(name, _)| *name == layout).map(|(_, layout)| *layout);
    let layout = named.unwrap_or(layout).replace("2006-01-02", "yyyy-MM-dd");
    let layout = layout.replace("15:04:05", "HH:mm:ss");
    let (days, second) = (at.div_euclid(DAY), at.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let weekday = DAYS[days.rem_euclid(7) as usize];
    let month_name = MONTHS[(month - 1) as usize];
    let mut text = String::new();
    let mut rest = layout.as_str();
    while let Some(first) = rest.chars().next() {
        if let Some((literal, after)) = rest.strip_prefix('\'').and_then(|r| r.split_once('\'')) {
            text += literal;
            rest = after;
            continue;
        }
        let length = rest.chars().take_while(|c| *c == first).count();
        let run = length * first.len_utf8();
        text += &match (first, length) {
            ('y', 2) => format!("{:02}", year.rem_euclid(100)),
            ('y', _) => format!("{year:04}"),
            ('M', 3) => month_name[..3].to_owned(),
            ('M', 4) => month_name.to_owned(),
            ('M', width) => format!("{month:0width$}"),
            ('d', width) => format!("{day:0width$}"),
            ('E', 4) => weekday.to_owned(),
            ('E', _) => weekday[..3].to_owned(),
            ('H', width) => format!("{hour:0width$}"),
            ('h', width) => format!("{:0width$}", (hour + 11) % 12 + 1),
            ('a', _) => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            ('m', width) => format!("{minute:0width$}"),
            ('s', width) => format!("{second:0width$}"),
            _ => rest[..run].to_owned(),
        };
        rest = &rest[run..];
    }
    text
}

/// Seconds since 1970 of `yyyy-MM-dd`.
fn parsed(text: &str) -> Option<i64> {
    let mut parts = text.get(..10)?.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days(year, month, day) * DAY)
}

/// Days since 1970 of a date, by Howard Hinnant's `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of days since 1970, by its `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let part = (5 * of_year + 2) / 153;
    let month = if part < 10 { part + 3 } else { part - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * part + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_filled_in() {
        let at = parsed("2024-02-29").unwrap() + 13 * 3_600 + 4 * 60 + 5;
        assert_eq!(shown(at, "RFC3339"), "2024-02-29T13:04:05Z");
        assert_eq!(shown(at, "yyyy-MM-dd"), "2024-02-29");
        assert_eq!(shown(at, "2006-01-02T15:04:05"), "2024-02-29T13:04:05");
        assert_eq!(shown(at, "EEEE d MMM yy hh:mm a"), "Thursday 29 Feb 24 01:04 PM");
        assert_eq!(
            shown(parsed("1969-12-31").unwrap(), "RFC1123"),
            "Wed, 31 Dec 1969 00:00:00 UTC"
        );
        for day in -200_000..200_000 {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
        }
        assert_eq!(parsed("2024-13-01"), None);
    }
}
