// part of circular-too-early
import { first } from './circular-first.js';

export const second = `second with ${first}`;
