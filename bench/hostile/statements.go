package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// bad are the ways of taking what others need. Each returns statements for one connection. The account's schema is the default one; it may
// read shop.
var bad = []func(r *rand.Rand) []string{
	// Memory.
	one("SELECT MAX(LENGTH(CONCAT(REPEAT(pad, 120000), 'a'))) FROM (SELECT * FROM shop.item LIMIT 60) t"),
	one("SELECT MAX(LENGTH(WEIGHT_STRING(REPEAT(pad, 200000)))) FROM (SELECT * FROM shop.item LIMIT 40) t"),
	one("SELECT a.id, b.id, COUNT(*), MAX(CONCAT(a.pad, b.pad)) FROM shop.item a, shop.item b GROUP BY a.id, b.id LIMIT 1"),
	one("SELECT COUNT(DISTINCT a.id, b.id, a.pad) FROM shop.item a, shop.item b"),
	one("SELECT LENGTH(JSON_ARRAYAGG(JSON_OBJECT('a', pad, 'b', JSON_ARRAY(id, n, pad)))) FROM shop.item"),
	func(r *rand.Rand) []string {
		return []string{"SET SESSION group_concat_max_len = 4294967295", "SELECT LENGTH(GROUP_CONCAT(REPEAT(pad, 500))) FROM shop.item"}
	},
	func(r *rand.Rand) []string {
		return []string{"SET SESSION cte_max_recursion_depth = 100000000",
			"WITH RECURSIVE x (i, s) AS (SELECT 1, REPEAT('x', 5000) UNION ALL SELECT i + 1, s FROM x WHERE i < 100000000) SELECT COUNT(DISTINCT i, s) FROM x"}
	},
	func(r *rand.Rand) []string { // variables
		var list []string
		for i := range 20 {
			list = append(list, fmt.Sprintf("SET @v%d = REPEAT('x', 60000000)", i))
		}
		return append(list, "SELECT LENGTH(CONCAT(@v0, @v1, @v2))")
	},
	func(r *rand.Rand) []string { // expressions named twice, each in the next
		var b strings.Builder
		b.WriteString("WITH c0 AS (SELECT id, pad FROM shop.item)")
		for i := range 18 {
			fmt.Fprintf(&b, ", c%d AS (SELECT a.id, b.pad FROM c%d a JOIN c%d b ON a.id = b.id)", i+1, i, i)
		}
		return []string{b.String() + " SELECT COUNT(*) FROM c18"}
	},
	func(r *rand.Rand) []string { // long lists
		var b strings.Builder
		fmt.Fprintf(&b, "SELECT COUNT(*) FROM shop.item WHERE id IN (%d", r.IntN(1<<30))
		for range 100_000 {
			fmt.Fprintf(&b, ",%d", r.IntN(1<<30))
		}
		return []string{b.String() + ")"}
	},
	func(r *rand.Rand) []string { // deep and long texts
		return []string{"SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), "SELECT 1" + strings.Repeat("+1", 50_000),
			"SELECT COUNT(*) FROM shop.item WHERE " + strings.Repeat("id = 1 OR ", 20_000) + "id = 2"}
	},
	func(r *rand.Rand) []string { // prepared statements
		var list []string
		for i := range 300 {
			list = append(list, fmt.Sprintf("PREPARE p%d FROM 'SELECT %s'", i, strings.Repeat("CONCAT(?, ", 100)+"1"+strings.Repeat(")", 100)))
		}
		return list
	},
	// Time.
	one("SELECT COUNT(*) FROM shop.item a, shop.item b, shop.item c WHERE a.n + b.n = c.n * 2"),
	one("SELECT BENCHMARK(1000000000, SHA2('a', 512))"),
	one("SELECT COUNT(*) FROM shop.item WHERE REPEAT(pad, 500) REGEXP '(x+x+)+y'"),
	one("SELECT id FROM shop.item ORDER BY RPAD('x', id * 100, 'a') LIMIT 5"),
	one("SELECT LENGTH(UNCOMPRESS(COMPRESS(REPEAT('a', 60000000)))), SHA2(REPEAT('a', 60000000), 512), MD5(REPEAT('b', 60000000))"),
	one("SELECT SLEEP(20)"),
	// The disk.
	one("SELECT a.pad, b.pad FROM shop.item a, shop.item b ORDER BY CONCAT(b.pad, a.id), a.n LIMIT 1000000, 1"),
	one("SELECT DISTINCT CONCAT(a.pad, b.id, a.id) FROM shop.item a, shop.item b LIMIT 1000000, 1"),
	func(r *rand.Rand) []string { // changes that are taken back
		name := fmt.Sprintf("t%d", r.IntN(1<<30))
		return []string{"CREATE TABLE " + name + " (id INT PRIMARY KEY, n INT, pad CHAR(200), KEY (n), KEY (pad))", "BEGIN",
			"INSERT INTO " + name + " SELECT * FROM shop.item", "UPDATE " + name + " SET n = n + 1, pad = REVERSE(CONCAT(n, pad))", "ROLLBACK", "DROP TABLE " + name}
	},
	func(r *rand.Rand) []string { // and that are committed
		name := fmt.Sprintf("t%d", r.IntN(1<<30))
		return []string{"CREATE TABLE " + name + " SELECT * FROM shop.item", "UPDATE " + name + " SET pad = UUID()", "DELETE FROM " + name + " WHERE id % 2 = 0", "DROP TABLE " + name}
	},
	// Locks, definitions, old snapshots.
	func(r *rand.Rand) []string {
		return []string{"START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM shop.item", "SELECT COUNT(*) FROM shop.sale", "SELECT SLEEP(15)", "SELECT * FROM shop.item FOR UPDATE", "COMMIT"}
	},
	func(r *rand.Rand) []string {
		name := fmt.Sprintf("t%d", r.IntN(1<<30))
		columns := make([]string, 500)
		for i := range columns {
			columns[i] = fmt.Sprintf("c%d INT", i)
		}
		list := []string{"CREATE TABLE " + name + " (" + strings.Join(columns, ", ") + ")"}
		for i := range 20 {
			list = append(list, fmt.Sprintf("ALTER TABLE %s ADD KEY (c%d, c%d), MODIFY c%d BIGINT", name, i, i+1, i))
		}
		return append(list, "LOCK TABLES "+name+" WRITE", "UNLOCK TABLES", "DROP TABLE "+name)
	},
	one("SELECT GET_LOCK(UUID(), 10), GET_LOCK('all of us', 10)"),
	one("ALTER TABLE shop.item ADD COLUMN mine INT"),
	func(r *rand.Rand) []string {
		return []string{fmt.Sprintf("KILL %d", r.IntN(10_000)), "SELECT * FROM information_schema.columns", "SELECT * FROM performance_schema.metadata_locks", "SHOW PROCESSLIST", "FLUSH TABLES WITH READ LOCK",
			"SET SESSION trireme_statement_memory = 1099511627776", "SET SESSION lock_wait_timeout = 31536000", "SET GLOBAL max_connections = 1"}
	},
}

// one is a single statement.
func one(text string) func(*rand.Rand) []string {
	return func(*rand.Rand) []string { return []string{text} }
}
