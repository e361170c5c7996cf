/** The legend of a chart: toggles lines and shows their values. */

import { el } from "../dom";
import type { Line } from "./options";

/** The keys of a chart's lines, and of the baseline run. */
export class Legend {
  readonly element = el("div", { class: "legend", role: "group", "aria-label": "Series" });
  private readonly values: { value: HTMLElement; ghost: HTMLElement }[] = [];

  private readonly extra = el("span", { class: "extra" });

  /** `toggle` gets the index of a line, or -1 for the baseline, and whether it is visible. */
  constructor(
    lines: Line[],
    ghost: string | undefined,
    private readonly hidden: ReadonlySet<number>,
    private readonly toggle: (line: number, shown: boolean) => void,
  ) {
    lines.forEach((line, i) => {
      const [value, behind] = [el("span", { class: "value" }), el("span", { class: "behind" })];
      // A single line has the chart's own name.
      const kind = line.name === "" ? "swatch alone" : line.dash ? "swatch dashed" : "swatch";
      const swatch = el("i", { class: kind });
      swatch.style.setProperty("--swatch", `var(--${line.colour})`);
      this.values.push({ value, ghost: behind });
      this.element.append(this.key(i, swatch, line.name, value, behind));
    });
    if (ghost !== undefined && lines.some((line) => line.ghost)) {
      this.element.append(this.key(-1, el("i", { class: "swatch ghost" }), ghost));
    }
  }

  private key(line: number, swatch: HTMLElement, name: string, ...values: HTMLElement[]): HTMLElement {
    const press = (): void => {
      const shown = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(shown));
      this.toggle(line, shown);
    };
    const button = el(
      "button",
      { class: line < 0 ? "key over" : "key", type: "button", "aria-pressed": String(!this.hidden.has(line)), title: line < 0 ? `${name}, the run behind` : undefined, onclick: press },
      swatch,
      el("span", { class: "name" }, name),
      ...values,
    );
    return button;
  }

  /** Adds elements after the keys. */
  explain(elements: HTMLElement[]): void {
    this.extra.replaceChildren(...elements);
    this.element.append(this.extra);
  }

  /** Shows values by line, of the run and the baseline. */
  read(texts: [string, string][]): void {
    texts.forEach(([value, ghost], i) => {
      const place = this.values[i];
      if (!place) return;
      place.value.textContent = value;
      place.ghost.textContent = ghost;
    });
  }
}
