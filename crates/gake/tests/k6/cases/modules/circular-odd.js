// part of circular
import { even } from './circular-even.js';

export function odd(n) { return n === 0 ? false : even(n - 1); }
