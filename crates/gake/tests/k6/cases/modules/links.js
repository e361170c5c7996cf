// Names that modules lack, and `require` in stacks.
import { absent } from 'k6';
import { absent as noHttp } from 'k6/http';
import { absent as noHtml } from 'k6/html';
import { absent as noSocket } from 'k6/ws';
import { absent as noPage } from 'k6/browser';

// The order in which modules run: a CommonJS one in its turn, and what it requires once.
import { one } from './links/lib.js';
import { two } from './links/common.js';
import { three } from './links/late.js';

const stackOf = (name) => {
  try {
    require(name);
  } catch (error) {
    console.log(error.stack.replace(/\(\d+\)/g, ''));
  }
};

console.log(absent, noHttp, noHtml, noSocket, noPage);
stackOf('./links/throws.js');
stackOf('./links/missing.mjs');
stackOf('./links/renamed.mjs');
stackOf('./links/circle.js');
console.log(one, two, three, order.join());

export const main = 1;

export default function () {}
