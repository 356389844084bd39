'use strict';
// mysql2: the text protocol and prepared statements, transactions, pools, streams.

const assert = require('assert');
const mysql = require('mysql2/promise');
const { where, raises, run } = require('./check');

const connect = (more) => mysql.createConnection({ ...where, ...more });

async function setup() {
  const c = await connect();
  await c.query('DROP DATABASE IF EXISTS js');
  await c.query('CREATE DATABASE js');
  await c.end();
}

async function values() {
  const c = await connect({ database: 'js', timezone: 'Z', supportBigNumbers: true, bigNumberStrings: true });
  await c.query(`CREATE TABLE v (id INT PRIMARY KEY, bi BIGINT, bu BIGINT UNSIGNED, d DECIMAL(30,10), f FLOAT, db DOUBLE, dt DATE, dtm DATETIME(3),
    tm TIME(6), y YEAR, c CHAR(10), t TEXT CHARACTER SET utf8mb4, b BLOB, j JSON, e ENUM('x','y'), s SET('a','b'), bt BIT(12))`);
  const names = 'bi, bu, d, f, db, dt, dtm, tm, y, c, t, b, j, e, s, bt';
  const day = new Date(Date.UTC(2024, 1, 29));
  const moment = new Date(Date.UTC(2024, 1, 29, 12, 34, 56, 789));
  const row = ['-9223372036854775808', '18446744073709551615', '-12345678901234567890.0123456789', 1.5, 2.2250738585072014e-308, day, moment,
    '-838:59:58.999999', 1901, 'c', 'it\'s "ż" \\ \0 🐙', Buffer.from([0, 1, 255]), '{"a":[1,null,"ż"]}', 'y', 'a,b', Buffer.from([0x0f, 0xff])];
  const want = [...row];
  want[12] = { a: [1, null, 'ż'] };
  const marks = row.map(() => '?').join(', ');
  await c.query(`INSERT INTO v (id, ${names}) VALUES (1, ${marks})`, row);
  await c.execute(`INSERT INTO v (id, ${names}) VALUES (2, ${marks})`, row);
  await c.execute(`INSERT INTO v (id, ${names}) VALUES (3, ${marks})`, row.map(() => null));
  for (const how of ['query', 'execute']) {
    const [got] = await c[how]({ sql: `SELECT ${names} FROM v ORDER BY id`, rowsAsArray: true });
    assert.deepStrictEqual(got, [want, want, row.map(() => null)], how);
    const [found] = await c[how]({ sql: 'SELECT id FROM v WHERE bi = ? AND bu = ? AND d = ? AND dtm = ? AND t = ? ORDER BY id', rowsAsArray: true },
      [row[0], row[1], row[2], row[6], row[10]]);
    assert.deepStrictEqual(found, [[1], [2]], how);
  }
  const [, fields] = await c.query('SELECT id, t, COUNT(*) AS n FROM v GROUP BY id, t LIMIT 1');
  assert.deepStrictEqual(fields.map((f) => [f.name, f.table, f.schema]), [['id', 'v', 'js'], ['t', 'v', 'js'], ['n', '', '']]);
  await c.end();
}

async function prepared() {
  const c = await connect({ database: 'js' });
  const s = await c.prepare('SELECT ? + ? AS sum, CONCAT(?, ?) AS text');
  for (let i = 0; i < 20; i++) {
    const [[r]] = await s.execute([i, 2.5, 'a', `ż${i}`]);
    assert.deepStrictEqual(r, { sum: i + 2.5, text: `aż${i}` });
  }
  await s.close();
  await c.execute('CREATE TABLE p (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(10))');
  const [done] = await c.execute('INSERT INTO p (v) VALUES (?), (?)', ['a', 'b']);
  assert.deepStrictEqual([done.affectedRows, done.insertId], [2, 1]);
  const [limited] = await c.execute('SELECT v FROM p ORDER BY id LIMIT ? OFFSET ?', ['1', '1']);
  assert.deepStrictEqual(limited, [{ v: 'b' }]);
  await c.execute('ALTER TABLE p ADD COLUMN w INT DEFAULT 7 FIRST');
  const [all] = await c.execute('SELECT * FROM p WHERE id = ?', [1]);
  assert.deepStrictEqual(all, [{ w: 7, id: 1, v: 'a' }]);
  await c.execute('ALTER TABLE p DROP COLUMN w');
  const [again] = await c.execute('SELECT * FROM p WHERE id = ?', [1]);
  assert.deepStrictEqual(again, [{ id: 1, v: 'a' }]);
  await raises(1062, c.execute('INSERT INTO p VALUES (?, ?)', [1, 'c']));
  await raises(1146, c.execute('SELECT * FROM nowhere'));
  await c.end();
}

async function transactions() {
  const a = await connect({ database: 'js' });
  const b = await connect({ database: 'js' });
  await a.query('CREATE TABLE t (id INT PRIMARY KEY, v INT)');
  await a.beginTransaction();
  await a.query('INSERT INTO t VALUES ?', [[[1, 1], [2, 2]]]);
  assert.strictEqual((await b.query('SELECT * FROM t'))[0].length, 0);
  await a.commit();
  await a.beginTransaction();
  await b.beginTransaction();
  await a.query('UPDATE t SET v = 10 WHERE id = 1');
  await b.query('UPDATE t SET v = 20 WHERE id = 2');
  const [x, y] = await Promise.allSettled([a.query('UPDATE t SET v = 11 WHERE id = 2'), b.query('UPDATE t SET v = 21 WHERE id = 1')]);
  const lost = [x, y].filter((r) => r.status === 'rejected');
  assert.deepStrictEqual(lost.map((r) => r.reason.errno), [1213]);
  await a.rollback();
  await b.rollback();
  assert.deepStrictEqual((await b.query('SELECT * FROM t ORDER BY id'))[0], [{ id: 1, v: 1 }, { id: 2, v: 2 }]);
  await a.end();
  await b.end();
}

async function pool() {
  const p = mysql.createPool({ ...where, database: 'js', connectionLimit: 8, compress: true });
  await p.query('CREATE TABLE n (id INT PRIMARY KEY, v INT NOT NULL)');
  await p.query('INSERT INTO n VALUES (1, 0)');
  await Promise.all(Array.from({ length: 100 }, (_, i) => (i % 2 ? p.query('UPDATE n SET v = v + ?', [1]) : p.execute('UPDATE n SET v = v + ?', [1]))));
  assert.deepStrictEqual((await p.query('SELECT v FROM n'))[0], [{ v: 100 }]);
  await p.end();
}

async function streams() {
  const c = await connect({ database: 'js', multipleStatements: true });
  await c.query('CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(100))');
  await c.query('INSERT INTO big VALUES ?', [Array.from({ length: 10000 }, (_, i) => [i, 'x'.repeat(i % 100)])]);
  let next = 0;
  for await (const row of c.connection.query('SELECT * FROM big ORDER BY id').stream()) {
    assert.strictEqual(row.id, next++);
  }
  assert.strictEqual(next, 10000);
  const [several] = await c.query('SELECT 1 AS a; UPDATE big SET v = NULL WHERE id < 3; SELECT 2 AS b');
  assert.deepStrictEqual([several[0], several[1].affectedRows, several[2]], [[{ a: 1 }], 3, [{ b: 2 }]]);
  await c.changeUser({ database: 'js' });
  await c.ping();
  await c.end();
}

async function secure() {
  const c = await connect({ ssl: { rejectUnauthorized: false } });
  const [[r]] = await c.query("SHOW STATUS LIKE 'Ssl_version'");
  assert.match(r.Value, /^TLSv1\.[23]$/);
  await c.end();
  await raises(1045, connect({ password: 'wrong' }));
}

run(setup, values, prepared, transactions, pool, streams, secure);
