// part of circular-too-early
import { second } from './circular-second.js';

export const first = `${second} and first`;
