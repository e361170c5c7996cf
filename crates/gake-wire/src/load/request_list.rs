//! The requests of a load as described, packed: a million that resemble each other take little more
//! than what they differ in.

use std::collections::HashMap;
use std::sync::Arc;

use crate::client::request::HttpRequest;
use crate::load::feed::WeightedRequest;
use crate::load::order::cycle;
use crate::load::packed_list::{PackedList, Place, put, take};
use crate::net::location::{LocationParser, Scheme};

/// The end of a text: a byte that UTF-8 does not have.
const END: u8 = 0xff;

/// Longer bodies are kept as they are.
const PACKED_BODY_MAX: usize = 4 << 10;

/// The requests of a load.
#[derive(Debug, Default)]
pub struct RequestList {
    /// The requests; the tag is 0, or 1 and the number of the label.
    packed: PackedList,
    labels: Vec<String>,
    label_numbers: HashMap<String, u32>,
    /// Empty while all weights are 1.
    weights: Vec<u32>,
    /// Bodies that are shared or long.
    bodies: Vec<Arc<[u8]>>,
    /// Their numbers by address.
    body_numbers: HashMap<usize, usize>,
    has_opaque: bool,
    text: Vec<u8>,
}

impl RequestList {
    /// The number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether requests are distinguished by label.
    #[must_use]
    pub fn is_labelled(&self) -> bool {
        !self.labels.is_empty() || self.len() > 1
    }

    /// Whether a header value is not UTF-8.
    #[must_use]
    pub fn has_opaque(&self) -> bool {
        self.has_opaque
    }

    /// Whether every request goes over TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        let (mut reader, mut parser) = (self.reader(), LocationParser::default());
        while let Some((request, _)) = reader.next() {
            if !parser.parse(&request.url).is_ok_and(|url| url.scheme == Scheme::Https) {
                return false;
            }
        }
        true
    }

    /// The labels that requests were given.
    pub fn labels_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.labels.iter_mut()
    }

    /// Adds a request.
    pub fn push(&mut self, one: &WeightedRequest) {
        if one.weight != 1 && self.weights.is_empty() {
            self.weights.resize(self.len(), 1);
        }
        if one.weight != 1 || !self.weights.is_empty() {
            self.weights.push(one.weight);
        }
        let label = one.label.as_ref().map_or(0, |label| self.number_of_label(label) + 1);
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        self.write(&one.request, &mut text);
        self.packed.push(label, &text);
        self.text = text;
    }

    fn number_of_label(&mut self, label: &str) -> u32 {
        let number = self.labels.len() as u32;
        // Rows of a data file have one label.
        if self.labels.last().is_some_and(|last| last == label) {
            return number - 1;
        }
        if let Some(&known) = self.label_numbers.get(label) {
            return known;
        }
        self.labels.push(label.to_owned());
        self.label_numbers.insert(label.to_owned(), number);
        number
    }

    /// The number of headers, of other headers and of the body; all texts; the body.
    fn write(&mut self, request: &HttpRequest, text: &mut Vec<u8>) {
        let HttpRequest { method, url, headers, opaque, body } = request;
        let is_own = |body: &&Arc<[u8]>| {
            Arc::strong_count(body) == 1 && body.len() <= PACKED_BODY_MAX && !body.is_empty()
        };
        let own = body.as_ref().filter(is_own);
        put(text, headers.len());
        put(text, opaque.len());
        put(
            text,
            match body {
                None => 0,
                Some(_) if own.is_some() => 1,
                Some(body) => 2 + self.number_of_body(body),
            },
        );
        let headers = headers.iter().flat_map(|(name, value)| [name, value]);
        for one in [method, url].into_iter().chain(headers) {
            text.extend_from_slice(one.as_bytes());
            text.push(END);
        }
        self.has_opaque |= !opaque.is_empty();
        for (name, value) in opaque {
            text.extend_from_slice(name.as_bytes());
            text.push(END);
            put(text, value.len());
            text.extend_from_slice(value);
        }
        text.extend_from_slice(own.map_or(&[][..], |body| body));
    }

    fn number_of_body(&mut self, body: &Arc<[u8]>) -> usize {
        // The list keeps the body, so that no other one gets its address.
        let bodies = &mut self.bodies;
        *self.body_numbers.entry(body.as_ptr().addr()).or_insert_with(|| {
            bodies.push(Arc::clone(body));
            bodies.len() - 1
        })
    }

    /// The request of each arrival of a cycle, by the weights.
    pub(crate) fn order(&self) -> Vec<u32> {
        match self.weights.is_empty() {
            true => (0..self.len() as u32).collect(),
            false => cycle(&self.weights),
        }
    }

    /// The request with this number, which must be less than the length.
    #[must_use]
    pub fn get(&self, number: usize) -> WeightedRequest {
        let mut reader = RequestReader::new(self);
        let label = self.packed.get(number, &mut reader.text);
        reader.unpack();
        self.weighted(reader.request, label, number)
    }

    fn weighted(&self, request: HttpRequest, label: u32, number: usize) -> WeightedRequest {
        let weight = self.weights.get(number).copied().unwrap_or(1);
        WeightedRequest { request, label: self.label(label).map(str::to_owned), weight }
    }

    fn label(&self, tag: u32) -> Option<&str> {
        Some(&self.labels[tag.checked_sub(1)? as usize])
    }

    /// All requests in order.
    pub fn iter(&self) -> impl Iterator<Item = WeightedRequest> {
        let mut reader = RequestReader::new(self);
        (0..self.len()).map(move |number| {
            let label = reader.advance();
            self.weighted(reader.request.clone(), label, number)
        })
    }

    pub(crate) fn reader(&self) -> RequestReader<'_> {
        RequestReader::new(self)
    }
}

impl FromIterator<WeightedRequest> for RequestList {
    fn from_iter<T: IntoIterator<Item = WeightedRequest>>(requests: T) -> Self {
        let mut list = Self::default();
        requests.into_iter().for_each(|request| list.push(&request));
        list
    }
}

/// Reads the requests of a list in order, each into the same memory.
pub(crate) struct RequestReader<'a> {
    list: &'a RequestList,
    number: usize,
    place: Place,
    text: Vec<u8>,
    request: HttpRequest,
}

impl<'a> RequestReader<'a> {
    fn new(list: &'a RequestList) -> Self {
        let (text, request) = (Vec::new(), HttpRequest::new("", ""));
        Self { list, number: 0, place: Place::default(), text, request }
    }

    /// The next request and its label.
    pub(crate) fn next(&mut self) -> Option<(&HttpRequest, Option<&'a str>)> {
        if self.number == self.list.len() {
            return None;
        }
        let label = self.advance();
        Some((&self.request, self.list.label(label)))
    }

    fn advance(&mut self) -> u32 {
        let label = self.list.packed.read(&mut self.place, &mut self.text);
        self.number += 1;
        self.unpack();
        label
    }

    /// Reads the request in `text`.
    fn unpack(&mut self) {
        let (text, mut at) = (&self.text[..], 0);
        let [headers, opaque, body] = [(); 3].map(|()| take(text, &mut at));
        let HttpRequest { method, url, .. } = &mut self.request;
        read_text(text, &mut at, method);
        read_text(text, &mut at, url);
        self.request.headers.resize_with(headers, Default::default);
        for (name, value) in &mut self.request.headers {
            read_text(text, &mut at, name);
            read_text(text, &mut at, value);
        }
        self.request.opaque.resize_with(opaque, Default::default);
        for (name, value) in &mut self.request.opaque {
            read_text(text, &mut at, name);
            let end = take(text, &mut at) + at;
            *value = text[at..end].to_vec();
            at = end;
        }
        self.request.body = match body {
            0 => None,
            1 => Some(Arc::from(&text[at..])),
            number => Some(Arc::clone(&self.list.bodies[number - 2])),
        };
    }
}

fn read_text(text: &[u8], at: &mut usize, out: &mut String) {
    let rest = &text[*at..];
    let end = rest.iter().position(|byte| *byte == END).unwrap_or(rest.len());
    out.clear();
    out.push_str(std::str::from_utf8(&rest[..end]).unwrap_or_default());
    *at += end + 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<WeightedRequest> {
        let shared: Arc<[u8]> = Arc::from(&b"shared"[..]);
        let bodies = [
            None,
            Some(Arc::from(&b""[..])),
            Some(Arc::from(&b"own\n\xff\n"[..])),
            Some(Arc::clone(&shared)),
            Some(Arc::from(vec![7; PACKED_BODY_MAX + 1])),
        ];
        let labels = [None, Some("a"), None, Some("b"), Some("a")];
        let one = |number: u32, body, label: Option<&str>| {
            let headers = (0..number).map(|n| (format!("X-{n}"), format!("é\n{n}")));
            let request = HttpRequest {
                headers: headers.collect(),
                opaque: (3..number).map(|n| (format!("O-{n}"), vec![0xff, b'\n', 0x80])).collect(),
                body,
                ..HttpRequest::new("PO\nST", format!("http://h/{number}"))
            };
            WeightedRequest { request, label: label.map(str::to_owned), weight: number.max(1) }
        };
        let all = (0..).zip(bodies).zip(labels);
        all.map(|((number, body), label)| one(number, body, label)).collect()
    }

    #[test]
    fn requests_come_back_as_they_were() {
        let requests = requests();
        let list: RequestList = requests.iter().cloned().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), requests);
        let each: Vec<_> = (0..list.len()).rev().map(|number| list.get(number)).collect();
        assert_eq!(each, requests.iter().rev().cloned().collect::<Vec<_>>());
        assert_eq!(list.labels, ["a", "b"]);
    }

    #[test]
    fn only_what_is_labelled_or_one_of_several_has_a_label() {
        let one = || WeightedRequest::from(HttpRequest::new("GET", "http://h/"));
        let is_labelled = |requests: Vec<_>| RequestList::from_iter(requests).is_labelled();
        assert!(!is_labelled(vec![one()]));
        assert!(is_labelled(vec![one(), one()]));
        assert!(is_labelled(vec![WeightedRequest { label: Some("a".to_owned()), ..one() }]));
    }
}
