/** The live page: the report of a run so far, which becomes the final report. */

import type { Pill } from "../charts/bar";
import { el } from "../dom";
import type { RunData } from "./run-data";
import { save } from "./run-source";
import { RunPage } from "./run";

/** The storage key of the address's token. */
const TOKEN = "gake token";

const LOST: Pill = { text: "▲ Connection lost", state: "suspect", title: "gake has ended or cannot be reached; the page retries" };

/** Follows the run on the server that sent this page. */
export function live(root: HTMLElement, first: RunData): void {
  const page = new RunPage(root);
  const token = readToken();
  const source = fetch("./").then((response) => response.text());
  let [data, text] = [first, ""];
  let [lost, drawn, stopping, dragging] = [false, false, false, false];
  // The requested rate, and the rate in the data at that time.
  let [wanted, before]: (number | undefined)[] = [];

  const post = (path: string): Promise<Response | undefined> =>
    fetch(path, { method: "POST", headers: { "X-Gake-Token": token ?? "" } }).catch(() => undefined);
  const stop = async (): Promise<void> => {
    stopping = true;
    draw();
    stopping = (await post("stop"))?.ok ?? false;
    draw();
  };
  const setRate = async (percent: number): Promise<void> => {
    [dragging, wanted, before] = [false, percent, data.live?.rate_percent];
    draw();
    // Until the data have another rate than before, or the server refuses.
    if (!(await post(`rate?percent=${percent}`))?.ok) wanted = undefined;
    draw();
  };
  // Events that change the rate follow; after a drag without a change, draw what was held back.
  const release = (): void =>
    void setTimeout(() => {
      dragging = false;
      if (!drawn) draw();
    });
  const slider = (percent: number): HTMLElement => {
    const shown = el("output", {}, `${percent} %`);
    const range: HTMLInputElement = el("input", {
      type: "range",
      "aria-label": "Load in percent of the plan",
      min: 10,
      max: Math.max(400, percent),
      step: 10,
      value: percent,
      disabled: stopping || lost,
      onpointerdown: () => (dragging = true),
      onpointerup: release,
      onpointercancel: release,
      oninput: () => (shown.textContent = `${range.value} %`),
      onchange: () => void setRate(Number(range.value)),
    });
    return el("label", { class: "rate" }, "Load", range, shown);
  };
  const tools = (): HTMLElement[] => {
    if (!data.live) return text === "" ? [] : [tool("Save the report", () => void keep(source, text, data))];
    if (!data.live.control || token === null) return [];
    const percent = data.live.rate_percent;
    return [
      ...(percent === undefined ? [] : [slider(wanted ?? Math.round(percent))]),
      tool(stopping ? "Stopping" : "Stop the run", () => void stop(), stopping || lost),
    ];
  };
  const draw = (): void => {
    // Not while the page is hidden; not while the slider is dragged.
    drawn = !document.hidden && !dragging;
    if (drawn) keepingFocus(() => page.show(data, { ...(lost && data.live && { pill: LOST }), tools: tools() }));
  };
  const take = (event: MessageEvent<string>): void => {
    [data, lost] = [JSON.parse(event.data) as RunData, false];
    if (data.live?.rate_percent !== before) wanted = undefined;
    draw();
  };

  const events = new EventSource("events");
  events.addEventListener("run", take);
  events.addEventListener("end", (event) => {
    events.close();
    text = event.data as string;
    take(event);
  });
  events.addEventListener("error", () => {
    lost = true;
    draw();
  });
  document.addEventListener("visibilitychange", () => drawn || draw());
  draw();
}

function tool(text: string, press: () => void, disabled = false): HTMLElement {
  return el("button", { class: "tool", type: "button", onclick: press, disabled }, text);
}

/** The token of the address, which is stored for reloads. */
function readToken(): string | null {
  const given = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem(TOKEN);
}

/** Saves the page as it was sent, with the last data and a policy without network requests. */
async function keep(source: Promise<string>, text: string, data: RunData): Promise<void> {
  const start = 'id="page">';
  const page = await source;
  const from = page.indexOf(start) + start.length;
  // The data contain no "<": the next one ends their element.
  const report = page.slice(0, from) + text + page.slice(page.indexOf("<", from));
  const name = `gake-${data.started.slice(0, 19).replace(/[:T]/g, "-")}.html`;
  save(name, "text/html", report.replace("default-src 'none'; connect-src 'self';", "default-src 'none';"));
}

/** Draws and keeps the focus: on the same element or on its replacement. */
function keepingFocus(draw: () => void): void {
  const before = document.activeElement;
  const alike = before && [...document.querySelectorAll(before.tagName)].filter((other) => same(before, other)).indexOf(before);
  const caret = before instanceof HTMLInputElement ? before.selectionStart : null;
  draw();
  if (!before || alike === null || before === document.body || before.isConnected) return;
  const after = [...document.querySelectorAll<HTMLElement>(before.tagName)].filter((other) => same(before, other))[alike];
  after?.focus({ preventScroll: true });
  if (after instanceof HTMLInputElement && caret !== null) after.setSelectionRange(caret, caret);
}

/** Whether two elements have the same purpose. */
function same(one: Element, other: Element): boolean {
  const name = (element: Element): string | null => element.getAttribute("href") ?? element.getAttribute("aria-label") ?? element.textContent;
  return one.tagName === other.tagName && one.className === other.className && name(one) === name(other);
}
