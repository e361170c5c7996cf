//! Texts that depend on arguments: sentences, passwords, letters of a pattern.

use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use super::random::Random;
use super::records;
use super::text::{capital, drawn, string, text};

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";
const SPECIAL: &[u8] = b"@#$%&?|!(){}<>=*+-_:;,.";

/// Words of all sentences of a paragraph.
const WORDS_MAX: usize = 100_000;

/// The value of a function, if it is one of these.
pub(super) fn value(
    random: &mut Random,
    name: &str,
    arguments: &Arguments,
) -> Result<Option<Json>, String> {
    Ok(match name {
        "sentence" => string(sentence(random, "word", words(arguments)?)),
        "hipsterSentence" => string(sentence(random, "hipsterWord", words(arguments)?)),
        "loremIpsumSentence" => string(sentence(random, "loremIpsumWord", words(arguments)?)),
        "paragraph" => string(paragraphs(random, "word", arguments)?),
        "hipsterParagraph" => string(paragraphs(random, "hipsterWord", arguments)?),
        "loremIpsumParagraph" => string(paragraphs(random, "loremIpsumWord", arguments)?),
        "question" => {
            let count = 3 + random.below(7);
            let text = sentence(random, "hipsterWord", count);
            string(text.trim_end_matches('.').to_owned() + "?")
        }
        "quote" => {
            let count = 3 + random.below(7);
            let said = sentence(random, "hipsterWord", count);
            string(format!("\"{said}\" - {}", text(random, "name")))
        }
        "password" => string(password(random, arguments)?),
        "imageUrl" => {
            let (width, height) = (arguments.integer("width")?, arguments.integer("height")?);
            string(format!("https://picsum.photos/{width}/{height}"))
        }
        "digit" => string(drawn(random, DIGITS, 1)),
        "letter" => string(drawn(random, LETTERS, 1)),
        "digitN" => string(drawn(random, DIGITS, arguments.count("count")?)),
        "letterN" => string(drawn(random, LETTERS, arguments.count("count")?)),
        "lexify" => string(replaced(random, arguments.text("str"), '?', LETTERS)),
        "numerify" => string(replaced(random, arguments.text("str"), '#', DIGITS)),
        "randomString" => string(random.pick(arguments.texts("strs")).cloned().unwrap_or_default()),
        "shuffleStrings" => {
            let mut texts = arguments.texts("strs").to_vec();
            random.shuffle(&mut texts);
            Some(json!(texts))
        }
        "teams" => {
            let (people, teams) = (arguments.texts("people"), arguments.texts("teams"));
            Some(records::teams(random, people, teams))
        }
        "creditCardNumber" => {
            let (types, bins) = (arguments.texts("types"), arguments.texts("bins"));
            string(records::card_number(random, types, bins, arguments.is("gaps")))
        }
        _ => None,
    })
}

/// The number of words; by default that of the extension.
fn words(arguments: &Arguments) -> Result<usize, String> {
    match arguments.text("wordcount") {
        "" => Ok(5),
        _ => arguments.count("wordcount"),
    }
}

fn sentence(random: &mut Random, of: &str, words: usize) -> String {
    let words: Vec<_> = (0..words.max(1)).map(|_| text(random, of)).collect();
    capital(&words.join(" ")) + "."
}

fn paragraphs(random: &mut Random, of: &str, arguments: &Arguments) -> Result<String, String> {
    let (count, sentences) =
        (arguments.count("paragraphcount")?, arguments.count("sentencecount")?);
    let words = words(arguments)?;
    if count.saturating_mul(sentences).saturating_mul(words) > WORDS_MAX {
        return Err(format!("paragraphs must have at most {WORDS_MAX} words"));
    }
    let paragraph = |_| {
        let sentences = (0..sentences.max(1)).map(|_| sentence(random, of, words));
        sentences.collect::<Vec<_>>().join(" ")
    };
    let all: Vec<_> = (0..count.max(1)).map(paragraph).collect();
    Ok(all.join(arguments.text("paragraphseparator")))
}

fn password(random: &mut Random, arguments: &Arguments) -> Result<String, String> {
    let length = arguments.count("length")?.max(5);
    let sets = [("lower", LOWER), ("upper", UPPER), ("numeric", DIGITS), ("special", SPECIAL)];
    let mut sets: Vec<_> =
        sets.into_iter().filter(|(name, _)| arguments.is(name)).map(|(_, set)| set).collect();
    if arguments.is("space") {
        sets.push(b" ");
    }
    if sets.is_empty() {
        sets = vec![LOWER, UPPER, DIGITS];
    }
    // One of each set at least, the rest of any.
    let all = sets.concat();
    let mut chars: Vec<_> =
        sets.iter().flat_map(|set| drawn(random, set, 1).into_bytes()).collect();
    chars.extend(drawn(random, &all, length - chars.len().min(length)).into_bytes());
    random.shuffle(&mut chars);
    // A blank at an end would be trimmed.
    if all != b" " {
        for end in [0, chars.len() - 1] {
            while chars[end] == b' ' {
                chars[end] = drawn(random, &all, 1).into_bytes()[0];
            }
        }
    }
    Ok(String::from_utf8_lossy(&chars).into_owned())
}

/// A text with each mark replaced by a character of a set.
fn replaced(random: &mut Random, text: &str, mark: char, set: &[u8]) -> String {
    let mut replaced = String::new();
    for c in text.chars() {
        if c == mark {
            replaced += &drawn(random, set, 1);
        } else {
            replaced.push(c);
        }
    }
    replaced
}
