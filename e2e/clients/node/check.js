'use strict';
// What the programs share: the server's address, and tests one after the other.

const assert = require('assert');

exports.where = {
  host: process.env.TRIREME_HOST,
  port: Number(process.env.TRIREME_PORT),
  user: process.env.TRIREME_USER,
  password: process.env.TRIREME_PASSWORD,
};

// raises wants the promise to fail with this error number of the server.
exports.raises = async (number, promise) => {
  try {
    await promise;
  } catch (e) {
    const cause = e.original || e;
    assert.strictEqual(cause.errno, number, cause.message);
    return;
  }
  assert.fail(`no error ${number}`);
};

// run runs them all, says which failed, and ends the program.
exports.run = async (...tests) => {
  let failed = 0;
  for (const test of tests) {
    try {
      await test();
      console.log(`ok   ${test.name}`);
    } catch (e) {
      failed++;
      console.log(`FAIL ${test.name}\n${e.sql || ''}\n${(e.stack || String(e)).slice(0, 1500)}`);
    }
  }
  process.exit(failed ? 1 : 0);
};
