/** The data of a comparison's page, written by gake-report/src/html/compare.rs. */

import type { RunData } from "./run-data";

export interface CompareData {
  kind: "compare";
  gake: string;
  /** Schema gake.compare/1, documented in docs/gake.compare.1.schema.json. */
  comparison: {
    outcome: Outcome;
    conclusion: string;
    tolerance: number;
    a: { name: string };
    b: { name: string };
    invalid: { run: string; reason: string }[];
    warnings: string[];
    figures: Figure[];
  };
  /** Explains the intervals. */
  legend: string;
  /** B, with A behind it. */
  run: RunData;
}

type Outcome = "better" | "worse" | "different" | "no_difference" | "inconclusive";

export interface Figure {
  name: string;
  unit: "per_second" | "share" | "ns" | "bytes" | "number";
  a: number | null;
  b: number | null;
  verdict: Outcome;
  beyond_tolerance: boolean;
  headline: boolean;
  change: { estimate: number; low: number | null; high: number | null; detectable: number | null } | null;
  problem: string | null;
}
