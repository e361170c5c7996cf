/** The data of a shadow page: a list of `gake.shadow-report/1`, shortened by gake/src/cmd/shadow/page.rs. */

export interface ShadowData {
  kind: "shadow";
  gake: string;
  reports: Report[];
}

export interface Report {
  master: string;
  shadow: string;
  secondary: string | null;
  differs: boolean;
  terms: { false_discoveries: number; tolerance: number; latency: number };
  exchanges: number;
  paired: number;
  skipped: number;
  ignored: number;
  fields_lost: number;
  bodies_cut: number;
  /** Of all fields and endpoints, including those not shown. */
  fields: number;
  slower: number;
  all_endpoints: number;
  /** Status codes of master and shadow, and their count. */
  statuses: [string, string, number][];
  differences: Difference[];
  more_differences: number;
  endpoints: Endpoint[];
  suggestions: string;
}

export type Verdict = "real" | "untested" | "unproven" | "noise";

export interface Difference {
  endpoint: string;
  path: string;
  kind: string;
  verdict: Verdict;
  shadow: number;
  exchanges: number;
  secondary: number;
  paired: number;
  /** The share of responses that differ beyond noise. */
  rate: number;
  q: number | null;
  looks_like: string | null;
  example: { request: string; expected: string; actual: string } | null;
}

export interface Endpoint {
  name: string;
  exchanges: number;
  paired: number;
  bodies_cut: number;
  /** Nanoseconds. */
  latency: {
    pace: "slower" | "faster" | "alike" | "too_few" | "untested";
    master_p50: number;
    master_p99: number;
    shadow_p50: number;
    shadow_p99: number;
    against_secondary: boolean;
    ratio: { low: number; middle: number; high: number } | null;
    q: number | null;
  };
}
