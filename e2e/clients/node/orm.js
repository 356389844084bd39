'use strict';
// Sequelize: a schema of its own, associations, queries, transactions.

const assert = require('assert');
const { Sequelize, DataTypes, Op } = require('sequelize');
const mysql = require('mysql2/promise');
const { where, raises, run } = require('./check');

const db = new Sequelize('sequelize', where.user, where.password, { host: where.host, port: where.port, dialect: 'mysql', logging: process.env.TRIREME_LOG ? console.log : false });

const Ship = db.define('Ship', {
  name: { type: DataTypes.STRING(60), allowNull: false },
  kind: { type: DataTypes.ENUM('trireme', 'bireme'), defaultValue: 'trireme' },
  length: DataTypes.DECIMAL(8, 3),
  draught: DataTypes.DOUBLE,
  afloat: { type: DataTypes.BOOLEAN, defaultValue: true },
  plan: DataTypes.JSON,
  image: DataTypes.BLOB('medium'),
  launched: DataTypes.DATEONLY,
  serial: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
}, { indexes: [{ fields: ['kind', 'name'] }, { name: 'name', fields: ['name'], unique: true }], paranoid: true });
const Sailor = db.define('Sailor', { name: DataTypes.STRING, age: DataTypes.INTEGER.UNSIGNED }, { underscored: true });
const Port = db.define('Port', { name: { type: DataTypes.STRING(30), primaryKey: true } }, { timestamps: false });
Ship.hasMany(Sailor, { foreignKey: { name: 'shipId', allowNull: false }, onDelete: 'CASCADE' });
Sailor.belongsTo(Ship, { foreignKey: 'shipId' });
Ship.belongsToMany(Port, { through: 'Visits' });
Port.belongsToMany(Ship, { through: 'Visits' });

async function creates() {
  const c = await mysql.createConnection(where);
  await c.query('DROP DATABASE IF EXISTS sequelize');
  await c.query('CREATE DATABASE sequelize');
  await c.end();
  await db.authenticate();
  await db.sync();
  await db.sync({ force: true });
  await db.sync({ alter: true });
}

async function inserts() {
  await Port.bulkCreate(['Piraeus', 'Delos', 'Samos'].map((name) => ({ name })));
  for (let i = 0; i < 4; i++) {
    const ship = await Ship.create({
      name: `ship ${i}`, kind: i % 2 ? 'bireme' : 'trireme', length: `3${i}.125`, draught: 0.1 * i, plan: { oars: [i, 'ż'], crew: i },
      image: Buffer.from([i, 0, 255]), launched: `2024-02-2${i}`, Sailors: [1, 2, 3].map((k) => ({ name: `s${k}`, age: 20 * k })),
    }, { include: Sailor });
    await ship.addPorts(['Piraeus', 'Delos'].slice(0, i));
  }
  await raises(1062, Ship.create({ name: 'SHIP 1' }));
  await raises(1452, Sailor.create({ name: 'x', shipId: 99 }));
}

async function queries() {
  const ship = await Ship.findOne({ where: { name: 'ship 2' }, include: [Sailor, Port], order: [[Sailor, 'age', 'ASC']] });
  assert.deepStrictEqual([ship.kind, ship.length, ship.draught, ship.afloat, ship.plan, ship.image, ship.launched, ship.serial.length],
    ['trireme', '32.125', 0.2, true, { oars: [2, 'ż'], crew: 2 }, Buffer.from([2, 0, 255]), '2024-02-22', 36]);
  assert.deepStrictEqual([ship.Sailors.map((s) => s.age), ship.Ports.map((p) => p.name).sort()], [[20, 40, 60], ['Delos', 'Piraeus']]);
  const { rows, count } = await Ship.findAndCountAll({
    where: { [Op.or]: [{ name: { [Op.like]: '%3' } }, { length: { [Op.between]: [30, 32] } }] },
    include: [{ model: Sailor, where: { age: { [Op.gt]: 30 } } }], distinct: true, limit: 2, offset: 1, order: [['name', 'DESC']],
  });
  assert.deepStrictEqual([count, rows.map((r) => [r.name, r.Sailors.length])], [3, [['ship 1', 2], ['ship 0', 2]]]);
  const sums = await Sailor.findAll({
    attributes: ['shipId', [db.fn('SUM', db.col('age')), 'total']], group: ['shipId'], having: db.where(db.fn('COUNT', '*'), Op.gt, 2), raw: true, order: ['shipId'],
  });
  assert.deepStrictEqual(sums.map((s) => s.total), ['120', '120', '120', '120']);
  assert.strictEqual(await Ship.count({ where: { 'plan.crew': 3 } }), 1);
  assert.strictEqual(await Sailor.max('age'), 60);
  const raw = await db.query('SELECT name FROM Ships WHERE kind = :kind AND id IN (SELECT ship_id FROM sailors WHERE age > :age) ORDER BY 1', {
    replacements: { kind: 'bireme', age: 50 }, type: db.QueryTypes.SELECT,
  });
  assert.deepStrictEqual(raw, [{ name: 'ship 1' }, { name: 'ship 3' }]);
}

async function updates() {
  const [n] = await Sailor.update({ age: db.literal('age + 1') }, { where: { age: 20 } });
  assert.strictEqual(n, 4);
  await Ship.upsert({ name: 'ship 0', kind: 'bireme' });
  assert.strictEqual((await Ship.findOne({ where: { name: 'ship 0' } })).kind, 'bireme');
  const [, made] = await Port.findOrCreate({ where: { name: 'Samos' } });
  assert.strictEqual(made, false);
  await assert.rejects(db.transaction(async (t) => {
    const s = await Ship.findByPk(1, { transaction: t, lock: t.LOCK.UPDATE });
    await s.update({ name: 'lost' }, { transaction: t });
    throw new Error('no');
  }), /no/);
  assert.strictEqual(await Ship.count({ where: { name: 'lost' } }), 0);
  await db.transaction({ isolationLevel: Sequelize.Transaction.ISOLATION_LEVELS.READ_COMMITTED }, async (t) => {
    await Sailor.increment('age', { by: 10, where: { name: 's3' }, transaction: t });
  });
  assert.strictEqual(await Sailor.max('age'), 70);
  await Ship.destroy({ where: { name: 'ship 1' } });
  assert.strictEqual(await Ship.count(), 3);
  await Ship.destroy({ where: { name: 'ship 1' }, force: true });
  assert.strictEqual(await Sailor.count(), 9);
}

async function describes() {
  const q = db.getQueryInterface();
  const ships = await q.describeTable('Ships');
  assert.deepStrictEqual([ships.id.primaryKey, ships.id.autoIncrement, ships.name.type, ships.name.allowNull, ships.kind.type, ships.kind.defaultValue, ships.length.type],
    [true, true, 'VARCHAR(60)', false, "ENUM('trireme','bireme')", 'trireme', 'DECIMAL(8,3)']);
  assert.deepStrictEqual((await q.showIndex('Ships')).map((i) => [i.name, i.unique, i.fields.map((f) => f.attribute)]),
    [['PRIMARY', true, ['id']], ['name', true, ['name']], ['ships_kind_name', false, ['kind', 'name']]]);
  const keys = await q.getForeignKeyReferencesForTable('sailors');
  assert.deepStrictEqual(keys.map((k) => [k.columnName, k.referencedTableName, k.referencedColumnName]), [['ship_id', 'Ships', 'id']]);
  await q.addColumn('Ports', 'depth', { type: DataTypes.INTEGER, defaultValue: 3 });
  await q.renameColumn('Ports', 'depth', 'deep');
  await q.addIndex('Ports', ['deep']);
  await q.removeColumn('Ports', 'deep');
  assert.deepStrictEqual(Object.keys(await q.describeTable('Ports')), ['name']);
}

async function drops() {
  await db.drop();
  assert.deepStrictEqual(await db.getQueryInterface().showAllTables(), []);
  await db.close();
}

run(creates, inserts, queries, updates, describes, drops);
