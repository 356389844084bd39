// Reads, writes and transactions at a time: half of the clients read, the others write.

import { Load, reads } from './load.js';
import * as settings from './settings.js';

// mix is a script of them with these defaults of DURATION and PACE.
export function mix(duration, pace) {
  const load = new Load(duration, pace);
  const writers = Math.max(1, Math.floor(settings.vus / 4));
  const readers = Math.max(1, settings.vus - 2 * writers);
  const options = settings.options(
    { reads: load.clients(readers, 'read'), writes: load.clients(writers, 'write'), transactions: load.clients(writers, 'transact') },
    load.demand(readers, 'read'), reads, load.demand(writers, 'write'), load.demand(writers, 'transaction'),
  );
  return { load, options };
}
