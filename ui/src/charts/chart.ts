/** A chart: title, legend that toggles and reads out, uPlot below. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { el } from "../dom";
import { colour, onTheme, printing } from "../theme/theme";
import { Group, type Member, type Span } from "./group";

/** One series. */
export interface Line {
  name: string;
  /** One value for each x; null where there is none. */
  values: (number | null)[];
  /** The name of a colour of the theme. */
  colour: string;
  /** The share of the colour that fills the area below, 0 to 1. */
  fill?: number;
  width?: number;
  dash?: number[];
  /** Whether its points are joined over missing ones. */
  span?: boolean;
  /** The size of its points, when they stand alone. */
  points?: number;
  /** The size of its points beside the line. */
  marks?: number;
}

/** An area between two lines, by their index. */
export interface Band {
  upper: number;
  lower: number;
  colour: string;
  fill: number;
}

/** What a chart shows. */
export interface ChartOptions {
  title: string;
  /** What is counted, from when to when. */
  note?: string;
  x: {
    values: number[];
    range: Span;
    log?: boolean;
    /** Ticks: uPlot's increments, and how one reads. */
    increments?: number[];
    splits?: number[];
    tick: (x: number) => string;
    /** How the place of the cursor reads. */
    read: (index: number, x: number) => string;
  };
  y: {
    tick: (value: number) => string;
    read: (value: number) => string;
    /** Whether a logarithmic scale makes sense, and is what to begin with. */
    log?: "offer" | "start";
    /** Only this scale makes sense. */
    always?: "log";
    /** A fixed range. */
    range?: Span;
    /** The least top of a linear scale. */
    top?: number;
  };
  lines: Line[];
  bands?: Band[];
  /** Each x holds up to the next, as with what is counted in a second; else x to x. */
  stepped?: boolean;
  group?: Group;
  height?: number;
  /** Draws under the grid. */
  under?: (plot: uPlot) => void;
  /** Draws between grid and lines. */
  cells?: (plot: uPlot) => void;
  /** A text beside the cursor, from the x index and the y under the pointer. */
  tip?: (index: number, y: number) => string[] | null;
}

const AXIS_WIDTH = 68;
const PRINT_WIDTH = 700;

/** A chart in the page. */
export class Chart implements Member {
  readonly element: HTMLElement;
  private readonly holder = el("div", { class: "plot", tabindex: 0, role: "img" });
  private readonly place = el("span", { class: "place" });
  private readonly tip = el("div", { class: "tip", hidden: true });
  private readonly keys: { button: HTMLButtonElement; value: HTMLElement }[] = [];
  private readonly hidden = new Set<number>();
  private log: boolean;
  private plot: uPlot | undefined;
  private width = 0;

  constructor(private readonly options: ChartOptions) {
    const { title, note, y } = options;
    this.log = y.always === "log" || y.log === "start";
    const scale =
      y.log &&
      el(
        "button",
        { class: "scale", type: "button", "aria-pressed": String(this.log), title: "Logarithmic scale" },
        "log",
      );
    if (scale) {
      scale.addEventListener("click", () => {
        this.log = !this.log;
        scale.setAttribute("aria-pressed", String(this.log));
        this.build();
      });
    }
    this.element = el(
      "figure",
      { class: "chart" },
      el("figcaption", {}, el("h3", {}, title), scale, this.place, note && el("p", { class: "note" }, note)),
      this.legend(),
      this.holder,
    );
    this.holder.setAttribute("aria-label", `Chart: ${title}. ${note ?? ""} Arrow keys move the cursor.`);
    this.holder.addEventListener("keydown", (event) => this.key(event));
    this.holder.addEventListener("blur", () => this.show(null));
    options.group?.add(this);
    new ResizeObserver(() => this.fit()).observe(this.holder);
    onTheme(() => {
      this.fit();
      this.plot?.redraw(false, true);
    });
  }

  point(x: number | null): void {
    const plot = this.plot;
    if (!plot) return;
    const left = x === null ? -10 : plot.valToPos(x, "x");
    plot.setCursor({ left, top: x === null ? -10 : 0 }, false);
    this.read(x === null ? null : this.indexAt(x));
  }

  zoom(span: Span | null): void {
    const [min, max] = span ?? this.options.x.range;
    this.plot?.setScale("x", { min, max });
  }

  /** Buttons that toggle a series and read its value at the cursor. */
  private legend(): HTMLElement {
    const legend = el("div", { class: "legend", role: "group", "aria-label": "Series" });
    this.options.lines.forEach((line, i) => {
      const value = el("span", { class: "value" });
      const swatch = el("i", { class: line.dash ? "swatch dashed" : "swatch" });
      swatch.style.setProperty("--swatch", `var(--${line.colour})`);
      const button = el(
        "button",
        { class: "key", type: "button", "aria-pressed": "true", onclick: () => this.toggle(i) },
        swatch,
        el("span", { class: "name" }, line.name),
        value,
      );
      this.keys.push({ button, value });
      legend.append(button);
    });
    return legend;
  }

  private toggle(i: number): void {
    if (!this.hidden.delete(i)) this.hidden.add(i);
    const shown = !this.hidden.has(i);
    this.keys[i]?.button.setAttribute("aria-pressed", String(shown));
    this.plot?.setSeries(i + 1, { show: shown });
  }

  /** Follows the width there is. */
  private fit(): void {
    const width = printing() ? Math.min(PRINT_WIDTH, this.holder.clientWidth) : this.holder.clientWidth;
    if (width < 1 || (width === this.width && this.plot)) return;
    this.width = width;
    if (this.plot) this.plot.setSize({ width, height: this.height() });
    else this.build();
  }

  private height(): number {
    return this.options.height ?? 220;
  }

  private build(): void {
    this.plot?.destroy();
    const { x, lines, group } = this.options;
    // A logarithm has no place for nothing.
    const clean = (value: number | null): number | null =>
      this.log && value !== null && value <= 0 ? null : value;
    const stepped = this.options.stepped;
    // What begins where the axis ends cannot be seen.
    const past = stepped ? x.values.findIndex((at, i) => i > 0 && at >= x.range[1]) : -1;
    const seen = <T>(list: T[]): T[] => (past < 0 ? list : list.slice(0, past));
    // A step is a line from where it starts to where the next one does: what is before a gap is
    // drawn to its end.
    const twice = <T>(list: T[]): T[] => (stepped ? list.flatMap((value) => [value, value]) : list);
    const values = lines.map((line) => twice(seen(line.values).map(clean)));
    let xs = seen(x.values);
    if (stepped && xs.length > 0) xs = [...twice(xs).slice(1), Math.max(x.range[1], xs.at(-1) ?? 0)];
    // A scale without a series is none.
    if (values.length === 0) values.push(xs.map(() => null));
    const data = [xs, ...values] as uPlot.AlignedData;
    const plot = new uPlot(this.settings(), data, this.holder);
    this.plot = plot;
    plot.over.append(this.tip);
    plot.over.addEventListener("dblclick", () => (group ? group.zoom(null) : this.zoom(null)));
    plot.over.addEventListener("mouseleave", () => this.show(null));
    if (group?.span) this.zoom(group.span);
  }

  private settings(): uPlot.Options {
    const { x, y, lines, bands, stepped, under, cells } = this.options;
    const log = this.log;
    const ink = (): string => colour("quiet");
    const grid = { stroke: () => colour("grid"), width: 1 };
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    return {
      width: this.width,
      height: this.height(),
      padding: [8, 24, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
      },
      scales: {
        x: { time: false, distr: x.log ? 3 : 1, range: (_plot, min, max) => this.xRange(min, max) },
        y: { distr: log ? 3 : 1, range: (_plot, min, max) => range(y, log, min, max) },
      },
      axes: [
        {
          stroke: ink,
          font,
          grid,
          ticks: { show: false },
          size: 26,
          gap: 6,
          space: 70,
          filter: (_plot, splits) => splits,
          values: (_plot, splits) => splits.map((at) => x.tick(at)),
          ...(x.increments && { incrs: x.increments }),
          ...(x.splits && {
            splits: (plot: uPlot) =>
              (x.splits ?? []).filter((at) => at >= (plot.scales["x"]?.min ?? 0) * 0.999 && at <= (plot.scales["x"]?.max ?? 0) * 1.001),
          }),
        },
        {
          stroke: ink,
          font,
          grid,
          ticks: { show: false },
          size: AXIS_WIDTH,
          gap: 8,
          space: 36,
          values: (_plot, splits) => splits.map((at) => y.tick(at)),
          ...(log && {
            filter: (_plot: uPlot, splits: number[]) => splits,
            splits: (_plot: uPlot, _axis: number, min: number, max: number) => rounds(min, max, 6),
          }),
        },
      ],
      series: [
        {},
        ...(lines.length === 0 ? [{}] : []),
        ...lines.map((line, i): uPlot.Series => ({
          label: line.name,
          show: !this.hidden.has(i),
          stroke: () => colour(line.colour),
          width: line.width ?? 1.5,
          ...(line.fill && { fill: () => faded(line.colour, line.fill ?? 0) }),
          ...(line.dash && { dash: line.dash }),
          spanGaps: line.span ?? false,
          ...(line.points && { paths: () => null }),
          points: dots(line, stepped ?? false),
        })),
      ],
      ...(bands && {
        bands: bands.map((band): uPlot.Band => ({
          series: [band.upper + 1, band.lower + 1],
          fill: () => faded(band.colour, band.fill),
        })),
      }),
      hooks: {
        setCursor: [(plot) => this.moved(plot)],
        setSelect: [(plot) => this.selected(plot)],
        ...(under && { drawClear: [under] }),
        ...(cells && { drawAxes: [cells] }),
      },
    };
  }

  private xRange(min: number, max: number): [number, number] {
    const [from, to] = this.options.x.range;
    // At the start uPlot asks for the range of the values, which is not the whole.
    const first = this.options.x.values[0];
    const last = this.plot?.data[0]?.at(-1);
    if (min === null || max === null || (min === first && max === last)) return [from, to];
    return min < max ? [Math.max(min, from), Math.min(max, to)] : [from, to];
  }

  /** The pointer moved. */
  private moved(plot: uPlot): void {
    const { left = -10, top = -10 } = plot.cursor;
    if (left < 0 || plot !== this.plot) return;
    const x = plot.posToVal(left, "x");
    const index = this.indexAt(x);
    this.read(index);
    this.options.group?.point(x, this);
    const lines = index === null ? null : this.options.tip?.(index, plot.posToVal(top, "y"));
    this.tip.hidden = !lines;
    if (lines) {
      this.tip.replaceChildren(...lines.map((line) => el("div", {}, line)));
      const right = left > plot.over.clientWidth / 2;
      this.tip.style.transform = `translate(calc(${left + (right ? -12 : 12)}px${right ? " - 100%" : ""}), ${Math.min(top + 12, plot.over.clientHeight - 60)}px)`;
    }
  }

  /** A span was dragged over. */
  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    const span: Span = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (this.options.group) this.options.group.zoom(span);
    else this.zoom(span);
  }

  private key(event: KeyboardEvent): void {
    const values = this.options.x.values;
    const plot = this.plot;
    if (event.key === "Escape") {
      if (this.options.group) this.options.group.zoom(null);
      else this.zoom(null);
    } else if (plot && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      event.preventDefault();
      const left = plot.cursor.left ?? -10;
      const step = event.key === "ArrowLeft" ? -1 : 1;
      const at = left < 0 ? null : this.indexAt(plot.posToVal(left, "x"));
      const next = at === null ? 0 : Math.min(Math.max(at + step, 0), values.length - 1);
      this.show(values[next] ?? null);
    }
  }

  /** Moves the cursor here and in the group. */
  private show(x: number | null): void {
    this.tip.hidden = true;
    this.point(x);
    this.options.group?.point(x, this);
  }

  /** The point that an x belongs to. */
  private indexAt(x: number): number | null {
    const values = this.options.x.values;
    if (values.length === 0) return null;
    let [low, high] = [0, values.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((values[middle] as number) <= x + 1e-9) low = middle + 1;
      else high = middle;
    }
    const before = Math.max(low - 1, 0);
    if (this.options.stepped) return before;
    const after = Math.min(low, values.length - 1);
    const nearer = x - (values[before] as number) > (values[after] as number) - x;
    return nearer ? after : before;
  }

  /** Reads the values at a point out in the legend. */
  private read(index: number | null): void {
    const { x, y, lines } = this.options;
    this.place.textContent = index === null ? "" : x.read(index, x.values[index] ?? 0);
    lines.forEach((line, i) => {
      const value = index === null ? undefined : valueAt(line, index);
      const text = value === undefined ? "" : value === null ? "–" : y.read(value);
      const key = this.keys[i];
      if (key) key.value.textContent = text;
    });
  }
}

/** How the points of a line are drawn. */
function dots(line: Line, stepped: boolean): uPlot.Series.Points {
  const size = line.points ?? line.marks;
  if (size) return { show: true, size, width: 0, fill: () => colour(line.colour) };
  return stepped ? { show: false } : { size: 4 };
}

/** The value at a point; of lines that span gaps, the one before when there is none. */
function valueAt(line: Line, index: number): number | null {
  for (let at = index; line.span && at >= 0; at--) {
    const value = line.values[at];
    if (value !== null && value !== undefined) return value;
  }
  return line.values[index] ?? null;
}

/** A colour of the theme with an opacity. */
export function faded(name: string, opacity: number): string {
  return `color-mix(in srgb, ${colour(name)} ${Math.round(opacity * 100)}%, transparent)`;
}

/** Values that read well on a logarithmic scale, about as many as asked for at most. */
export function rounds(from: number, to: number, most: number): number[] {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const values: number[] = [];
    for (let decade = 10 ** Math.floor(Math.log10(from)); decade <= to * 1.001; decade *= 10) {
      for (const step of steps) {
        const value = step * decade;
        if (value >= from * 0.999 && value <= to * 1.001) values.push(value);
      }
    }
    if (values.length <= most || steps.length === 1) return values;
  }
  return [];
}

function range(y: ChartOptions["y"], log: boolean, min: number | null, max: number | null): [number, number] {
  if (y.range) return [...y.range];
  if (log) {
    if (!min || !max || min <= 0) return [1, 10];
    const from = 10 ** Math.floor(Math.log10(min) + 1e-9);
    const to = 10 ** Math.ceil(Math.log10(max) - 1e-9);
    return [from, to > from ? to : from * 10];
  }
  const top = Math.max(max ?? 0, y.top ?? 0);
  return [0, top > 0 ? top * 1.08 : 1];
}
