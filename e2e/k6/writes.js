// Single writes: one row in autocommit with a commit token, by calls of Execute at the leader.

import { Load } from './lib/load.js';
import * as settings from './lib/settings.js';

export { setup, teardown } from './lib/schema.js';

const load = new Load('20s', '0s');

export const options = settings.options({ writes: load.clients(settings.vus, 'write') }, load.demand(settings.vus, 'write'));

export const write = () => load.write();
