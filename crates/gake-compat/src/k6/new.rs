//! `k6 new`: creates a first script.

use std::io::{self, Write};
use std::path::Path;

use super::{CommandOutput, other_error};
use crate::flags::{Flag, Grammar, Parsed, refused, switch, value};

const FLAGS: &[Flag] = &[
    switch(&["force", "f"]),
    value(&["template"]),
    switch(&["help", "h"]),
    refused(&["project-id"], "gake has no cloud"),
];

/// Maximum bytes of a template.
const TEMPLATE_MAX: u64 = 1 << 20;

const MINIMAL: &str = "\
import http from 'k6/http';
import { check, sleep } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';

export const options = { vus: 10, duration: '30s' };

export default function () {
  const response = http.get(url);
  check(response, { 'status is 200': (r) => r.status === 200 });
  sleep(1);
}
";

const PROTOCOL: &str = "\
import http from 'k6/http';
import { check, group, sleep } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';

export const options = {
  stages: [
    { duration: '10s', target: 5 },
    { duration: '30s', target: 5 },
    { duration: '10s', target: 0 },
  ],
  thresholds: {
    checks: ['rate>0.99'],
    http_req_duration: ['p(95)<500'],
  },
};

// Once before the users begin: it stops the test if the service is not there.
export function setup() {
  const response = http.get(url);
  if (response.status !== 200) {
    throw new Error(`${url} answered ${response.status}`);
  }
  return { started: new Date().toISOString() };
}

export default function (data) {
  group('read', () => {
    const response = http.get(url, { tags: { name: 'read' } });
    check(response, { 'status is 200': (r) => r.status === 200 });
  });
  group('write', () => {
    const body = JSON.stringify({ since: data.started });
    const params = { headers: { 'Content-Type': 'application/json' }, tags: { name: 'write' } };
    const response = http.post(url, body, params);
    check(response, { 'status is below 400': (r) => r.status < 400 });
  });
  sleep(1);
}

export function teardown(data) {
  console.log(`started ${data.started}`);
}
";

const BROWSER: &str = "\
import { browser } from 'k6/browser';
import { check } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';

export const options = {
  scenarios: {
    ui: {
      executor: 'shared-iterations',
      options: { browser: { type: 'chromium' } },
    },
  },
  thresholds: {
    checks: ['rate==1.0'],
    browser_web_vital_lcp: ['p(95)<2500'],
  },
};

export default async function () {
  const page = await browser.newPage();
  try {
    const response = await page.goto(url);
    check(response, { 'status is 200': (r) => r.status() === 200 });
    check(await page.title(), { 'it has a title': (title) => title !== '' });
  } finally {
    await page.close();
  }
}
";

/// `k6 new`: writes the script, and returns k6's message.
pub(super) fn main(args: &[String]) -> CommandOutput {
    create(args).map_err(other_error)
}

fn create(args: &[String]) -> Result<String, String> {
    let parsed = Parsed::read(Grammar::GetoptLong, FLAGS, args)?;
    if parsed.on("help")? {
        return Ok("Usage: gake as k6 new [-f] [--template T] [script.js]\n".to_owned());
    }
    let name = match parsed.operands.as_slice() {
        [] => "script.js",
        [name] => name.as_str(),
        names => return Err(format!("accepts at most 1 arg(s), received {}", names.len())),
    };
    let template = parsed.last("template").unwrap_or("minimal");
    let text = match template {
        "minimal" => MINIMAL.to_owned(),
        "protocol" => PROTOCOL.to_owned(),
        "browser" => BROWSER.to_owned(),
        path if path.contains(['/', '.']) => {
            gake_files::read_to_string(path.as_ref(), "a template", TEMPLATE_MAX)
                .map_err(|error| format!("error retrieving template: {error}"))?
        }
        other => return Err(format!("error retrieving template: invalid template type {other:?}")),
    };
    let path = Path::new(name);
    let file = match parsed.on("force")? {
        true => gake_files::create(path, gake_files::Access::Mask),
        false => std::fs::File::create_new(path),
    };
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{name} already exists. Use the `--force` flag to overwrite it")
        }
        _ => format!("{name} cannot be written: {error}"),
    })?;
    Ok(format!("New script created: {name} ({template} template).\n"))
}
