// Writes and transactions while the leader dies, which somebody else has to see to: each client
// sends again what was not answered, with the same commit token, to whoever leads by then. In the
// end each of them looks whether all that was acknowledged is there, once.

import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';
import { Client, now } from './lib/client.js';
import { transfer, verify, write } from './lib/schema.js';
import { Transactor } from './lib/session.js';
import * as settings from './lib/settings.js';

export { setup, teardown } from './lib/schema.js';

const duration = settings.duration('20s');

// The longest time without an answer that a client has seen.
const gap = new Trend('gap', true);
const verified = new Counter('verified');

export const options = settings.options(
  { failover: { executor: 'per-vu-iterations', vus: settings.vus, iterations: 1, maxDuration: `${duration + 2 * settings.patience}s` } },
  {
    'operations{op:write}': settings.atLeast(duration),
    'operations{op:transaction}': settings.vus > 1 ? settings.atLeast(duration) : [],
    'duration{op:write}': [],
    'duration{op:transaction}': [],
    // Without another leader nothing has been tried, and every client is to have come to its end.
    moves: ['count>=1'],
    verified: [`count==${settings.vus}`],
    gap: settings.neverAbove('GAP', 5000),
  },
);

const client = new Client();

export default async () => {
  client.lead();
  // Half of the clients use calls of Execute, the others streams.
  const transactor = exec.vu.idInTest % 2 === 0 ? new Transactor(client) : null;
  let longest = 0;
  const until = now() + 1000 * duration;
  try {
    for (let last = now(); last < until; ) {
      await (transactor ? transfer(transactor) : write(client));
      const answered = now();
      longest = Math.max(longest, answered - last);
      last = answered;
    }
  } finally {
    if (transactor) transactor.close();
  }
  gap.add(longest);
  verify(client);
  verified.add(1);
};
