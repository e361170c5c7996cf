//! Values with several fields.

use serde_json::{Map, Value as Json, json};

use super::arguments::Arguments;
use super::numbers;
use super::random::Random;
use super::text::{drawn, text};

const DIGITS: &[u8] = b"0123456789";

/// Cards: the name for arguments, the start of a number, its length, its gaps.
const CARDS: [(&str, &str, usize, &[usize]); 6] = [
    ("visa", "4", 16, &[4, 8, 12]),
    ("mastercard", "51", 16, &[4, 8, 12]),
    ("american-express", "37", 15, &[4, 10]),
    ("diners-club", "36", 14, &[4, 10]),
    ("discover", "6011", 16, &[4, 8, 12]),
    ("jcb", "35", 16, &[4, 8, 12]),
];

/// The value of a function, if it is one of these.
pub(super) fn value(random: &mut Random, name: &str) -> Option<Json> {
    let mut of = |name: &str| text(random, name);
    Some(match name {
        "book" => {
            json!({"title": of("bookTitle"), "author": of("bookAuthor"), "genre": of("bookGenre")})
        }
        "movie" => json!({"name": of("movieName"), "genre": of("movieGenre")}),
        "currency" => json!({"short": of("currencyShort"), "long": of("currencyLong")}),
        "job" => job(random),
        "car" => json!({
            "type": of("carType"), "fuel": of("carFuelType"),
            "transmission": of("carTransmissionType"), "brand": of("carMaker"),
            "model": of("carModel"), "year": random.integer(1990, 2025),
        }),
        "address" => address(random),
        "creditCard" => card(random),
        "creditCardNumberFormatted" => json!(card_number(random, &[], &[], true)),
        "person" => json!({
            "first_name": of("firstName"), "last_name": of("lastName"), "gender": of("gender"),
            "s_s_n": of("ssn"), "hobby": of("hobby"),
            "image": "https://picsum.photos/300/300",
            "job": job(random), "address": address(random),
            "contact": {"phone": text(random, "phone"), "email": text(random, "email")},
            "credit_card": card(random),
        }),
        "product" => product(random),
        _ => return None,
    })
}

fn job(random: &mut Random) -> Json {
    let mut of = |name: &str| text(random, name);
    json!({
        "company": of("company"), "title": of("jobTitle"),
        "descriptor": of("jobDescriptor"), "level": of("jobLevel"),
    })
}

fn address(random: &mut Random) -> Json {
    let [street, city, state, zip, country] =
        ["street", "city", "state", "zip", "country"].map(|name| text(random, name));
    let mut number = |name: &str| {
        let made = numbers::value(random, name, &Arguments::default());
        made.ok().flatten().unwrap_or_default()
    };
    json!({
        "address": format!("{street}, {city}, {state} {zip}"),
        "street": street, "city": city, "state": state, "zip": zip, "country": country,
        "latitude": number("latitude"), "longitude": number("longitude"),
    })
}

fn card(random: &mut Random) -> Json {
    json!({
        "type": text(random, "creditCardType"),
        "number": card_number(random, &[], &[], false),
        "exp": text(random, "creditCardExp"),
        "cvv": text(random, "creditCardCVV"),
    })
}

fn product(random: &mut Random) -> Json {
    let mut some = |name: &str| {
        let count = 1 + random.below(4);
        (0..count).map(|_| text(random, name)).collect::<Vec<_>>()
    };
    let (categories, features) = (some("productCategory"), some("productFeature"));
    let mut of = |name: &str| text(random, name);
    json!({
        "name": of("productName"), "description": of("productDescription"),
        "categories": categories,
        "price": (random.float(3.0, 100.0) * 100.0).round() / 100.0,
        "features": features,
        "color": text(random, "safeColor"), "material": text(random, "productMaterial"),
        "u_p_c": text(random, "productUpc"),
    })
}

/// People in teams, as even as possible.
pub(super) fn teams(random: &mut Random, people: &[String], teams: &[String]) -> Json {
    let mut people = people.to_vec();
    random.shuffle(&mut people);
    let mut made = Map::new();
    for (index, team) in teams.iter().enumerate() {
        let members = people.iter().skip(index).step_by(teams.len()).cloned().collect::<Vec<_>>();
        made.insert(team.clone(), json!(members));
    }
    Json::Object(made)
}

/// A number that passes Luhn's check.
pub(super) fn card_number(
    random: &mut Random,
    types: &[String],
    bins: &[String],
    has_gaps: bool,
) -> String {
    let chosen: Vec<_> =
        CARDS.iter().filter(|(name, ..)| types.iter().any(|kind| kind == name)).collect();
    let any: Vec<_> = CARDS.iter().collect();
    let chosen = if chosen.is_empty() { any } else { chosen };
    let Some((_, start, length, gaps)) = random.pick(&chosen) else { return String::new() };
    let bins: Vec<_> = bins.iter().filter(|bin| !bin.is_empty()).collect();
    let start = random.pick(&bins).map_or(*start, |bin| bin.as_str());
    let mut digits: String = start.chars().filter(char::is_ascii_digit).take(length - 1).collect();
    digits += &drawn(random, DIGITS, length - 1 - digits.len());
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(index, byte)| {
            let digit = u32::from(byte - b'0') * if index % 2 == 0 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    digits += &((10 - sum % 10) % 10).to_string();
    if has_gaps {
        for gap in gaps.iter().rev() {
            digits.insert(*gap, '-');
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cards_are_valid() {
        let mut random = Random::new(3);
        for _ in 0..100 {
            let number = card_number(&mut random, &[], &[], false);
            let sum: u32 = number
                .bytes()
                .rev()
                .enumerate()
                .map(|(index, byte)| {
                    let digit = u32::from(byte - b'0') * if index % 2 == 1 { 2 } else { 1 };
                    digit / 10 + digit % 10
                })
                .sum();
            assert_eq!(sum % 10, 0, "{number}");
        }
        let amex = card_number(&mut random, &["american-express".to_owned()], &[], true);
        assert_eq!((amex.len(), &amex[4..5], &amex[11..12]), (17, "-", "-"));
        let own = card_number(&mut random, &["visa".to_owned()], &["4242".to_owned()], false);
        assert!(own.starts_with("4242") && own.len() == 16);
    }
}
