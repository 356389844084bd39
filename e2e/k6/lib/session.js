// Sessions on the bidirectional stream, and transactions in them that are committed once.

import grpc from 'k6/net/grpc';
import { setTimeout, clearTimeout } from 'k6/timers';
import { Failure, elsewhere, failure, metadata, metrics, passes, token, value } from './client.js';
import * as settings from './settings.js';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Session is one session on a stream of its own, on a client's connection.
class Session {
  constructor(client) {
    this.waiting = new Map(); // requests without an answer: {resolve, reject, parts}
    this.last = 0;
    this.ended = null; // why
    try {
      this.stream = new grpc.Stream(client.calls, 'trireme.v1.Sql/Sessions', { metadata });
    } catch (e) {
      throw failure({ code: 14, message: e.message || String(e) });
    }
    this.stream.on('data', (m) => this.take(m));
    this.stream.on('error', (e) => this.end(failure(e)));
    this.stream.on('end', () => this.end(failure({ code: 14, message: 'the stream has ended' })));
    // Requests may be sent behind it at once. If it fails they have no answers.
    this.send({ open: { attributes: { program_name: 'k6' } } }, false).catch((e) => this.end(e));
  }

  // send sends a request; ifOk: it is run if the one before it went well. The answer is an array of
  // a result's parts.
  send(kind, ifOk) {
    if (this.ended) return Promise.reject(this.ended);
    const request = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(String(request), { resolve, reject, parts: [] });
      this.stream.write({ session: 1, request, ifOk, ...kind });
    });
  }

  take(m) {
    const w = this.waiting.get(m.request);
    if (m.error && (m.error.sessionEnded || !w)) return this.end(new Failure(m.error));
    if (!w) return undefined;
    if (m.result) {
      w.parts.push(m.result);
      if (!m.result.done) return undefined;
    }
    this.waiting.delete(m.request);
    return m.error ? w.reject(new Failure(m.error)) : w.resolve(w.parts);
  }

  // end fails what waits for an answer.
  end(why) {
    this.ended = this.ended || why;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const w of waiting) w.reject(this.ended);
  }
}

const done = (parts) => parts[parts.length - 1].done;
const statement = ([text, ...params]) => ({ execute: { statement: { text, params: params.map(value) } } });

// Transactor runs transactions on a client's connection, one after the other, in a session that it
// opens when there is none.
export class Transactor {
  constructor(client) {
    this.client = client;
    this.session = null;
  }

  // close ends the session: until then k6 waits for the stream.
  close() {
    if (this.session) this.session.stream.end();
    this.session = null;
  }

  // transact runs statements, each an array of its text and its parameters, in a transaction that
  // is committed once, however often it has to be begun. Its answer is SqlDone of the commit.
  async transact(...statements) {
    const commitToken = token();
    const until = Date.now() + 1000 * settings.patience;
    for (let again = false; ; again = true) {
      try {
        return await this.attempt(statements, commitToken, again);
      } catch (e) {
        if (!passes(e) || Date.now() > until) throw e;
        metrics.retries.add(1);
        await pause(20);
        if (elsewhere(e) || !this.session || this.session.ended) {
          this.session = null;
          this.client.lead(e.leader);
        } else {
          await this.session.send({ rollback: {} }, false).catch(() => {});
        }
      }
    }
  }

  async attempt(statements, commitToken, again) {
    this.session = this.session || new Session(this.client);
    const s = this.session;
    // Who hears nothing, neither an answer nor the connection's end, gives it up.
    const alarm = setTimeout(() => this.client.close(), 1000 * settings.timeout);
    try {
      const begin = s.send({ begin: { commitToken, again } }, false);
      if (again) {
        // Nothing may be sent behind a transaction that was committed before.
        const begun = done(await begin);
        if (begun.repeated) return begun;
      }
      const answers = [begin, ...statements.map((st) => s.send(statement(st), true)), s.send({ commit: {} }, true)];
      return done((await Promise.all(answers)).pop());
    } finally {
      clearTimeout(alarm);
    }
  }
}
