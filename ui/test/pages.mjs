// Opens pages of gake from disk in a real Chromium, without a network, and checks that they show
// what their data says. Called with the paths of the pages by crates/gake/tests/pages/.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { troublesOf, withBrowser } from "./browser.mjs";

/** Where pictures of every page go, when they are wanted. */
const shots = process.env.GAKE_SHOTS;

await withBrowser(async (browser) => {
  const paths = process.argv.slice(2);
  const lane = async () => {
    for (let path = paths.shift(); path; path = paths.shift()) await check(browser, path);
  };
  await Promise.all([lane(), lane()]);
});

/** Checks one page. */
async function check(browser, path) {
  const name = basename(path, ".html");
  const viewport = { width: 1280, height: 900 };
  const context = await browser.newContext({ viewport, colorScheme: "light", offline: true });
  const page = await context.newPage();
  const troubles = troublesOf(page);
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) troubles.push(`asked for ${request.url()}`);
  });
  await page.goto(pathToFileURL(path).href);
  const data = JSON.parse(await page.locator("#page").textContent());
  const drawn = data.kind !== "shadow" && (data.kind !== "run" || data.series.second.length > 0);
  if (drawn) await page.locator(".u-over").first().waitFor();
  if (shots) await picture(page, path, name);
  try {
    await { trend: trendPage, compare: comparePage, plot: plotPage, run: runPage, shadow: shadowPage, find: findPage }[data.kind](page, data, name);
    await narrow(page, data);
    assert.equal(await page.evaluate(() => window.broken), undefined, "a text became markup");
    assert.deepEqual(troubles, []);
  } catch (error) {
    throw new Error(`the page ${name}`, { cause: error });
  }
  await context.close();
}

async function picture(page, path, name) {
  mkdirSync(shots, { recursive: true });
  copyFileSync(path, join(shots, `${name}.html`));
  for (const width of [420, 1400]) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(100);
      await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** On a phone nothing is wider than the page, and of a run the percentiles come first. */
async function narrow(page, data) {
  await page.setViewportSize({ width: 420, height: 900 });
  await page.waitForTimeout(100);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(width, 420, "the page is wider than the screen");
  const hidden = await page.evaluate(() =>
    [...document.querySelectorAll(".scroll")].filter((box) => !box.querySelector(".matrix") && box.scrollWidth > box.clientWidth + 1).length,
  );
  assert.equal(hidden, 0, "tables that must be scrolled sideways");
  if (data.kind !== "run") return;
  const top = (selector) => page.locator(selector).first().evaluate((element) => element.getBoundingClientRect().top);
  assert((await top(".times")) < (await top("main .verdict")) && (await top(".times")) < (await top(".plan")));
}

/** The bar on top, whose links lead to sections that there are. */
async function bar(page, pills, figures) {
  assert.deepEqual(await page.locator(".bar .pill").allTextContents(), pills);
  const shown = await page.locator(".bar .figures dl").evaluateAll((all) => all.map((one) => [one.children[0].textContent, one.children[1].textContent]));
  assert.deepEqual(shown, figures);
  const links = await page.locator(".bar a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert(links.length > pills.length, "there are links to sections");
  for (const link of links) assert.equal(await page.locator(link).count(), 1, link);
  // It stays on top.
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  assert.equal(await page.locator(".bar").evaluate((element) => element.getBoundingClientRect().top), 0);
  await page.evaluate(() => scrollTo(0, 0));
}

async function plotPage(page, data) {
  assert(data.series.some((series) => series.s.length > 100), "there are results to plot");
  assert.equal(await page.locator("h1").textContent(), data.title);
  const figure = chart(page, "Latency");
  const series = data.series[0];
  await hover(figure, 0.5);
  const seconds = Number.parseFloat(await figure.locator(".place").textContent());
  const at = series.s.findLastIndex((s) => s <= seconds + 5e-4);
  assert.equal(await value(figure, series.name), duration(series.ms[at] * 1e6));
}

async function runPage(page, data, name) {
  assert.equal(await page.locator("h1").textContent(), data.target);
  await top(page, data);
  assert.equal(await page.locator(".findings li").count(), data.findings.length);
  await objectives(page, data);
  await about(page, data);
  await headline(page, data);
  await metrics(page, data);
  // What is fired in the warm-up's last instants may be due before its end, and the other way.
  const fired = data.series.fired.reduce((sum, n) => sum + n, 0);
  // A script fires iterations, which are not in a chart of requests.
  const isScript = data.metrics.some((row) => row.section === "iterations");
  const expected = isScript ? 0 : data.figures.sent;
  if (data.warmup_s === 0) assert.equal(fired, expected);
  const points = data.series.second.length;
  assert.equal(await page.locator("figure.chart").count() > 0, points > 0);
  if (points === 0) return;
  await hovers(page, data);
  await keyboard(page);
  if (points >= 8) await zooms(page, data);
  await toggles(page);
  if (answered(data)) await distributions(page, data);
  await errors(page, data);
  if (data.labels.length > 0) await sorts(page, data);
  if (data.labels.length > 5) await filters(page, data);
  if (data.over) await behind(page, data);
  await target(page, data);
  await themes(page);
  await paper(page);
  if (name === "hour") assert(points > 400, `${points} points of an hour`);
}

/** What the run's bar and verdict say. */
async function top(page, data) {
  const { due, ok, goodput } = data.figures;
  const nothing = due > 0 && ok === 0;
  const mark = { valid: "✔ Measurement valid", suspect: "▲ Measurement suspect", invalid: "✘ Measurement invalid" }[data.validity];
  const missed = data.objectives.filter((objective) => !objective.met).length;
  const all = data.objectives.length;
  const many = all === 1 ? "Objective" : missed === 0 ? `${all} objectives` : `${missed} of ${all} objectives`;
  const news = data.target_news.map(({ text, state }) => `${{ invalid: "✘", suspect: "▲", valid: "✔" }[state]} ${text.charAt(0).toUpperCase()}${text.slice(1)}`);
  const pills = [...(nothing ? ["✘ Nothing succeeded"] : []), ...news, ...(nothing && data.validity === "valid" ? [] : [mark])];
  // The worst comes first, and gives the verdict its colour.
  if (missed > 0 && data.validity !== "invalid" && !nothing) pills.unshift(`✘ ${many} missed`);
  else if (all > 0) pills.push(missed === 0 ? `✔ ${many} met` : `✘ ${many} missed`);
  pills.sort((a, b) => "✘▲✔".indexOf(a[0]) - "✘▲✔".indexOf(b[0]));
  assert.equal(await page.locator(".verdict strong").textContent(), pills[0]);
  const colour = { "✘": "invalid", "▲": "suspect", "✔": "valid" }[pills[0][0]];
  assert.equal(await page.locator("main .verdict").getAttribute("data-verdict"), colour);
  const response = data.latencies[0];
  const time = (i) => (response.count > 0 ? (i < response.trusted ? "" : "~") + duration(response.quantiles[i]) : "–");
  const errors = due > 0 ? percent((due - ok) / due) : "–";
  await bar(page, pills, [["p50", time(0)], ["p99", time(3)], ["errors", errors], ["goodput", rate(goodput)]]);
}

/** A section for each heading of metrics, in which checks that failed are marked. */
async function metrics(page, data) {
  for (const heading of new Set(data.metrics.map((row) => row.section))) {
    const rows = data.metrics.filter((row) => row.section === heading);
    const shown = page.locator(`#${heading.replaceAll(" ", "-")} tbody tr`);
    assert.equal(await shown.count(), rows.length, heading);
    const failed = rows.filter((row) => row.passed === false).length;
    assert.equal(await shown.filter({ hasText: /^✘/ }).count(), failed, heading);
  }
}

/** Each objective, and its bound on the chart of what it bounds. */
async function objectives(page, data) {
  const rows = page.locator(".objectives li");
  assert.equal(await rows.count(), data.objectives.length);
  for (const [i, objective] of data.objectives.entries()) {
    const text = await rows.nth(i).textContent();
    assert(text.includes(objective.text) && text.includes(objective.shown), text);
    assert(text.includes(objective.met ? "✔ met" : "✘ missed"), text);
  }
  const bound = data.objectives.find(({ limit }) => limit?.metric === "response" && limit.label === null);
  if (!bound || !answered(data)) return;
  const ink = await page.evaluate((name) => getComputedStyle(document.documentElement).getPropertyValue(name), bound.met ? "--good" : "--bad");
  for (const title of ["Response time", "Response times over time", "Distribution of latency", "Percentiles of latency"]) {
    assert(await coloured(chart(page, title), ink.trim()) > 20, `${title} shows ${bound.text}`);
  }
}

/** How many pixels of a chart have a colour, more or less. */
function coloured(figure, hex) {
  return figure.locator("canvas").evaluate((canvas, hex) => {
    const wanted = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (wanted.every((channel, k) => Math.abs(data[i + k] - channel) < 24)) n += 1;
    }
    return n;
  }, hex);
}

/** Where the run comes from, and its series as a file. */
async function about(page, data) {
  const section = part(page, "About this run");
  const { commands, hosts } = data.origin;
  assert.equal(await section.locator("pre").count(), commands.length > 0 ? 1 : 0);
  if (commands.length > 0) assert.equal(await section.locator("pre").textContent(), commands.join("\n"));
  if (hosts.length > 0) assert((await section.textContent()).includes(hosts[0]));
  if (data.series.second.length === 0) return;
  const [file] = await Promise.all([page.waitForEvent("download"), section.getByRole("button", { name: /CSV/ }).click()]);
  assert.match(file.suggestedFilename(), /^gake-.*\.csv$/);
  const [head, ...rows] = readFileSync(await file.path(), "utf8").trimEnd().split("\n").map((line) => line.split(","));
  assert.equal(rows.length, data.series.second.length);
  const sum = (name) => rows.reduce((all, row) => all + Number(row[head.indexOf(name)]), 0);
  assert.deepEqual([sum("ok"), sum("failed")], [data.figures.ok, data.figures.failed]);
}

/** A target from run to run: its charts, and every run, which can be put in order. */
async function trendPage(page, data) {
  assert.equal(await page.locator("h1").textContent(), data.target);
  assert.deepEqual(await page.locator("figure.chart h3").allTextContents(), ["Response time", "Goodput", "Capacity"]);
  const rows = part(page, "Runs").locator("tbody tr");
  assert.equal(await rows.count(), data.runs.length);
  const newest = data.runs.at(-1);
  assert.equal(await rows.first().locator("td").first().textContent(), `#${newest.id}`);
  await part(page, "Runs").getByRole("button", { name: "p99" }).click();
  const slowest = data.runs.reduce((a, b) => ((a.p99_ns ?? 0) > (b.p99_ns ?? 0) ? a : b));
  assert.equal(await rows.first().locator("td").nth(4).textContent(), duration(slowest.p99_ns));
  const figure = chart(page, "Response time");
  await hover(figure, 0.99);
  const last = data.runs.findLast((run) => run.p99_ns !== null);
  assert((await figure.locator(".place").textContent()).startsWith(`#${newest.id} ${newest.commit}`));
  assert.equal(await value(figure, "p99"), duration(last.p99_ns));
}

/** Two runs: the differences, and the charts of one over the other. */
async function comparePage(page, { comparison, run }) {
  assert.equal(await page.locator("h1").textContent(), `${comparison.b.name} against ${comparison.a.name}`);
  assert((await page.locator(".verdict").textContent()).includes(comparison.conclusion.replace(/^[^:]*: /, "")));
  const rows = await part(page, "Figures").locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(rows.map((row) => row.at(-1)), comparison.figures.map((figure) => figure.verdict.replaceAll("_", " ")));
  const goodput = comparison.figures.find((figure) => figure.name === "goodput");
  const at = comparison.figures.indexOf(goodput);
  assert.deepEqual(rows[at].slice(1, 3), [rate(goodput.a), rate(goodput.b)]);
  const forests = part(page, "Figures").locator(".forest b");
  assert.equal(await forests.count(), comparison.figures.filter((figure) => figure.change).length);
  await behind(page, run);
  await paper(page);
}

/** The run behind: its values beside the cursor, and its lines, which can be hidden. */
async function behind(page, data) {
  const { name, run } = data.over;
  const figure = chart(page, "Requests per second");
  const i = Math.floor((data.series.second.length - 1) / 2);
  await hover(figure, middle(data, i, run));
  const instant = middle(data, i, run) * span(data, run);
  const other = run.series.second.findLastIndex((start) => start <= instant);
  const key = figure.locator(".key", { has: page.locator(".name", { hasText: exactly("goodput") }) });
  assert.equal(await key.locator(".behind").textContent(), rate(run.series.ok[other] / run.series.seconds[other]));
  await page.mouse.move(2, 2);
  const before = await pixels(figure);
  await figure.locator(".key", { hasText: name }).click();
  assert.notEqual(await pixels(figure), before, "the lines of the run behind are gone");
  await figure.locator(".key", { hasText: name }).click();
  assert.equal(await pixels(figure), before);
}

/** A section by its heading. */
function part(page, title) {
  return page.locator("section", { has: page.getByRole("heading", { name: title, exact: true, level: 2 }) });
}

async function shadowPage(page, { reports: [report] }) {
  assert.equal(await page.locator("h1").textContent(), `${report.shadow} against ${report.master}`);
  assert.equal(await page.locator(".verdict strong").textContent(), "✘ 2 differences, 1 endpoint slower");
  assert.match(await page.locator(".ledger").textContent(), /requests compared1,500/);
  for (const [title, verdict] of [["Real differences", "real"], ["Unproven", "unproven"], ["Noise", "noise"]]) {
    const rows = report.differences.filter((one) => one.verdict === verdict);
    assert(rows.length > 0, verdict);
    const fields = part(page, title).locator("tbody td:nth-child(2) > span > code");
    assert.deepEqual(await fields.allTextContents(), rows.map((row) => row.path));
    const first = await part(page, title).locator("tbody tr").first().locator("td").allTextContents();
    const { shadow, exchanges, secondary, paired, rate: beyond, example } = rows[0];
    assert.equal(first[2], `${percent(shadow / exchanges)}${count(shadow)} of ${count(exchanges)}`);
    assert.equal(first[3], `${percent(secondary / paired)}${count(secondary)} of ${count(paired)}`);
    assert.equal(first[4], percent(beyond));
    assert(first[1].includes(`expected ${example.expected}`) && first[1].includes(example.request));
  }
  const endpoints = part(page, "Endpoints");
  await endpoints.getByRole("button", { name: "shadow / other" }).click();
  const slowest = await endpoints.locator("tbody tr").first().locator("td").allTextContents();
  const { name, latency } = report.endpoints.find((endpoint) => endpoint.latency.pace === "slower");
  const { low, middle: median, high } = latency.ratio;
  assert.deepEqual([slowest[0], slowest[3]], [name, duration(latency.shadow_p50)]);
  assert.equal(slowest[6], `${median.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`);
  assert.match(slowest[8], /slower/);
  assert.deepEqual(await part(page, "Status").locator(".matrix td.bad").allTextContents(), ["30"]);
  assert.equal(await page.locator("pre").textContent(), report.suggestions);
  await page.getByRole("button", { name: "Copy" }).click();
  await page.locator(".copy", { hasText: /Copied|Selected/ }).waitFor();
  await paper(page);
}

async function findPage(page, { find, beyond, ended, next }) {
  const { answer, steps } = find;
  assert.equal(answer.found, "capacity");
  assert.equal(await page.locator("h1").textContent(), find.target);
  assert((await page.locator(".plan").textContent()).includes(ended));
  const verdict = await page.locator(".verdict").textContent();
  assert(verdict.includes(`Holds ${rate(answer.capacity)} with ${find.objectives.join(" and ")} (95 %: ${rate(answer.low)} to ${rate(answer.high)})`), verdict);
  await bar(page, ["✔ Capacity found"], [
    ["capacity", rate(answer.capacity)],
    ["95 %", `${rate(answer.low)} – ${rate(answer.high)}`],
    ["plan with", rate(answer.safe)],
  ]);
  assert.equal(await part(page, "What to do next").locator("li").count(), next.length);
  const shown = await page.locator(".tile dd").allTextContents();
  assert.deepEqual([shown[0], shown[4]], [rate(answer.capacity), rate(answer.safe)]);
  const evidence = chart(page, "Missed, as a share of the allowance");
  await evidence.locator(".plot").focus();
  // The first place is the lowest step or the curve's end.
  await page.keyboard.press("ArrowRight");
  assert.match(await evidence.locator(".place").textContent(), /\/s/);
  assert.equal(await value(evidence, "allowed"), "1");
  assert.deepEqual(await part(page, "What limits it").locator("p").allTextContents(), find.causes.flatMap((cause) => [cause.evidence, cause.advice, `check: ${cause.check}`]));
  const rows = part(page, "Steps").locator("tbody tr");
  assert.equal(await rows.count(), steps.length);
  const last = steps.at(-1);
  assert((await rows.last().textContent()).includes(rate(last.asked)));
  assert.deepEqual(await part(page, "Beyond the capacity").locator("li").allTextContents(), beyond.map((said) => said.text));
  const goodput = chart(page, "Goodput");
  await hover(goodput, 1);
  const top = find.map.stairs.reduce((most, stair) => (stair.level > most.level ? stair : most));
  assert.equal(await value(goodput, "up"), rate(top.good));
  const throughput = chart(page, "Throughput");
  await hover(throughput, 1);
  assert.notEqual(await throughput.locator(".place").textContent(), "");
  await page.mouse.move(2, 2);
  await paper(page);
}

async function headline(page, data) {
  const { due, sent, ok, failed, unfinished, dropped } = data.figures;
  assert.equal(due, sent + dropped);
  assert.equal(sent, ok + failed + unfinished);
  const shown = await page.locator(".identity dd:not(.before)").allTextContents();
  assert.deepEqual(shown, [sent, ok, failed, unfinished].map(count));
  const response = data.latencies[0];
  const p99 = page.locator(".tile", { has: page.locator("dt", { hasText: /^p99$/ }) }).locator("dd:not(.before)");
  const mark = response.trusted > 3 ? "" : "~";
  assert.equal(await p99.textContent(), response.count > 0 ? mark + duration(response.quantiles[3]) : "–");
}

function answered(data) {
  return data.curves.some((curve) => curve.metric === "response");
}

/** A chart by its title. */
function chart(page, title) {
  const heading = page.getByRole("heading", { name: title, exact: true, level: 3 });
  return page.locator("figure.chart", { has: heading });
}

/** Points at a place of a chart, as shares of its width and height. */
async function hover(figure, x, y = 0.5) {
  await figure.scrollIntoViewIfNeeded();
  await figure.locator(".u-over").hover({ position: await inside(figure, x, y) });
}

async function inside(figure, x, y) {
  const { width, height } = await figure.locator(".u-over").boundingBox();
  return { x: Math.min(Math.max(width * x, 1), width - 1), y: Math.min(Math.max(height * y, 1), height - 1) };
}

/** What the legend reads of a series. */
async function value(figure, name) {
  const key = figure.locator(".key", { has: figure.page().locator(".name", { hasText: exactly(name) }) });
  return key.locator(".value").textContent();
}

function exactly(text) {
  return new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
}

/** From where to where the time charts go, over a run behind too. */
function span(data, behind) {
  return Math.max(end(data), behind ? end(behind) : 0);
}

function end({ series, elapsed_ns }) {
  const last = series.second.at(-1);
  const length = series.seconds.at(-1);
  const there = Math.min(elapsed_ns / 1e9 - last, length);
  const bad = [series.failed, series.unfinished, series.dropped].some((counts) => counts.at(-1) > 0);
  if (series.second.length === 1 || there >= length / 4) return last + there;
  return last + (bad ? length : 0);
}

/** The middle of a point as a share of the whole time. */
function middle(data, i, behind = data.over?.run) {
  const { second, seconds } = data.series;
  return (second[i] + Math.min(seconds[i], end(data) - second[i]) / 2) / span(data, behind);
}

async function hovers(page, data) {
  const { series } = data;
  // A point well inside, so that it is whole.
  const i = Math.floor((series.second.length - 1) / 2);
  const traffic = chart(page, "Requests per second");
  await hover(traffic, middle(data, i));
  if (series.second.length > 2) {
    const sent = series.fired.length > 0 ? [["sent", series.fired]] : [];
    for (const [name, counts] of [["goodput", series.ok], ...sent]) {
      assert.equal(await value(traffic, name), rate(counts[i] / series.seconds[i]), `${name} of point ${i}`);
    }
  }
  const start = clock(series.second[i]);
  assert(await traffic.locator(".place").textContent().then((text) => text.startsWith(start)), start);
  if (!answered(data)) return;
  // The cursor is on every chart over time, and not on the others.
  const response = chart(page, "Response time");
  for (const [at, name] of ["p50", "p90", "p99", "max"].entries()) {
    const micros = series.response[at][i];
    assert.equal(await value(response, name), micros === null ? "–" : duration(micros * 1e3), name);
  }
  assert.equal(await value(chart(page, "Distribution of latency"), "response"), "");
  await page.mouse.move(2, 2);
  assert.equal(await value(response, "p50"), "", "the cursor is gone");
}

async function keyboard(page) {
  await page.mouse.move(2, 2);
  const plot = chart(page, "Requests per second").locator(".plot");
  const place = chart(page, "Bytes per second").locator(".place");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await place.textContent(), /^0:00/);
  await page.evaluate(() => document.activeElement.blur());
  assert.equal(await place.textContent(), "");
}

async function zooms(page, data) {
  const whole = span(data, data.over?.run);
  const traffic = chart(page, "Requests per second");
  const other = chart(page, "Bytes per second");
  const reset = page.getByRole("button", { name: "Reset zoom" });
  const at = async (figure, share) => {
    await hover(figure, share);
    return seconds(await figure.locator(".place").textContent());
  };
  // A busy browser draws a moment after the mouse has moved, and a plot that moved under a mouse at
  // rest reads its place anew when the mouse comes back.
  const near = async (figure, share, wanted) => {
    // Labels that become wider move a plot by some pixels. What zooming changes is twice as much.
    const slack = 1.5 * data.series.seconds[0] + whole / 25;
    let seen;
    for (let turn = 0; turn < 40; turn += 1) {
      seen = await at(figure, share);
      if (seen <= wanted + slack && seen >= wanted - slack) return;
      await page.mouse.move(2, 2);
      await page.waitForTimeout(50);
    }
    assert.fail(`${seen} is not ${wanted}`);
  };
  assert(!(await reset.isVisible()));
  for (const undo of [() => reset.click(), () => traffic.locator(".u-over").dblclick()]) {
    await near(other, 0.5, whole / 2);
    // The bar on top must not be in the way.
    await traffic.evaluate((figure) => figure.scrollIntoView({ block: "center" }));
    const box = await traffic.locator(".u-over").boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 70, { steps: 3 });
    await page.mouse.move(box.x + box.width * 0.75, box.y + 70, { steps: 3 });
    await page.mouse.up();
    assert(await reset.isVisible());
    await near(other, 0.5, whole * 0.625);
    await near(traffic, 0.02, whole * 0.5);
    await undo();
    assert(!(await reset.isVisible()));
    await near(other, 0.5, whole / 2);
  }
  await page.mouse.move(2, 2);
}

/** The pixels of a chart. */
function pixels(figure) {
  return figure.locator("canvas").evaluate((canvas) => canvas.toDataURL());
}

async function toggles(page) {
  const figure = chart(page, "Bytes per second");
  const key = figure.locator(".key").first();
  const before = await pixels(figure);
  await key.click();
  assert.equal(await key.getAttribute("aria-pressed"), "false");
  assert.notEqual(await pixels(figure), before, "a line was taken away");
  await key.click();
  assert.equal(await key.getAttribute("aria-pressed"), "true");
  assert.equal(await pixels(figure), before, "and is there again");
}

async function distributions(page, data) {
  const curves = chart(page, "Percentiles of latency");
  const drawn = [...data.curves, ...(data.over?.run.curves ?? [])];
  const length = Math.max(2, ...drawn.map((curve) => curve.values.length));
  // Two nines are two times 16 steps.
  const n = length > 33 ? 32 : 0;
  await hover(curves, n / (length - 1));
  assert.equal(await curves.locator(".place").textContent(), n ? "p99" : "min");
  const response = data.curves.find((curve) => curve.metric === "response");
  assert.equal(await value(curves, "response"), duration(response.values[n] * 1e3));

  const all = [...data.histogram.edges, ...(data.over?.run.histogram.edges ?? [])];
  const edges = [...new Set(all)].sort((a, b) => a - b);
  const low = Math.max(edges[0], 512);
  const most = data.histogram.response.indexOf(Math.max(...data.histogram.response));
  const centre = Math.sqrt(Math.max(data.histogram.edges[most], 512) * data.histogram.edges[most + 1]);
  const histogram = chart(page, "Distribution of latency");
  await hover(histogram, Math.log(centre / low) / Math.log(edges.at(-1) / low));
  assert.equal(await value(histogram, "response"), count(data.histogram.response[most]));

  const i = data.series.heat.findIndex((cells) => cells.length > 0);
  const heat = chart(page, "Response times over time");
  const cells = data.series.heat[i].reduce((sum, n, k) => (k % 2 ? sum + n : sum), 0);
  const tip = heat.locator(".tip");
  let found = false;
  for (let y = 0.995; y > 0 && !found; y -= 0.01) {
    await hover(heat, middle(data, i), y);
    found = await tip.isVisible();
  }
  assert(found, "the heat map tells what is under the pointer");
  assert.match(await tip.textContent(), new RegExp(` of ${count(cells)} requests$`));
  await page.mouse.move(2, 2);
}

async function errors(page, data) {
  const kinds = data.series.errors;
  const figure = chart(page, "Errors per second");
  assert.equal(await figure.count(), kinds.length > 0 ? 1 : 0);
  if (kinds.length === 0) return;
  const names = await figure.locator(".key:not(.over) .name").allTextContents();
  const allowed = data.objectives.filter(({ limit }) => limit?.metric === "errors" && limit.label === null);
  assert.deepEqual(names, [...kinds.map((kind) => kind.kind), ...allowed.map(({ text }) => `${text} allows`)]);
  const total = kinds.reduce((sum, kind) => kind.counts.reduce((all, n) => all + n, sum), 0);
  assert.equal(total, data.figures.failed + data.figures.unfinished + data.figures.dropped);
}

async function sorts(page, data) {
  const section = page.locator("section", { has: page.getByRole("heading", { name: "Endpoints" }) });
  const names = () => section.locator("tbody tr td:first-child").allTextContents();
  assert.deepEqual(await names(), data.labels.map((label) => label.name));
  const head = section.locator("th", { hasText: "p99" }).first();
  const by = (label) => label.response.quantiles[3];
  const sorted = [...data.labels].sort((a, b) => by(b) - by(a)).map((label) => label.name);
  await head.getByRole("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  assert.deepEqual(await names(), sorted);
  await head.getByRole("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
}

/** A word leaves the endpoints whose names hold it, in the table and as small charts. */
async function filters(page, data) {
  const section = part(page, "Endpoints");
  const names = () => section.locator("tbody tr td:first-child").allTextContents();
  const charts = () => section.locator(".small-card h4").allTextContents();
  assert.equal((await charts()).length, data.labels.length);
  const word = data.labels[1].name;
  await section.getByRole("searchbox").fill(word.toUpperCase());
  const kept = data.labels.map((label) => label.name).filter((name) => name.includes(word));
  assert.deepEqual((await names()).sort(), kept.sort());
  assert.deepEqual((await charts()).sort(), kept.sort());
  await section.getByRole("searchbox").fill("");
  assert.equal((await names()).length, data.labels.length);
  const card = section.locator(".small-card").first();
  await card.scrollIntoViewIfNeeded();
  await card.locator(".u-over").hover();
  assert.match(await card.locator(".tip").textContent(), /p50 .*, p99 .* of .* not ok$/);
  await page.mouse.move(2, 2);
}

/** What the target said: the levels in figures, those that change as charts, and the settings. */
async function target(page, data) {
  const { target_levels: said, series } = data;
  const section = page.locator("section", { has: page.getByRole("heading", { name: "The target", exact: true }) });
  assert.equal(await section.count(), said ? 1 : 0);
  if (!said) return;
  const names = await section.locator("tbody tr td:first-child").allTextContents();
  const words = { cpu: "CPU, of all cores", threads: "Threads" };
  const called = ({ name }) => words[name] ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
  const wanted = [...said.gauges.map(called), ...said.settings.map((one) => one.name)];
  assert.deepEqual(names, wanted);
  const drawn = said.gauges.filter((gauge) => gauge.values);
  assert.equal(await section.locator(".key").count(), drawn.length);
  const i = Math.floor(series.second.length / 2);
  const cpu = section.locator("figure.chart", { has: page.getByRole("heading", { name: words.cpu, exact: true }) });
  await hover(cpu, middle(data, i));
  assert.equal(await cpu.locator(".value").textContent(), percent(drawn[0].values[i]));
  assert.notEqual(await chart(page, "Requests per second").locator(".place").textContent(), "", "one cursor for all");
  if (said.more_gauges > 0) assert((await section.textContent()).includes(`${said.more_gauges} more levels`));
  await page.mouse.move(2, 2);
}

async function themes(page) {
  const figure = chart(page, "Requests per second");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [light, drawn] = [await background(), await pixels(figure)];
  await page.getByRole("button", { name: "Dark", exact: true }).click();
  assert.notEqual(await background(), light);
  assert.notEqual(await pixels(figure), drawn, "charts follow the theme");
  await page.getByRole("button", { name: "Light", exact: true }).click();
  assert.equal(await background(), light);
  assert.equal(await pixels(figure), drawn);
  await page.emulateMedia({ colorScheme: "dark" });
}

async function paper(page) {
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  assert(!(await page.locator(".tools").isVisible()));
  const edges = () => [...document.querySelectorAll(".uplot")].map((plot) => plot.getBoundingClientRect().right);
  // Charts take their new width in the frame after the page has its own.
  const fits = page.waitForFunction(() =>
    [...document.querySelectorAll(".uplot")].every((plot) => plot.getBoundingClientRect().right <= 1280),
  );
  await fits.catch(async () => assert.fail(`beyond the paper: ${await page.evaluate(edges)}`));
  const pdf = await page.pdf({ format: "A4", printBackground: true });
  assert(pdf.length > 10_000);
  await page.emulateMedia({ media: "screen" });
}

// Numbers as gake writes them, written anew so that the page is not checked with its own code.

function count(n) {
  return Math.round(n).toLocaleString("en-US");
}

function rate(n) {
  if (n >= 99.95) return `${count(n)}/s`;
  return `${Number(n >= 9.995 ? n.toFixed(1) : n.toFixed(2))}/s`;
}

function percent(share) {
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value < 0.01) return "< 0.01 %";
  if (value < 10) return `${value.toFixed(value < 1 ? 2 : 1)} %`;
  return value > 99.5 && value < 100 ? `${Math.min(value, 99.99).toFixed(2)} %` : `${value.toFixed(0)} %`;
}

function duration(ns) {
  if (ns <= 0) return "0";
  const three = (n) => (n < 9.995 ? n.toFixed(2) : n < 99.95 ? n.toFixed(1) : n.toFixed(0));
  if (ns < 999.5) return `${ns.toFixed(0)} ns`;
  if (ns < 999.5e3) return `${three(ns / 1e3)} µs`;
  return ns < 999.5e6 ? `${three(ns / 1e6)} ms` : `${three(ns / 1e9)} s`;
}

function clock(seconds) {
  const two = (n) => String(n).padStart(2, "0");
  const tenths = Math.round(seconds * 10) % 10;
  const whole = Math.floor(seconds + 1e-9);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return `${h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`}${tenths > 0 ? `.${tenths}` : ""}`;
}

/** The first clock of a text in seconds. */
function seconds(text) {
  return text.match(/^[\d:.]+/)[0].split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}
