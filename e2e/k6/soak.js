// The mixed load for long, at a pace that a group can keep, while old rows are taken away.

import { mix } from './lib/mix.js';

export { setup, teardown } from './lib/schema.js';

const { load, options } = mix('1h', '50ms');
load.prunes = true;
Object.assign(options.thresholds, { 'operations{op:delete}': [], 'duration{op:delete}': [] });

export { options };
export const read = (data) => load.read(data);
export const write = () => load.write();
export const transact = () => load.transact();
