// What a run is told by variables of the environment, and what all scripts make of it.

const given = (name, otherwise) => __ENV[name] || otherwise;
const positive = (name, otherwise) => {
  const n = Number(given(name, otherwise));
  if (!(n > 0)) throw new Error(`${name} is to be a number above 0, not "${__ENV[name]}"`);
  return n;
};
const oneOf = (name, ...choices) => {
  const v = given(name, choices[0]);
  if (!choices.includes(v)) throw new Error(`${name} is to be one of ${choices.join(', ')}, not "${v}"`);
  return v;
};

// seconds reads a duration such as 1h30m, 20s or 500ms.
const seconds = (name, otherwise) => {
  const units = { h: 3600, m: 60, s: 1, ms: 0.001 };
  const text = given(name, otherwise);
  if (!/^(\d+(\.\d+)?(h|ms|m|s))+$/.test(text)) throw new Error(`${name} is to be a duration such as 1m30s, not "${text}"`);
  let sum = 0;
  for (const [, n, , unit] of text.matchAll(/(\d+(\.\d+)?)(h|ms|m|s)/g)) sum += Number(n) * units[unit];
  return sum;
};

export const schema = 'trireme_load';
export const addresses = given('ADDRESS', '127.0.0.1:17000').split(',');
export const user = given('USERNAME', 'root');
export const password = given('PASSWORD', '');
export const tls = oneOf('TLS', 'false', 'true', 'skip-verify');
export const certificates = {};
for (const [what, name] of Object.entries({ cacerts: 'CA', cert: 'CERT', key: 'KEY' })) {
  if (__ENV[name]) certificates[what] = open(__ENV[name]);
}
export const vus = Math.ceil(positive('VUS', 8));
export const accounts = Math.ceil(positive('ROWS', 10000));
export const duration = (otherwise) => seconds('DURATION', otherwise); // for how long operations are begun
export const pace = (otherwise) => seconds('PACE', otherwise); // how long a client waits between two of them
export const timeout = seconds('TIMEOUT', '5s'); // of one attempt
export const patience = seconds('PATIENCE', '60s'); // of an operation with all its attempts
export const keep = given('KEEP', '') !== ''; // the schema stays

// Thresholds that depend on the machine: without limits all that is demanded is that something has
// happened.
const limited = oneOf('LIMITS', 'on', 'off') === 'on';
export const atLeast = (count) => [`count>=${limited ? Math.max(1, Math.floor(count)) : 1}`];
export const inTime = (name, ms) => (limited ? [`p(99)<${positive(name, ms)}`] : []);
export const neverAbove = (name, ms) => (limited ? [`max<${positive(name, ms)}`] : []);

// options are those of a script: its scenarios and thresholds, with what all of them demand.
export const options = (scenarios, ...thresholds) => ({
  scenarios,
  thresholds: Object.assign({ errors: ['count==0'], checks: ['rate==1'], retries: [] }, ...thresholds),
  // A member that comes back may have another address by the same name.
  dns: { ttl: '1s' },
  setupTimeout: '5m',
  teardownTimeout: '1m',
  insecureSkipTLSVerify: tls === 'skip-verify',
  summaryTrendStats: ['count', 'med', 'p(95)', 'p(99)', 'max'],
  // An address is no name for what is measured: a group has several.
  systemTags: ['scenario', 'check', 'error', 'method', 'status'],
});
