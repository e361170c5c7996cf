/**
 * Formats numbers as gake's text output does: `1.23 ms`,
 * `12,345`, `0.10 %`, `2,000/s`, `3.20 MB`.
 */

/** Three significant digits, at most two decimals. */
function digits(value: number): string {
  if (value < 9.995) return value.toFixed(2);
  return value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

/** Nanoseconds in a suitable unit. */
export function duration(ns: number): string {
  if (ns <= 0) return "0";
  const steps: [number, string][] = [[1e3, "ns"], [1e6, "µs"], [1e9, "ms"]];
  for (const [limit, unit] of steps) {
    const value = ns / (limit / 1e3);
    // 999.7 µs is 1.00 ms, not 1000 µs.
    if (value < 999.5) return `${unit === "ns" ? value.toFixed(0) : digits(value)} ${unit}`;
  }
  const seconds = ns / 1e9;
  if (seconds < 599.5) return `${digits(seconds)} s`;
  return seconds < 35_970 ? `${(seconds / 60).toFixed(0)} min` : `${digits(seconds / 3600)} h`;
}

/** The same without trailing zeros, for ticks. */
export function durationTick(ns: number): string {
  const steps: [number, string][] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  let [scale, unit] = steps[0] as [number, string];
  for (const step of steps) if (ns >= step[0] * 0.9999) [scale, unit] = step;
  return ns <= 0 ? "0" : `${trimmed(ns / scale)} ${unit}`;
}

function trimmed(value: number): string {
  return Number(value.toPrecision(4)).toString();
}

/** A whole number with thousands separators. */
export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** A number with few decimals: none from 100 on. */
export function number(value: number): string {
  if (value >= 99.95) return count(value);
  const text = value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
  return text.replace(/\.?0+$/, "");
}

/** A number per second. */
export function rate(value: number): string {
  return `${number(value)}/s`;
}

/** A number for a tick: `1,500`, `2M`. */
export function tick(value: number): string {
  if (value >= 1e6) return `${trimmed(value / 1e6)}M`;
  return value >= 10 ? count(value) : trimmed(value);
}

/** A share (0 to 1) in percent, which rounds to 0 or 100 only if it is exact. */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value < 0.01) return "< 0.01 %";
  if (value < 1) return `${value.toFixed(2)} %`;
  if (value < 10) return `${value.toFixed(1)} %`;
  if (value > 99.5 && value < 100) return `${Math.min(value, 99.99).toFixed(2)} %`;
  return `${value.toFixed(0)} %`;
}

/** A number of bytes, in powers of 1,000. */
export function bytes(value: number): string {
  if (value < 999.5) return `${value.toFixed(0)} B`;
  const units = ["kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  value /= 1e3;
  while (value >= 999.5 && unit + 1 < units.length) {
    value /= 1e3;
    unit += 1;
  }
  return `${digits(value)} ${units[unit]}`;
}

/** Bytes for a tick. */
export function bytesTick(value: number): string {
  return bytes(value).replace(/\.0+ /, " ").replace(/(\.\d*?)0+ /, "$1 ");
}

/** Seconds since the start as a clock: `0:42`, `1:02:03`. */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds + 1e-9);
  const part = seconds - whole;
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n: number): string => n.toString().padStart(2, "0");
  const text = h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  return part > 1e-6 ? `${text}${part.toFixed(3).slice(1).replace(/0+$/, "")}` : text;
}
