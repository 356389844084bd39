// The tables that scripts use, how they are filled, and the operations on them.

import { check } from 'k6';
import exec from 'k6/execution';
import { Client, column, measure } from './client.js';
import * as settings from './settings.js';

const { schema, accounts } = settings;
const note = (id) => `account ${id} `.padEnd(100, String(id));
const wealth = 1000; // of each account at first

const setupClient = new Client();

// setup makes the schema anew and finds out which members can be reached.
export function setup() {
  const c = setupClient;
  c.lead();
  for (const text of [
    `DROP DATABASE IF EXISTS ${schema}`,
    `CREATE DATABASE IF NOT EXISTS ${schema}`,
    `CREATE TABLE IF NOT EXISTS ${schema}.account (id INT PRIMARY KEY, balance BIGINT NOT NULL, note VARCHAR(100) NOT NULL)`,
    // Nothing but the commit token keeps an event from being there twice.
    `CREATE TABLE IF NOT EXISTS ${schema}.event (id BIGINT AUTO_INCREMENT PRIMARY KEY, writer INT NOT NULL, n INT NOT NULL, note VARCHAR(200) NOT NULL, KEY (writer, n))`,
  ]) c.execute(text);
  for (let id = 0; id < accounts; ) {
    const rows = [];
    for (; id < accounts && rows.length < 1000; id++) rows.push(`(${id}, ${wealth}, '${note(id)}')`);
    c.write(`INSERT INTO ${schema}.account VALUES ${rows.join(', ')}`);
  }
  const members = new Map(); // by number, each once
  for (const address of [...c.known]) {
    const node = c.node(address);
    if (node && !members.has(node.member)) members.set(node.member, { address, leads: node.leads });
  }
  c.close();
  return { members: [...members.values()] };
}

// teardown takes the schema away.
export function teardown() {
  if (settings.keep) return;
  setupClient.lead();
  setupClient.execute(`DROP DATABASE IF EXISTS ${schema}`);
  setupClient.close();
}

const any = () => Math.floor(Math.random() * accounts);

// read reads an account by its key, at one of the members, and looks whether it is that one.
export async function read(client, { members }) {
  const { address, leads } = members[exec.vu.idInTest % members.length];
  const id = any();
  const answer = await measure({ op: 'read', at: leads ? 'leader' : 'follower' },
    () => client.read(address, `SELECT balance, note FROM ${schema}.account WHERE id = ?`, [id]));
  check(answer, { 'the row is found': (a) => column(a, 1)[0] === note(id) });
}

// written is how many events this client has written: each has a number of its own.
let written = 0;

const event = (n) => [`INSERT INTO ${schema}.event (writer, n, note) VALUES (?, ?, ?)`, exec.vu.idInTest, n, `event ${n} `.padEnd(150, 'x')];

// write writes an event.
export async function write(client) {
  const [text, ...params] = event(written);
  const answer = await measure({ op: 'write' }, () => client.write(text, params));
  written++;
  check(answer, { 'it is committed': (a) => a.done.gtid !== '0' && (a.done.repeated || a.done.affectedRows === '1') });
}

// transfer moves something from one account to another, and writes an event, in one transaction.
export async function transfer(transactor) {
  const from = any();
  const to = (from + 1 + Math.floor(Math.random() * (accounts - 1))) % accounts;
  const sum = 1 + Math.floor(Math.random() * 10);
  const move = (id) => [`UPDATE ${schema}.account SET balance = balance + ? WHERE id = ?`, id === from ? -sum : sum, id];
  // Whoever locks in the same order does not wait for each other.
  const moves = [from, to].sort((a, b) => a - b).map(move);
  const answer = await measure({ op: 'transaction' }, () => transactor.transact(...moves, event(written)));
  written++;
  check(answer, { 'it is committed': (a) => a.gtid !== '0' });
}

// kept is how many events a client keeps that takes old ones away.
const kept = 10;

// prune takes this client's oldest event away, when it has more than it keeps.
export async function prune(client) {
  if (written <= kept) return;
  const answer = await measure({ op: 'delete' }, () => client.write(`DELETE FROM ${schema}.event WHERE writer = ? AND n = ?`, [exec.vu.idInTest, written - kept - 1]));
  check(answer, { 'it is gone': (a) => a.done.repeated || a.done.affectedRows === '1' });
}

// verify looks whether all that this client has written is there, once.
export function verify(client) {
  const answer = client.execute(`SELECT COUNT(*), COUNT(DISTINCT n), COALESCE(MAX(n), -1) FROM ${schema}.event WHERE writer = ?`, [exec.vu.idInTest]);
  const [rows, different, last] = [0, 1, 2].map((i) => Number(column(answer, i)[0]));
  check(null, {
    'nothing that was acknowledged is missing': () => different >= written && last === written - 1,
    'nothing is there twice': () => rows === different,
  });
}
