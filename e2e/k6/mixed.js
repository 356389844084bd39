// Reads, writes and transactions at a time.

import { mix } from './lib/mix.js';

export { setup, teardown } from './lib/schema.js';

const { load, options } = mix('20s', '0s');

export { options };
export const read = (data) => load.read(data);
export const write = () => load.write();
export const transact = () => load.transact();
