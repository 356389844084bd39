// What the clients of the scripts do, and what is demanded of it.

import { sleep } from 'k6';
import { Client } from './client.js';
import { prune, read, transfer, write } from './schema.js';
import { Transactor } from './session.js';
import * as settings from './settings.js';

const client = new Client();

// How long 99 of 100 operations may take, in milliseconds, and the variable that says otherwise.
const p99 = { read: ['P99_READ', 250], write: ['P99_WRITE', 500], transaction: ['P99_TRANSACTION', 750] };

// Load is what clients do in a script with these defaults of DURATION and PACE.
export class Load {
  constructor(duration, pace) {
    this.seconds = settings.duration(duration);
    this.pace = settings.pace(pace);
    this.prunes = false; // clients take their old rows away, so that the disk does not fill
  }

  rest() {
    if (this.pace > 0) sleep(this.pace);
  }

  // read reads one row at a member, whoever leads.
  async read(data) {
    await read(client, data);
    this.rest();
  }

  // write writes one row.
  async write() {
    if (client.at === '') client.lead();
    await write(client);
    if (this.prunes) await prune(client);
    this.rest();
  }

  // transact runs transactions on a stream of its own.
  async transact() {
    if (client.at === '') client.lead();
    const transactor = new Transactor(client);
    try {
      for (let i = 0; i < 50; i++) {
        await transfer(transactor);
        if (this.prunes) await prune(client);
        this.rest();
      }
    } finally {
      transactor.close();
    }
  }

  // clients are so many that run a function of the script.
  clients(vus, exec) {
    return { executor: 'constant-vus', vus, duration: `${this.seconds}s`, exec };
  }

  // demand is what so many clients have to do: an operation a second each, and 99 of 100 in time.
  demand(vus, op) {
    return { [`operations{op:${op}}`]: settings.atLeast(vus * this.seconds), [`duration{op:${op}}`]: settings.inTime(...p99[op]) };
  }
}

// reads are told apart by where they were.
export const reads = { 'duration{op:read,at:leader}': [], 'duration{op:read,at:follower}': [] };
