// part of modules/links
import { main } from '../links.js';
order.push('circle');
export const later = () => main;
