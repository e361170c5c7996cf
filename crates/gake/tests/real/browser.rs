//! `k6/browser` with a real Chromium, beside a scenario of HTTP requests.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::support::*;

const HOME: &str = r#"<!doctype html><title>Home</title><h1>Welcome</h1>
<ul><li>one</li><li>two</li></ul><a href="/login">Log in</a>
<button id="go" onclick="setTimeout(() => { out.textContent = 'done' }, 100)">Go</button><p id="out"></p>
<input type="checkbox" id="cb"><label for="cb">Agree</label><div id="gone" style="display:none">x</div>
<select id="sel"><option value="a">A</option><option value="b">B</option></select>
<iframe name="inner" src="/frame"></iframe><iframe name="far" hidden></iframe>
<script>setTimeout(() => { document.body.append(Object.assign(document.createElement('div'),
    { id: 'late', textContent: 'here' })) }, 100); console.log('hello', 1);
const frame = document.querySelector('[name=far]'); frame.hidden = false; frame.src = `http://localhost:${location.port}/frame`;</script>"#;
const FRAME: &str = r#"<button onclick="this.textContent = 'clicked'">Inner</button>"#;
const LOGIN: &str = r#"<title>Login</title><form method="post" action="/do"><label>User
<input name="user"></label><input type="submit" value="Enter"></form>"#;

const SCRIPT: &str = r#"import { browser } from 'k6/browser';
import http from 'k6/http';
const browsing = { browser: { type: 'chromium' } };
export const options = {
    scenarios: {
        ui: { executor: 'per-vu-iterations', vus: 2, iterations: 1, exec: 'ui', options: browsing },
        api: { executor: 'shared-iterations', iterations: 3, exec: 'api' },
    },
    thresholds: {
        http_reqs: ['count==3'], checks: ['rate==1'], browser_web_vital_fcp: ['p(95)<60000'],
        browser_http_req_failed: ['rate<0.5'], 'browser_http_req_duration{name:login}': ['max>0'],
    },
};
import { check } from 'k6';
const equal = (name, value, expected) => check(JSON.stringify(value), {
    [`${name}: ${JSON.stringify(expected)}`]: (text) => text === JSON.stringify(expected) || console.error(name, text),
});
const failure = (promise) => promise.then(() => 'none', (error) => String(error));
export const api = () => http.get(`${__ENV.URL}/frame`);
export async function ui() {
    const context = await browser.newContext({ locale: 'de-DE' });
    const page = await context.newPage();
    const lines = [];
    page.on('console', (message) => lines.push(message.text()));
    page.on('metric', (metric) => metric.tag({ name: 'login', matches: [{ url: /\/login$/ }] }));
    const response = await page.goto(__ENV.URL + '/');
    equal('status', response.status(), 200);
    equal('title', await page.title(), 'Home');
    equal('console', lines, ['hello 1']);
    equal('locale', await page.evaluate(() => navigator.language), 'de-DE');
    equal('strict', await failure(page.locator('li').textContent()),
        'getting text content of "li": strict mode violation, multiple elements returned for selector query');
    equal('count', await page.locator('li').count(), 2);
    equal('nth', await page.locator('li').nth(1).innerText(), 'two');
    equal('late', await page.locator('#late').textContent(), 'here');
    equal('hidden', await page.locator('#gone').isVisible(), false);
    await page.getByLabel('Agree').check();
    equal('checked', await page.isChecked('#cb'), true);
    equal('select', await page.locator('#sel').selectOption('b'), ['b']);
    await page.getByRole('button', { name: 'Go' }).click();
    await page.waitForFunction(() => document.getElementById('out').textContent === 'done');
    const inner = page.frameLocator('iframe[name=inner]').locator('button');
    await inner.click();
    equal('frame', await inner.textContent(), 'clicked');
    // The frame is of another site.
    const far = page.frameLocator('iframe[name=far]').locator('button');
    await far.click();
    equal('far frame', await far.textContent(), 'clicked');
    equal('missing', /timed out after 200ms$/.test(await failure(page.click('#none', { timeout: 200 }))), true);
    const wrong = async (promise) => (await failure(promise)).split(': SyntaxError')[0];
    equal('wrong selector', await wrong(page.$('a:no(')), 'querying selector "a:no("');
    equal('wrong count', await wrong(page.locator('a:no(').count()), 'counting elements');
    await page.route('**/mock', (route) => route.fulfill({ status: 201, body: 'mocked' }));
    equal('route', await page.evaluate(() => fetch('/mock').then((r) => r.text())), 'mocked');
    await Promise.all([page.waitForNavigation(), page.getByText('Log in').click()]);
    await page.locator('input[name=user]').type(`User ${__VU}`);
    await Promise.all([page.waitForNavigation(), page.locator('input[type=submit]').click()]);
    equal('posted', await page.locator('h2').textContent(), `user=User+${__VU}`);
    // Contexts are apart.
    equal('cookies', (await context.cookies()).map(({ name, value }) => [name, value]), [['sid', `user=User+${__VU}`]]);
    await context.addCookies([{ name: 'number', value: 12, url: __ENV.URL }]);
    equal('number', (await context.cookies()).find(({ name }) => name === 'number').value, '12');
    equal('json', await (await page.evaluateHandle(() => { return { a: 1 }; })).jsonValue(), '{"a":1}');
    // Handlers run while something else is awaited.
    await page.evaluate(() => { setTimeout(() => console.log('later'), 50); });
    await new Promise((resolve) => { const timer = setInterval(() => { if (lines.at(-1) === 'later') { clearInterval(timer); resolve(); } }, 20); });
    equal('picture', (await page.screenshot()).byteLength > 100, true);
    await page.goBack();
    equal('back', page.url(), __ENV.URL + '/login');
    await page.goto(__ENV.URL + '/');
    await page.keyboard.down('ControlOrMeta');
    const [tab] = await Promise.all([context.waitForEvent('page'), page.getByText('Log in').click()]);
    await page.keyboard.up('ControlOrMeta');
    await tab.waitForURL(__ENV.URL + '/login');
    equal('tab', tab.url(), __ENV.URL + '/login');
    await context.grantPermissions(['geolocation']);
    await context.setGeolocation({ latitude: 1, longitude: 2 });
    await tab.bringToFront();
    equal('in the background', await page.evaluate(() => new Promise((resolve) => {
        navigator.geolocation.getCurrentPosition(({ coords }) => resolve(coords.latitude), ({ message }) => resolve(message));
    })), 1);
    await tab.close();
    equal('refused', /net::ERR_/.test(await failure(page.goto('http://127.0.0.1:9/'))), true);
    await page.close();
    equal('closed', page.isClosed(), true);
    await context.close();
}"#;

/// Serves the pages, to the end of the test's process.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser may close a connection at any time.
            std::thread::spawn(move || respond(stream));
        }
    });
    url
}

fn respond(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
    });
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, more, text) = match path {
        "/" => ("200 OK", String::new(), HOME.to_owned()),
        "/frame" => ("200 OK", String::new(), FRAME.to_owned()),
        "/login" => ("200 OK", String::new(), LOGIN.to_owned()),
        "/do" => ("200 OK", format!("Set-Cookie: sid={body}\r\n"), format!("<h2>{body}</h2>")),
        _ => ("404 Not Found", String::new(), String::new()),
    };
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{more}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
}

#[test]
fn a_browser_that_runs_already_is_used() {
    let (folder, profile) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut chromium = std::process::Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--remote-debugging-port=0"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(chromium.stderr.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned));
    let path = folder.path().join("script.js");
    let script = "import { browser } from 'k6/browser';
        export const options = { scenarios: { ui: { executor: 'per-vu-iterations', vus: 2,
            iterations: 2, options: { browser: { type: 'chromium' } } } } };
        export default async () => {
            const page = await browser.newPage();
            await page.goto(__ENV.URL + '/login');
            console.log(await page.title());
            await page.close();
        };";
    fs::write(&path, script).unwrap();
    let variable = format!("URL={}", serve());
    let run = |remote: &str| {
        let args = ["as", "k6", "run", "-e", &variable, path.to_str().unwrap()];
        start(command(env!("CARGO_BIN_EXE_gake")).args(args).env("K6_BROWSER_WS_URL", remote))
            .wait()
    };
    let url = url.unwrap();
    let ran = run(&url);
    assert_eq!(ran.stderr.matches("msg=Login").count(), 4, "{ran:?}");
    let script = "import { chromium } from 'k6/browser';
        export default async () => {
            const connected = await chromium.connectOverCDP(__ENV.CDP);
            const page = await connected.newPage();
            await page.goto(__ENV.URL + '/login');
            console.log(await page.title());
            await connected.close();
            await chromium.connectOverCDP('').catch((error) => console.log(String(error)));
        };";
    let connecting = folder.path().join("connecting.js");
    fs::write(&connecting, script).unwrap();
    let (cdp, script) = (format!("CDP={url}"), connecting.to_str().unwrap());
    let args = ["as", "k6", "run", "-i", "2", "-e", &variable, "-e", &cdp, script];
    let connected = crate::support::ran(&args);
    assert_eq!(connected.stderr.matches("msg=Login").count(), 2, "{connected:?}");
    let refused = "connecting to Chromium over CDP: WebSocket endpoint cannot be empty";
    assert_eq!(connected.stderr.matches(refused).count(), 2, "{connected:?}");
    // It runs without its users, too.
    assert!(chromium.try_wait().unwrap().is_none());
    chromium.kill().unwrap();
    chromium.wait().unwrap();
    let refused = run("ws://127.0.0.1:9/devtools");
    assert!(refused.stderr.contains("the Chromium at ws://127.0.0.1:9/devtools: "), "{refused:?}");
}

/// The processes that have `text` in their command line.
fn processes_with(text: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has = |path: &Path| {
        fs::read(path.join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    };
    processes.filter(|entry| has(&entry.path())).count()
}

#[test]
fn a_browser_and_requests_are_in_one_run() {
    // Names the package if there is none.
    drop(command("chromium"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    fs::write(&path, SCRIPT).unwrap();
    let variable = format!("URL={}", serve());
    let ran = ran(&["as", "k6", "run", "-e", &variable, path.to_str().unwrap()]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("level=error"), "{ran:?}");
    for metric in ["browser_data_received", "browser_web_vital_lcp", "browser_web_vital_ttfb"] {
        assert!(ran.stdout.contains(metric), "{metric}: {}", ran.stdout);
    }
}

#[test]
fn pages_keep_to_the_hosts_of_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    let script = "import { browser } from 'k6/browser';
        import { check } from 'k6';
        export const options = {
            hosts: { '*.test': '127.6.6.6:1', 'shop.test': __ENV.URL.slice('http://'.length) },
            blockHostnames: ['evil.test'],
            scenarios: { ui: { executor: 'shared-iterations', options: { browser: { type: 'chromium' } } } },
            thresholds: { checks: ['rate==1'] },
        };
        export default async () => {
            const page = await browser.newPage();
            const response = await page.goto('http://shop.test/frame');
            check(response, { 'is mapped': () => response.status() === 200 });
            const refused = await page.goto('http://evil.test/').then(() => 'none', String);
            check(refused, { 'is blocked': () => /ERR_BLOCKED_BY_CLIENT/.test(refused) });
            const fetched = await page.evaluate(() => fetch('http://evil.test/').catch(() => 'none'));
            check(fetched, { 'is blocked from pages': () => fetched === 'none' });
            await page.goto('http://shop.test/frame');
            const socket = await page.evaluate(() => new Promise((resolve) => {
                const socket = new WebSocket('ws://evil.test:' + location.port + '/');
                socket.onerror = () => resolve('none');
                socket.onopen = () => resolve('open');
            }));
            check(socket, { 'is blocked for sockets': () => socket === 'none' });
        };";
    fs::write(&path, script).unwrap();
    let variable = format!("URL={}", serve());
    let ran = ran(&["as", "k6", "run", "-e", &variable, path.to_str().unwrap()]);
    assert!(ran.code == Some(0) && ran.stderr.contains("is in a blocked pattern"), "{ran:?}");
}

#[test]
fn sockets_of_pages_keep_to_the_addresses_of_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    let script = "import { browser } from 'k6/browser';
        import { check } from 'k6';
        const address = __ENV.URL.slice('http://'.length);
        const port = address.split(':')[1];
        export const options = {
            hosts: { 'shop.test': address, 'evil.test': '127.6.6.6:' + port }, blacklistIPs: ['127.6.0.0/16'],
            scenarios: { ui: { executor: 'shared-iterations', options: { browser: { type: 'chromium' } } } },
            thresholds: { checks: ['rate==1'] },
        };
        const open = (url) => new Promise((resolve) => {
            const socket = new WebSocket(url);
            socket.onerror = () => resolve('none');
            socket.onopen = () => resolve('open');
        });
        export default async () => {
            const page = await browser.newPage();
            await page.goto('http://shop.test/');
            // As in k6, whose contexts have a locale.
            check(await page.evaluate(() => navigator.languages.join()), { 'en-US': (all) => all === 'en-US' });
            for (const [host, expected] of [['shop.test', 'open'], ['evil.test', 'none'], ['127.6.6.7:' + port, 'none']]) {
                const found = await page.evaluate(open, 'ws://' + host + '/ws');
                check(found, { [host]: () => found === expected || console.error(host, found) });
            }
        };";
    fs::write(&path, script).unwrap();
    let lab = lab();
    let variable = format!("URL=http://{}", lab.addr());
    let ran = ran(&["as", "k6", "run", "-e", &variable, path.to_str().unwrap()]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("level=error"), "{ran:?}");
}

#[test]
fn a_browser_ends_with_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.js");
    let script = "import { browser } from 'k6/browser';
        export const options = { scenarios: { ui: { executor: 'constant-vus', vus: 1,
            duration: '60s', options: { browser: { type: 'chromium' } } } } };
        export default async () => {
            const page = await browser.newPage();
            console.log('page is open');
            await page.waitForTimeout(60000);
        };";
    fs::write(&path, script).unwrap();
    let mut gake = command(env!("CARGO_BIN_EXE_gake"));
    gake.args(["as", "k6", "run", "--quiet"]).arg(&path);
    let mut child = gake.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mark = format!("gake-browser-{}-", child.id());
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("page is open")));
    assert!(processes_with(&mark) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("Chromium has ended", || {
        std::thread::sleep(Duration::from_millis(20));
        processes_with(&mark) == 0
    });
}
