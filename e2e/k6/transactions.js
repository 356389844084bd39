// Transactions on the bidirectional stream: begin, two updates, an insert and commit are sent at
// once, each to be run if the one before it went well. An iteration is a stream.

import { Load } from './lib/load.js';
import * as settings from './lib/settings.js';

export { setup, teardown } from './lib/schema.js';

const load = new Load('20s', '0s');

export const options = settings.options({ transactions: load.clients(settings.vus, 'transact') }, load.demand(settings.vus, 'transaction'));

export const transact = () => load.transact();
