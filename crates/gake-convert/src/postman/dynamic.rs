//! Dynamic variables: `{{$guid}}`.

/// The expression of a dynamic variable, without its dollar.
pub(super) fn expression(name: &str) -> Option<String> {
    if let Some((_, code)) = EXPRESSIONS.iter().find(|known| known.0 == name) {
        return Some((*code).to_owned());
    }
    let (_, values) = VALUES.iter().find(|known| known.0.contains(&name))?;
    let values: Vec<String> = values.split(',').map(crate::template::quoted).collect();
    Some(format!("pick([{}])", values.join(", ")))
}

/// Computed variables.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("guid", "crypto.randomUUID()"),
    ("randomUUID", "crypto.randomUUID()"),
    ("timestamp", "Math.floor(Date.now() / 1000)"),
    ("isoTimestamp", "new Date().toISOString()"),
    ("randomInt", "random(0, 1000)"),
    ("randomBoolean", "(Math.random() < 0.5)"),
    ("randomAlphaNumeric", "random(0, 35).toString(36)"),
    ("randomHexColor", "('#' + random(0x100000, 0xffffff).toString(16))"),
    ("randomHexadecimal", "('0x' + random(0, 15).toString(16))"),
    ("randomIP", "[1, 2, 3, 4].map(() => random(1, 254)).join('.')"),
    (
        "randomIPV6",
        "[1, 2, 3, 4, 5, 6, 7, 8].map(() => random(0x1000, 0xffff).toString(16)).join(':')",
    ),
    ("randomMACAddress", "[1, 2, 3, 4, 5, 6].map(() => random(16, 255).toString(16)).join(':')"),
    ("randomPassword", "(random(1e9, 9e9).toString(36) + random(1e9, 9e9).toString(36))"),
    ("randomSemver", "[1, 2, 3].map(() => random(0, 9)).join('.')"),
    ("randomEmail", "`user${random(1, 1000000)}@example.com`"),
    ("randomExampleEmail", "`user${random(1, 1000000)}@example.com`"),
    ("randomUserName", "`user${random(1, 1000000)}`"),
    ("randomUrl", "`https://example.com/${random(1, 1000000)}`"),
    ("randomImageUrl", "`https://example.com/${random(1, 1000000)}.png`"),
    ("randomAvatarImage", "`https://example.com/${random(1, 1000000)}.png`"),
    ("randomDomainName", "`host${random(1, 1000000)}.example.com`"),
    ("randomFileName", "`file_${random(1, 1000000)}.txt`"),
    ("randomFilePath", "`/tmp/file_${random(1, 1000000)}.txt`"),
    ("randomPhoneNumber", "`555-${random(100, 999)}-${random(1000, 9999)}`"),
    ("randomPhoneNumberExt", "`1-555-${random(100, 999)}-${random(1000, 9999)}`"),
    ("randomStreetAddress", "`${random(1, 9999)} Main Street`"),
    ("randomLatitude", "(random(-900000, 900000) / 10000)"),
    ("randomLongitude", "(random(-1800000, 1800000) / 10000)"),
    ("randomPrice", "(random(100, 99999) / 100).toFixed(2)"),
    ("randomBankAccount", "random(10000000, 99999999)"),
    ("randomCreditCardMask", "random(1000, 9999)"),
    ("randomDateFuture", "new Date(Date.now() + random(1, 365) * 86400000).toISOString()"),
    ("randomDatePast", "new Date(Date.now() - random(1, 365) * 86400000).toISOString()"),
    ("randomDateRecent", "new Date(Date.now() - random(1, 86400000)).toISOString()"),
    ("randomBitcoin", "('1' + random(1e12, 9e12).toString(36) + random(1e12, 9e12).toString(36))"),
];

/// Variables with one of several values.
const VALUES: &[(&[&str], &str)] = &[
    (&["randomFirstName", "randomNamePrefix"], "Ada,Alan,Barbara,Edsger,Grace,Ken,Linus,Margaret"),
    (&["randomLastName"], "Dijkstra,Hamilton,Hopper,Liskov,Lovelace,Thompson,Torvalds,Turing"),
    (&["randomFullName"], "Ada Lovelace,Alan Turing,Barbara Liskov,Edsger Dijkstra,Grace Hopper"),
    (&["randomCity"], "Berlin,Lagos,Lima,Madrid,Osaka,Oslo,Sydney,Toronto"),
    (&["randomStreetName"], "Church Street,High Street,Main Street,Mill Lane,Park Road"),
    (&["randomCountry"], "Brazil,Canada,Germany,India,Japan,Kenya,Norway,Spain"),
    (&["randomCountryCode"], "BR,CA,DE,IN,JP,KE,NO,ES"),
    (&["randomCompanyName", "randomBs", "randomCatchPhrase"], "Acme,Globex,Initech,Umbrella"),
    (&["randomCompanySuffix", "randomNameSuffix"], "Inc,LLC,Ltd,Group"),
    (
        &["randomJobTitle", "randomJobArea", "randomJobDescriptor", "randomJobType"],
        "Architect,Designer,Engineer,Manager,Tester",
    ),
    (&["randomColor"], "black,blue,cyan,green,grey,red,white,yellow"),
    (&["randomMonth"], "January,March,May,July,September,November"),
    (&["randomWeekday"], "Monday,Tuesday,Wednesday,Thursday,Friday"),
    (&["randomCurrencyCode"], "EUR,GBP,INR,JPY,USD"),
    (&["randomCurrencyName"], "Euro,Pound,Rupee,Yen,Dollar"),
    (&["randomCurrencySymbol"], "€,£,₹,¥,$"),
    (&["randomLocale"], "de,en,es,fr,ja"),
    (&["randomProtocol"], "http,https"),
    (&["randomDomainSuffix"], "com,net,org"),
    (&["randomDomainWord"], "alpha,beta,delta,gamma"),
    (&["randomUserAgent"], "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"),
    (&["randomProduct", "randomProductName"], "Chair,Hat,Keyboard,Lamp,Shoes,Table"),
    (
        &["randomProductAdjective", "randomProductMaterial", "randomAdjective"],
        "cotton,granite,handmade,small,wooden",
    ),
    (&["randomDepartment"], "Books,Electronics,Garden,Music,Toys"),
    (&["randomFileExt", "randomCommonFileExt"], "csv,json,pdf,png,txt"),
    (&["randomMimeType"], "application/json,image/png,text/plain"),
    (
        &["randomWord", "randomNoun", "randomVerb", "randomLoremWord", "randomLoremSlug"],
        "amet,dolor,elit,ipsum,lorem,magna,sit,tempor",
    ),
    (
        &[
            "randomWords",
            "randomPhrase",
            "randomLoremWords",
            "randomLoremSentence",
            "randomLoremSentences",
            "randomLoremText",
            "randomLoremParagraph",
            "randomLoremParagraphs",
            "randomLoremLines",
        ],
        "lorem ipsum dolor sit amet,sed do eiusmod tempor,ut enim ad minim veniam",
    ),
    (&["randomTransactionType"], "deposit,invoice,payment,withdrawal"),
    (&["randomBankAccountName"], "Checking Account,Credit Card,Savings Account"),
    (&["randomDatabaseEngine"], "InnoDB,MEMORY,MyISAM"),
    (&["randomDatabaseType"], "bigint,int,text,varchar"),
    (&["randomDatabaseColumn"], "id,name,status,title"),
];
