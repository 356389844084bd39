// Point reads: one row by its key, with nothing missing that was acknowledged (STRONG), by calls of
// Execute at all members that can be reached.

import { Load, reads } from './lib/load.js';
import * as settings from './lib/settings.js';

export { setup, teardown } from './lib/schema.js';

const load = new Load('20s', '0s');

export const options = settings.options({ reads: load.clients(settings.vus, 'read') }, load.demand(settings.vus, 'read'), reads);

export const read = (data) => load.read(data);
