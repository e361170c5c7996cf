import { sleep } from 'k6';
import http from 'k6/http';

const { batch, http } = {};

export default function () {
  sleep(0);
}
