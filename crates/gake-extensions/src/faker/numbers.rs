//! Numbers, times and codes.

use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use super::random::Random;
use super::text::{drawn, string, text};
use super::times;

const HEX: &[u8] = b"0123456789abcdef";
const CAPITALS: &[u8] = b"0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Statuses of responses, the simple ones first.
const STATUSES: [u16; 34] = [
    200, 301, 302, 400, 404, 500, 100, 201, 202, 203, 204, 205, 206, 300, 303, 304, 305, 307, 308,
    401, 402, 403, 405, 406, 408, 409, 410, 412, 415, 418, 429, 501, 502, 503,
];
const SIMPLE: usize = 6;

/// The value of a function, if it is one of these.
pub(super) fn value(
    random: &mut Random,
    name: &str,
    arguments: &Arguments,
) -> Result<Option<Json>, String> {
    let range = || Ok::<_, String>((arguments.integer("min")?, arguments.integer("max")?));
    let floats = || Ok::<_, String>((arguments.float("min")?, arguments.float("max")?));
    Ok(Some(match name {
        "boolean" => json!(random.below(2) == 0),
        "int8" => json!(random.integer(i8::MIN.into(), i8::MAX.into())),
        "int16" => json!(random.integer(i16::MIN.into(), i16::MAX.into())),
        "int32" => json!(random.integer(i32::MIN.into(), i32::MAX.into())),
        "int64" => json!(random.bits() as i64),
        "uint8" => json!(random.integer(0, u8::MAX.into())),
        "uint16" => json!(random.integer(0, u16::MAX.into())),
        "uint32" => json!(random.integer(0, u32::MAX.into())),
        "uint64" => json!(random.bits()),
        "float32" => json!(random.float(0.0, f64::from(f32::MAX))),
        "float64" => json!(random.float(0.0, f64::MAX)),
        "intRange" | "number" | "uintRange" => {
            let (min, max) = range()?;
            json!(random.integer(min, max))
        }
        "float32Range" | "float64Range" | "latitudeRange" | "longitudeRange" => {
            let (min, max) = floats()?;
            let number = random.float(min, max);
            json!(if name.starts_with('l') { rounded(number, 6) } else { number })
        }
        "latitude" => json!(rounded(random.float(-90.0, 90.0), 6)),
        "longitude" => json!(rounded(random.float(-180.0, 180.0), 6)),
        "price" => {
            let (min, max) = floats()?;
            json!(rounded(random.float(min, max), 2))
        }
        "randomInt" => picked(random, &arguments.integers("ints")?),
        "randomUint" => picked(random, &arguments.integers("uints")?),
        "shuffleInts" => {
            let mut numbers = arguments.integers("ints")?;
            random.shuffle(&mut numbers);
            json!(numbers)
        }
        "dice" => {
            let text = arguments.texts("sides").iter();
            let sides = text.filter_map(|text| text.trim_matches(['[', ']']).trim().parse().ok());
            let mut sides: Vec<i64> = sides.collect();
            let last = sides.last().copied().unwrap_or(6);
            sides.resize(arguments.count("numdice")?.max(1), last);
            json!(sides.iter().map(|side| random.integer(1, (*side).max(1))).collect::<Vec<_>>())
        }
        "rgbColor" => json!([random.below(256), random.below(256), random.below(256)]),
        "httpStatusCode" => json!(random.pick(&STATUSES)),
        "httpStatusCodeSimple" => json!(random.pick(&STATUSES[..SIMPLE])),
        _ => return Ok(codes(random, name).or(times::value(random, name, arguments)?)),
    }))
}

/// Codes of letters and digits.
fn codes(random: &mut Random, name: &str) -> Option<Json> {
    let mut hex = |count: usize| drawn(random, HEX, count);
    match name {
        "hexColor" => string(format!("#{}", hex(6))),
        "hexUint8" => string(format!("0x{}", hex(2))),
        "hexUint16" => string(format!("0x{}", hex(4))),
        "hexUint32" => string(format!("0x{}", hex(8))),
        "hexUint64" => string(format!("0x{}", hex(16))),
        "hexUint128" => string(format!("0x{}", hex(32))),
        "hexUint256" => string(format!("0x{}", hex(64))),
        "niceColors" => Some(json!((0..5).map(|_| format!("#{}", hex(6))).collect::<Vec<_>>())),
        "macAddress" => string((0..6).map(|_| hex(2)).collect::<Vec<_>>().join(":")),
        "ipv6Address" => {
            let groups: Vec<_> = (0..7).map(|_| hex(4)).collect();
            string(format!("2001:{}", groups.join(":")))
        }
        "uuid" => {
            let (a, b, c, d) = (hex(8), hex(4), hex(3), hex(3));
            let variant = drawn(random, b"89ab", 1);
            string(format!("{a}-{b}-4{c}-{variant}{d}-{}", drawn(random, HEX, 12)))
        }
        "ipv4Address" => {
            let parts = [1, 0, 0, 1].map(|least| random.integer(least, 254).to_string());
            string(parts.join("."))
        }
        "cusip" => string(drawn(random, CAPITALS, 9)),
        "isin" => {
            let country = text(random, "countryAbbreviation");
            string(format!("{country}{}", drawn(random, CAPITALS, 10)))
        }
        "bitcoinAddress" => {
            let length = 24 + random.below(10);
            let start = drawn(random, b"13", 1);
            string(start + &drawn(random, BASE58, length))
        }
        "bitcoinPrivateKey" => string(format!("5{}", drawn(random, BASE58, 50))),
        _ => None,
    }
}

fn picked(random: &mut Random, numbers: &[i64]) -> Json {
    json!(random.pick(numbers).copied().unwrap_or(0))
}

fn rounded(number: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (number * scale).round() / scale
}
