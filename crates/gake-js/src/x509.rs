//! The module `k6/crypto/x509`: parses X.509 certificates.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use aws_lc_rs::digest;
use rquickjs::{Ctx, Object, Value};
use serde::Serialize;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::Oid;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use crate::errors::go_error;
use crate::native::named;
use crate::value;

const TEXT_MAX: usize = 1 << 20;

/// Attribute types of names (X.520).
const COMMON_NAME: &str = "2.5.4.3";
const COUNTRY: &str = "2.5.4.6";
const LOCALITY: &str = "2.5.4.7";
const STATE: &str = "2.5.4.8";
const STREET: &str = "2.5.4.9";
const ORGANIZATION: &str = "2.5.4.10";
const UNIT: &str = "2.5.4.11";
const POSTAL_CODE: &str = "2.5.4.17";

/// Signature algorithms, with k6's names.
const SIGNATURES: [(&str, &str); 11] = [
    ("1.2.840.113549.1.1.4", "MD5-RSA"),
    ("1.2.840.113549.1.1.5", "SHA1-RSA"),
    ("1.2.840.113549.1.1.11", "SHA256-RSA"),
    ("1.2.840.113549.1.1.12", "SHA384-RSA"),
    ("1.2.840.113549.1.1.13", "SHA512-RSA"),
    ("1.2.840.10040.4.3", "DSA-SHA1"),
    ("2.16.840.1.101.3.4.3.2", "DSA-SHA256"),
    ("1.2.840.10045.4.1", "ECDSA-SHA1"),
    ("1.2.840.10045.4.3.2", "ECDSA-SHA256"),
    ("1.2.840.10045.4.3.3", "ECDSA-SHA384"),
    ("1.2.840.10045.4.3.4", "ECDSA-SHA512"),
];

/// A certificate with k6's properties, in k6's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CertificateFacts {
    subject: SubjectName,
    issuer: IssuerName,
    not_before: String,
    not_after: String,
    alt_names: Vec<String>,
    signature_algorithm: &'static str,
    finger_print: Vec<u8>,
    public_key: KeyFacts,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubjectName {
    common_name: String,
    country: String,
    postal_code: String,
    state_or_province_name: String,
    locality_name: String,
    street_address: String,
    organization_name: String,
    organizational_unit_name: Vec<String>,
    names: Vec<NameAttribute>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IssuerName {
    common_name: String,
    country: String,
    state_or_province_name: String,
    locality_name: String,
    organization_name: String,
    names: Vec<NameAttribute>,
}

#[derive(Serialize)]
struct NameAttribute {
    #[serde(rename = "type")]
    oid: String,
    value: String,
}

#[derive(Serialize)]
struct KeyFacts {
    algorithm: &'static str,
    key: Key,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Key {
    Rsa {
        n: BigInt,
        e: u64,
    },
    Ecdsa {
        /// Empty for scripts.
        curve: BTreeMap<String, String>,
        x: BigInt,
        y: BigInt,
    },
}

/// A number that the script receives as a `BigInt`.
#[derive(Serialize)]
struct BigInt {
    /// In hexadecimal digits.
    bigint: String,
}

impl BigInt {
    fn new(bytes: &[u8]) -> Self {
        let bigint = bytes.iter().fold(String::from("0"), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Self { bigint }
    }
}

/// The exports of `k6/crypto/x509`.
pub fn make<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let module = Object::new(ctx.clone())?;
    module.set("parse", named("x509", "parse", parse))?;
    module.set("getAltNames", named("x509", "getAltNames", alternative_names))?;
    module.set("getIssuer", named("x509", "getIssuer", issuer))?;
    module.set("getSubject", named("x509", "getSubject", subject))?;
    Ok(module)
}

fn parse<'js>(ctx: Ctx<'js>, encoded: Value<'js>) -> rquickjs::Result<Value<'js>> {
    read(&ctx, &encoded, |der, certificate| {
        let validity = certificate.validity();
        let finger_print = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, der);
        Ok(CertificateFacts {
            subject: subject_facts(certificate.subject()),
            issuer: issuer_facts(certificate.issuer()),
            not_before: timestamp(validity.not_before),
            not_after: timestamp(validity.not_after),
            alt_names: names(certificate),
            signature_algorithm: signature(&certificate.signature_algorithm.algorithm),
            finger_print: finger_print.as_ref().to_vec(),
            public_key: public_key(certificate)?,
        })
    })
}

fn alternative_names<'js>(ctx: Ctx<'js>, encoded: Value<'js>) -> rquickjs::Result<Value<'js>> {
    read(&ctx, &encoded, |_, certificate| Ok(names(certificate)))
}

fn issuer<'js>(ctx: Ctx<'js>, encoded: Value<'js>) -> rquickjs::Result<Value<'js>> {
    read(&ctx, &encoded, |_, certificate| Ok(issuer_facts(certificate.issuer())))
}

fn subject<'js>(ctx: Ctx<'js>, encoded: Value<'js>) -> rquickjs::Result<Value<'js>> {
    read(&ctx, &encoded, |_, certificate| Ok(subject_facts(certificate.subject())))
}

/// The result of `facts` for a certificate (and its DER), as a JavaScript value.
fn read<'js, T: Serialize>(
    ctx: &Ctx<'js>,
    encoded: &Value<'js>,
    facts: impl FnOnce(&[u8], &X509Certificate<'_>) -> Result<T, String>,
) -> rquickjs::Result<Value<'js>> {
    let text = value::text(ctx, encoded)?;
    let facts = contents(&text).and_then(|der| {
        let facts = facts(&der, &certificate(&der)?)?;
        serde_json::to_string(&facts).map_err(|error| error.to_string())
    });
    let facts = facts.map_err(|why| go_error(ctx, &why))?;
    let revive: rquickjs::Function<'js> = value::evaluate(
        ctx,
        "(text) => JSON.parse(text, (_, value) => \
         typeof value?.bigint === 'string' ? BigInt('0x' + value.bigint) : value)",
    )?;
    revive.call((facts,))
}

/// The DER of a PEM file.
fn contents(text: &str) -> Result<Vec<u8>, String> {
    let pem = (text.len() <= TEXT_MAX).then(|| parse_x509_pem(text.as_bytes()).ok()).flatten();
    let (_, pem) = pem.ok_or("failed to decode certificate PEM file")?;
    Ok(pem.contents)
}

fn certificate(der: &[u8]) -> Result<X509Certificate<'_>, String> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err("failed to parse certificate: x509: trailing data".to_owned()),
        Err(_) => Err("failed to parse certificate: x509: malformed certificate".to_owned()),
    }
}

fn subject_facts(name: &X509Name<'_>) -> SubjectName {
    SubjectName {
        common_name: last(name, COMMON_NAME),
        country: first(name, COUNTRY),
        postal_code: first(name, POSTAL_CODE),
        state_or_province_name: first(name, STATE),
        locality_name: first(name, LOCALITY),
        street_address: first(name, STREET),
        organization_name: first(name, ORGANIZATION),
        organizational_unit_name: values(name, UNIT).collect(),
        names: attributes(name),
    }
}

fn issuer_facts(name: &X509Name<'_>) -> IssuerName {
    IssuerName {
        common_name: last(name, COMMON_NAME),
        country: first(name, COUNTRY),
        state_or_province_name: first(name, STATE),
        locality_name: first(name, LOCALITY),
        organization_name: first(name, ORGANIZATION),
        names: attributes(name),
    }
}

fn values<'a>(name: &'a X509Name<'_>, oid: &'a str) -> impl Iterator<Item = String> + 'a {
    let attributes = name.iter_attributes();
    attributes.filter(move |each| each.attr_type().to_id_string() == oid).filter_map(text)
}

fn first(name: &X509Name<'_>, oid: &str) -> String {
    values(name, oid).next().unwrap_or_default()
}

/// k6 takes the last common name, but the first of all other attributes.
fn last(name: &X509Name<'_>, oid: &str) -> String {
    values(name, oid).last().unwrap_or_default()
}

fn attributes(name: &X509Name<'_>) -> Vec<NameAttribute> {
    let attribute = |attribute: &AttributeTypeAndValue<'_>| {
        Some(NameAttribute { oid: attribute.attr_type().to_id_string(), value: text(attribute)? })
    };
    name.iter_attributes().filter_map(attribute).collect()
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    attribute.as_str().ok().map(str::to_owned)
}

/// An instant by RFC 3339, in UTC.
fn timestamp(time: ASN1Time) -> String {
    jiff::Timestamp::from_second(time.timestamp()).unwrap_or_default().to_string()
}

/// The alternative names of the subject: DNS names, mail addresses, IP addresses, URIs.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    let mut kinds: [Vec<String>; 4] = Default::default();
    for name in &extension.value.general_names {
        match name {
            GeneralName::DNSName(name) => kinds[0].push((*name).to_owned()),
            GeneralName::RFC822Name(address) => kinds[1].push((*address).to_owned()),
            GeneralName::IPAddress(bytes) => kinds[2].extend(address(bytes)),
            GeneralName::URI(uri) => kinds[3].push((*uri).to_owned()),
            _ => {}
        }
    }
    kinds.concat()
}

fn address(bytes: &[u8]) -> Option<String> {
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(address.to_string())
}

fn signature(algorithm: &Oid<'_>) -> &'static str {
    let oid = algorithm.to_id_string();
    let known = SIGNATURES.iter().find(|(known, _)| *known == oid);
    known.map_or("UnknownSignatureAlgorithm", |(_, name)| name)
}

fn public_key(certificate: &X509Certificate<'_>) -> Result<KeyFacts, String> {
    let unsupported = || "unsupported public key algorithm".to_owned();
    match certificate.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => {
            let e = key.try_exponent().map_err(|_| unsupported())?;
            let key = Key::Rsa { n: BigInt::new(key.modulus), e };
            Ok(KeyFacts { algorithm: "RSA", key })
        }
        Ok(PublicKey::EC(point)) => {
            // Uncompressed: 4, then two coordinates of equal length.
            let coordinates = point.data().strip_prefix(&[4]).ok_or_else(unsupported)?;
            let (x, y) = coordinates.split_at(coordinates.len() / 2);
            let (x, y) = (BigInt::new(x), BigInt::new(y));
            let key = Key::Ecdsa { curve: BTreeMap::new(), x, y };
            Ok(KeyFacts { algorithm: "ECDSA", key })
        }
        _ => Err(unsupported()),
    }
}
