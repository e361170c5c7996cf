/** Tables. On a narrow page a row becomes a block of named figures. */

import { el } from "./dom";
import { recall, remember } from "./memory";

/** A column of a table of rows. */
export interface Column<Row> {
  name: string;
  title?: string;
  /** The content of a cell. */
  show: (row: Row) => string | Node;
  /** The sort key; a column without one cannot be sorted. */
  key?: (row: Row) => number | string;
  /** A number: right-aligned. */
  number?: boolean;
  /** Whether the cell shows a problem. */
  bad?: (row: Row) => boolean;
}

/** A table with filtered rows. */
export interface Listing<Row> {
  element: HTMLElement;
  /** Shows the rows for which `keep` holds. */
  filter: (keep: (row: Row) => boolean) => void;
}

/** A table; clicking the heading of a column with a key sorts by it. */
export function listing<Row>(rows: Row[], columns: Column<Row>[]): Listing<Row> {
  const body = el("tbody");
  let [order, keep] = [rows, (_row: Row): boolean => true];
  const name = `order of ${columns.map((column) => column.name).join()}`;
  const heads = columns.map((column, i) => {
    const head = el("th", { scope: "col", class: column.number ? "number" : "", title: column.title });
    if (column.key) head.append(el("button", { type: "button", onclick: () => press(i) }, column.name));
    else head.append(column.name);
    return head;
  });
  const cell = (column: Column<Row>, row: Row): HTMLElement =>
    el(
      "td",
      {
        class: [column.number ? "number" : "", column.bad?.(row) ? "bad" : ""].join(" ").trim() || undefined,
        "data-name": column.name,
      },
      column.show(row),
    );
  const fill = (): void =>
    body.replaceChildren(...order.filter(keep).map((row) => el("tr", {}, ...columns.map((column) => cell(column, row)))));
  const press = (i: number): void => {
    // Numbers in descending order first, names in ascending order.
    const before = heads[i]?.getAttribute("aria-sort");
    const numbers = rows.length > 0 && typeof columns[i]?.key?.(rows[0] as Row) === "number";
    const down = before ? before === "ascending" : numbers;
    remember(name, [i, down]);
    arrange(i, down);
  };
  const arrange = (i: number, down: boolean): void => {
    const key = columns[i]?.key;
    if (!key) return;
    for (const other of heads) other.removeAttribute("aria-sort");
    heads[i]?.setAttribute("aria-sort", down ? "descending" : "ascending");
    const compare = (a: Row, b: Row): number => {
      const [x, y] = [key(a), key(b)];
      return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    };
    order = [...rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
    fill();
  };
  const before = recall<[number, boolean] | null>(name, null);
  if (before) arrange(...before);
  else fill();
  const sorts = columns.some((column) => column.key);
  const kind = [columns.length > 3 ? "wide" : "", sorts ? "sorts" : ""].join(" ").trim();
  const whole = el("table", { class: kind || undefined }, el("thead", {}, el("tr", {}, ...heads)), body);
  return {
    element: el("div", { class: "scroll" }, whole),
    filter: (wanted) => {
      keep = wanted;
      fill();
    },
  };
}

/** A table without a filter. */
export function table<Row>(rows: Row[], columns: Column<Row>[]): HTMLElement {
  return listing(rows, columns).element;
}
