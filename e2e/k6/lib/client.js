// A client that speaks to the group by calls of Execute: it finds the leader and follows it, and
// sends again what may be sent again, writes with the same commit token.

import encoding from 'k6/encoding';
import exec from 'k6/execution';
import grpc from 'k6/net/grpc';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import * as settings from './settings.js';

export const metrics = {
  // From an operation's beginning to its answer, with all attempts.
  duration: new Trend('duration', true),
  // Operations that were answered well.
  operations: new Counter('operations'),
  // Operations that failed for good.
  errors: new Counter('errors'),
  // Attempts beyond the first.
  retries: new Counter('retries'),
  // How often a client that had a leader went to another node.
  moves: new Counter('moves'),
};

export const metadata = { authorization: `Basic ${encoding.b64encode(`${settings.user}:${settings.password}`)}` };

const pause = 0.02; // s, before something is tried again

// now is the time of the run in milliseconds; it never goes back.
export const now = () => exec.instance.currentTestRunDuration;

// token makes a commit token: a UUID of version 7.
export function token() {
  const t = crypto.getRandomValues(new Uint8Array(16));
  let ms = Date.now();
  for (let i = 5; i >= 0; i--, ms = Math.floor(ms / 256)) t[i] = ms % 256;
  t[6] = (t[6] & 0x0f) | 0x70;
  t[8] = (t[8] & 0x3f) | 0x80;
  return encoding.b64encode(t.buffer);
}

// value is a parameter, a number or a text.
export const value = (v) => (typeof v === 'number' ? { int: v } : { text: v });

// Failure is why an attempt has failed. retry is as in the contract.
export class Failure extends Error {
  constructor(error) {
    super(`error ${error.number}: ${error.message}`);
    this.number = error.number;
    this.retry = error.retry;
    this.leader = error.leader;
  }
}

const again = 'SQL_RETRY_SAME_TOKEN';

// passes says whether an operation that failed may be tried again.
export const passes = (e) => e instanceof Failure && !['', 'SQL_RETRY_UNSPECIFIED'].includes(e.retry);

// elsewhere says whether it has to be tried at another node, or on another connection.
export const elsewhere = (e) => ['SQL_RETRY_ELSEWHERE', again].includes(e.retry);

// A status without an error of the server: the connection is lost, or the time has run out.
// Numbers, since k6's names for them are not equal to those in an error.
const lost = [1 /* canceled */, 2 /* unknown */, 4 /* deadline exceeded */, 13 /* internal */, 14 /* unavailable */];

// failure makes one of a call's status.
export function failure(status) {
  const told = (status.details || []).find((d) => (d['@type'] || '').endsWith('trireme.v1.SqlError'));
  if (told) return new Failure(told);
  const retry = lost.includes(Number(status.code)) ? again : '';
  return new Failure({ number: 0, message: `status ${status.code}, ${status.message}`, retry });
}

// column reads a column of an Execute's answer: an array of texts.
export function column(answer, i) {
  const { batch } = answer;
  if (!batch || batch.rows === 0) return [];
  const v = batch.columns[i];
  if (v.lengths.length === 0) return [...v.ints, ...v.uints];
  const bytes = encoding.b64decode(v.bytes, 'std', 's'); // ASCII is what scripts store
  let end = 0;
  return v.lengths.map((n) => bytes.slice(end, (end += n)));
}

// Client has a connection of its own. It is made while a script is loaded.
export class Client {
  constructor() {
    this.calls = new grpc.Client();
    this.calls.load([import.meta.resolve('../../../proto')], 'trireme/v1/sql.proto');
    this.at = ''; // where it is connected
    this.leader = 0; // the member that led when it looked last
    this.refusal = ''; // why a node was not reached lately
    this.known = [...settings.addresses];
  }

  connect(address) {
    this.close();
    try {
      this.calls.connect(address, { plaintext: settings.tls === 'false', timeout: '2s', tls: settings.certificates });
    } catch (e) {
      throw new Failure({ number: 0, message: `${address}: ${e.message || e}`, retry: again });
    }
    this.at = address;
  }

  close() {
    if (this.at !== '') this.calls.close();
    this.at = '';
  }

  call(method, request, timeout) {
    const r = this.calls.invoke(`trireme.v1.Sql/${method}`, request, { metadata, timeout: 1000 * (timeout || settings.timeout) });
    if (r.status !== grpc.StatusOK) throw failure(r.error);
    return r.message;
  }

  // node connects to an address and asks who is there; null: nobody who answers.
  node(address) {
    try {
      this.connect(address);
      return this.call('Node', {}, 2);
    } catch (e) {
      if (e.number !== 0 && e.number !== 1053) throw e; // such as a wrong password
      this.refusal = e.message;
      return null;
    }
  }

  // lead connects to the node that leads, if need be when there is one.
  lead(hint) {
    const until = Date.now() + 1000 * settings.patience;
    for (let next = hint ? [hint] : []; ; sleep(pause)) {
      for (const address of [...next, ...this.known]) {
        const node = this.node(address);
        if (node === null) continue;
        for (const a of node.members) if (!this.known.includes(a)) this.known.push(a);
        next = node.leader ? [node.leader] : [];
        if (!node.leads) continue;
        if (this.leader !== 0 && node.member !== this.leader) metrics.moves.add(1);
        this.leader = node.member;
        return;
      }
      if (Date.now() > until) throw new Error(`nobody who leads is reached at ${this.known.join(', ')}. ${this.refusal}`);
    }
  }

  // execute runs a statement at the leader until it is answered, or has failed for good.
  execute(text, params, more) {
    const statement = { text, params: (params || []).map(value), ...more };
    return this.insist(() => this.call('Execute', { statement }), (e) => {
      statement.again = 'commitToken' in statement;
      if (elsewhere(e)) this.lead(e.leader);
    });
  }

  // write changes rows once, however often the statement has to be sent.
  write(text, params) {
    return this.execute(text, params, { commitToken: token() });
  }

  // read runs a query at an address, whoever leads.
  read(address, text, params) {
    const statement = { text, params: params.map(value), read: { consistency: 'SQL_CONSISTENCY_STRONG' } };
    return this.insist(() => {
      if (this.at !== address) this.connect(address);
      return this.call('Execute', { statement, readOnly: true });
    }, (e) => {
      if (e.number === 0) this.close();
    });
  }

  // insist makes attempts until one succeeds; prepare readies the next one.
  insist(attempt, prepare) {
    const until = Date.now() + 1000 * settings.patience;
    for (;;) {
      try {
        return attempt();
      } catch (e) {
        if (!passes(e) || Date.now() > until) throw e;
        metrics.retries.add(1);
        sleep(pause);
        prepare(e);
      }
    }
  }
}

// measure runs an operation and counts it, with tags that say which it is.
export async function measure(tags, run) {
  const began = now();
  try {
    const result = await run();
    metrics.duration.add(now() - began, tags);
    metrics.operations.add(1, tags);
    return result;
  } catch (e) {
    metrics.errors.add(1);
    sleep(0.5); // what fails all the time is not to fill the log
    throw e;
  }
}
