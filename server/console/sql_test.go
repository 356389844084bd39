package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestReadOnly: a statement that is not allowed to write cannot, however it tries.
func TestReadOnly(t *testing.T) {
	n := alone(t)
	u := as(t, n, "root", "secret")
	u.must("CREATE DATABASE d", "CREATE TABLE d.a (id INT PRIMARY KEY, v INT)", "INSERT INTO d.a VALUES (1, 1)")
	for _, text := range []string{
		"INSERT INTO d.a VALUES (2, 2)", "UPDATE d.a SET v = 2", "DELETE FROM d.a", "REPLACE INTO d.a VALUES (1, 3)", "TRUNCATE TABLE d.a", "DROP TABLE d.a",
		"CREATE TABLE d.b (id INT)", "ALTER TABLE d.a ADD COLUMN w INT", "CREATE USER x", "GRANT ALL ON *.* TO root@'%'", "SELECT * FROM d.a FOR UPDATE",
		"SET SESSION TRANSACTION READ WRITE; INSERT INTO d.a VALUES (2, 2)", "COMMIT; DELETE FROM d.a", "SET autocommit = 0; DELETE FROM d.a; COMMIT",
		"START TRANSACTION READ WRITE; DELETE FROM d.a; COMMIT", "SET @@session.transaction_read_only = 0; DROP DATABASE d",
		"BEGIN; SELECT 1; ROLLBACK; /* */ DELETE FROM d.a", "PREPARE s FROM 'DELETE FROM d.a'; EXECUTE s",
		// What is everybody's: settings, and sessions.
		"SET GLOBAL max_connections = 7", "SELECT 1; SET @a = 1, @@global.max_connections = 7", "SET PERSIST max_connections = 7", "SET SESSION sql_mode = '', GLOBAL max_connections = 7",
		"SET GLOBAL TRANSACTION READ ONLY", "ALTER INSTANCE RELOAD TLS", "SET PASSWORD = 'x'", "KILL 4711", "KILL QUERY CONNECTION_ID()", "FLUSH USER_RESOURCES", "flush privileges", "ANALYZE TABLE d.a", "OPTIMIZE TABLE d.a", "/*!50000 SET GLOBAL max_connections = 7 */",
		"PREPARE s FROM 'SET GLOBAL max_connections = 7'; EXECUTE s", "SET @a = 'SET GLOBAL max_connections = 7'; PREPARE s FROM @a; EXECUTE s",
		"SELECT COUNT (*) FROM d.a; SET GLOBAL max_connections = 7", // there are two statements with IGNORE_SPACE
	} {
		if a := u.run(text, nil); a.Error == nil || a.Error.Number != 1290 && a.Error.Number != 1792 {
			t.Errorf("%s: %+v", text, a.Error)
		}
	}
	if a := u.run("SELECT @@global.max_connections <> 7, @@global.transaction_read_only = 0", nil); a.Error != nil || *a.Results[0].Rows[0][0] != "1" || *a.Results[0].Rows[0][1] != "1" {
		t.Errorf("a global setting has changed: %+v", a)
	}
	for _, text := range []string{"SET sql_mode = 'ANSI'; SELECT 'SET GLOBAL max_connections = 7'", "SET @a = 1; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"PREPARE s FROM 'SELECT ? /* SET GLOBAL */'; SET @x = 1; EXECUTE s USING @x", "SHOW GLOBAL VARIABLES LIKE 'max_connections'"} {
		if a := u.run(text, nil); a.Error != nil {
			t.Errorf("%s: %+v", text, a.Error)
		}
	}
	if a := u.run("SELECT COUNT(*), MAX(v), (SELECT COUNT(*) FROM mysql.user) FROM d.a", nil); a.Error != nil || *a.Results[0].Rows[0][0] != "1" || *a.Results[0].Rows[0][1] != "1" {
		t.Errorf("the table has changed: %+v", a)
	}
	if a := u.run("BEGIN; INSERT INTO d.a VALUES (7, 7)", writing); a.Error != nil || !a.RolledBack {
		t.Errorf("an open transaction: %+v", a)
	}
	if a := u.run("INSERT INTO d.a VALUES (8, 8), (9, 9)", writing); a.Error != nil || a.Results[0].Affected != 2 {
		t.Errorf("a write that is allowed: %+v", a)
	}
	if a := u.run("SELECT id FROM d.a ORDER BY id", nil); len(a.Results) != 1 || a.Results[0].Count != 3 {
		t.Errorf("rows: %+v", a)
	}
}

// TestBounds: rows, bytes, time, requests.
func TestBounds(t *testing.T) {
	n := alone(t)
	u := as(t, n, "root", "secret")
	const many = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 900) SELECT n, REPEAT('x', 6000) FROM r"
	if a := u.run(many, map[string]any{"rows": 10}); a.Error != nil || !a.Full || !a.Results[0].More || a.Results[0].Count != 10 || len(a.Results[0].Rows) != 10 {
		t.Errorf("10 rows: %+v", a.Error)
	}
	if r := u.post("sql/run", map[string]any{"text": many}); len(r.body) > 5<<20 || !strings.Contains(string(r.body), `"more":true`) {
		t.Errorf("an answer of %d bytes", len(r.body))
	}
	if a := u.run("SELECT REPEAT('é', 100000), 'b'", nil); a.Error != nil || len(a.Results[0].Cut) != 1 || a.Results[0].Cut[0].Bytes != 200000 ||
		strings.Trim(*a.Results[0].Rows[0][0], "é") != "" || *a.Results[0].Rows[0][1] != "b" {
		t.Errorf("a long value: %+v", a.Error)
	}
	// A row that is larger than a result may be: all of its values are there, each cut.
	u.must("CREATE DATABASE d")
	for _, long := range []string{"REPEAT('x', 70000)", "REPEAT(CHAR(1 USING utf8mb4), 70000)", "REPEAT(UNHEX('FF'), 70000)"} {
		var values, columns []string
		for i := range 90 {
			values, columns = append(values, long), append(columns, fmt.Sprintf("c%d LONGBLOB", i))
		}
		if a := u.run("SELECT "+strings.Join(values, ", "), nil); a.Error != nil || a.Full || len(a.Results) != 1 || a.Results[0].Count != 1 || len(a.Results[0].Rows[0]) != 90 || len(a.Results[0].Cut) != 90 {
			t.Errorf("a large row of %s: %+v", long, a.Error)
		}
		u.must("CREATE TABLE d.wide (id INT PRIMARY KEY, "+strings.Join(columns, ", ")+")", "INSERT INTO d.wide VALUES (1, "+strings.Join(values, ", ")+"), (2, "+strings.Join(values, ", ")+")")
		var page struct {
			Rows [][]*string
			Next []string
		}
		if u.post("browse/rows", map[string]any{"schema": "d", "table": "wide"}).into(t, &page); len(page.Rows) == 0 || len(page.Rows) == 1 && len(page.Next) == 0 {
			t.Errorf("a page of large rows has %d, the next begins after %v", len(page.Rows), page.Next)
		}
		u.must("DROP TABLE d.wide")
	}
	if a := u.run(strings.Repeat("SELECT 1;", 100), nil); len(a.Results) != 64 || !a.Full {
		t.Errorf("%d results", len(a.Results))
	}
	if a := u.run("SELECT SLEEP(100)", map[string]any{"limit_ms": 50}); a.Error == nil || a.Error.Number != 3024 {
		t.Errorf("a time limit: %+v", a)
	}
	u.post("sql/run", map[string]any{"text": strings.Repeat(" ", 1<<20)}).wants(t, "a large request", 413, 1153)
	u.post("sql/run", map[string]any{"text": "SELECT 1", "rows": 1 << 30}).wants(t, "many rows", 400, 1210)
	u.post("sql/run", map[string]any{"text": "SELECT 1", "limit_ms": 1 << 40}).wants(t, "much time", 400, 1210)
	u.post("sql/run", "{").wants(t, "no JSON", 400, 1210)
	if a := u.run("SELECT nothing", nil); a.Error == nil || a.Error.Number != 1054 || a.Error.SQLState != "42S22" {
		t.Errorf("an error: %+v", a.Error)
	}
}

// TestCancel: a run can be canceled by the name that the page gave it, and few run at a time.
func TestCancel(t *testing.T) {
	n := alone(t)
	u := as(t, n, "root", "secret")
	ended := make(chan answer, 4)
	for i := range 4 {
		go func() {
			for { // what asks below whether there is a place takes one meanwhile
				if a := u.run("SELECT SLEEP(600)", map[string]any{"id": strconv.Itoa(i), "limit_ms": 600_000}); a.Error == nil || a.Error.Number != 1040 {
					ended <- a
					return
				}
			}
		}()
	}
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := u.post("sql/run", map[string]any{"text": "SELECT 1"})
		if r.status == http.StatusTooManyRequests && r.Error.Number == 1040 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("a fifth run: %s", r.body)
		}
	}
	for i := range 4 {
		var found struct{ Found bool }
		for until := time.Now().Add(patience); !found.Found; time.Sleep(10 * time.Millisecond) {
			if u.post("sql/cancel", map[string]string{"id": strconv.Itoa(i)}).into(t, &found); time.Now().After(until) {
				t.Fatalf("run %d is not found", i)
			}
		}
	}
	for range 4 {
		if a := <-ended; a.Error == nil || a.Error.Number != 1317 || a.Error.SQLState != "70100" {
			t.Errorf("a canceled run: %+v", a)
		}
	}
	u.post("sql/cancel", map[string]string{"id": "gone"}).wants(t, "canceling nothing", 200, 0)
}

// hostile are names and values that would do harm where they are not taken as they are.
var hostile = []string{"<script>alert(1)</script>", "`; DROP DATABASE d; --", `"'\`, "a%b_c", "</td><img src=x onerror=alert(1)>", "\u202eevil", "a.b c/d?#&"}

func TestHostile(t *testing.T) {
	n := alone(t)
	u := as(t, n, "root", "secret")
	u.must("CREATE DATABASE d")
	for _, name := range hostile {
		table := "`" + strings.ReplaceAll(name, "`", "``") + "`"
		u.must("CREATE TABLE d."+table+" (id INT PRIMARY KEY, "+table+" VARCHAR(100))", "INSERT INTO d."+table+" VALUES (1, '"+strings.ReplaceAll(strings.ReplaceAll(name, `\`, `\\`), "'", "''")+"')")
	}
	var list struct{ Rows [][]*string }
	r := u.post("browse/tables", map[string]any{"schema": "d"})
	r.into(t, &list)
	var names []string
	for _, row := range list.Rows {
		names = append(names, *row[0])
	}
	for _, name := range hostile {
		if !slices.Contains(names, name) {
			t.Errorf("%q is not in %q", name, names)
		}
		ask := map[string]any{"schema": "d", "table": name}
		var rows struct{ Rows [][]*string }
		u.post("browse/rows", ask).into(t, &rows)
		if len(rows.Rows) != 1 || *rows.Rows[0][1] != name {
			t.Errorf("rows of %q: %v", name, rows)
		}
		var about struct{ Columns, Create struct{ Rows [][]*string } }
		u.post("browse/table", ask).into(t, &about)
		if len(about.Columns.Rows) != 2 || *about.Columns.Rows[1][0] != name || len(about.Create.Rows) != 1 {
			t.Errorf("table %q: %+v", name, about)
		}
		u.post("browse/tables", map[string]any{"schema": name}).wants(t, "a schema "+name, 200, 0)
		u.post("browse/rows", map[string]any{"schema": name, "table": name}).wants(t, "no schema "+name, 404, 1049)
		if strings.Contains(string(r.body), "<script>") {
			t.Error("an answer has markup")
		}
	}
	if r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers: %v", r.header)
	}
}

// TestPages: page after page a table is read whole, each row once.
func TestPages(t *testing.T) {
	n := alone(t)
	u := as(t, n, "root", "secret")
	u.must("CREATE DATABASE d")
	const rows = 23
	for i, c := range []struct{ columns, key, value string }{
		{"a INT", "a", "n"}, {"a BIGINT UNSIGNED", "a", "18446744073709551000 + n"}, {"a BIGINT", "a", "n - 9"}, {"a DECIMAL(30,10)", "a", "n / 3 + 12345678901234567890"},
		{"a VARCHAR(20)", "a", "CONCAT(IF(n % 2, 'a', 'B'), n)"}, {"a VARCHAR(20) CHARACTER SET latin1", "a", "CONCAT('é', n)"},
		{"a VARBINARY(8)", "a", "UNHEX(LPAD(HEX(n * 37), 6, '0'))"}, {"a DATETIME(6)", "a", "TIMESTAMPADD(MICROSECOND, n, '2026-01-01')"},
		{"a INT, b VARCHAR(5)", "a, b", "n % 3, n"}, {"a VARCHAR(9), b INT, c DATE", "a, b, c", "n % 2, n % 4, DATE_ADD('2026-01-01', INTERVAL n DAY)"},
		{"a ENUM('z','y','x') , b INT", "a, b", "IF(n % 2, 'x', 'z'), n"}, {"a INT", "", "n"}, {"a VARCHAR(30)", "a DESC", "CONCAT('k', n)"},
	} {
		key := ""
		if c.key != "" {
			key = ", PRIMARY KEY (" + c.key + ")"
		}
		table := fmt.Sprintf("t%d", i)
		u.must("CREATE TABLE d."+table+" ("+c.columns+", note INT"+key+")", fmt.Sprintf("INSERT INTO d.%s WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < %d) SELECT %s, n FROM r", table, rows, c.value))
		var seen []int
		ask := map[string]any{"schema": "d", "table": table, "limit": 5}
		for {
			var page struct {
				Rows [][]*string
				Key  []string
				Next []string
				More bool
			}
			r := u.post("browse/rows", ask)
			r.into(t, &page)
			if r.status != http.StatusOK || len(page.Rows) == 0 || len(page.Rows) > 5 {
				t.Fatalf("%s: %s", c.columns, r.body)
			}
			for _, row := range page.Rows {
				note, _ := strconv.Atoi(*row[len(row)-1])
				seen = append(seen, note)
			}
			if !page.More {
				break
			}
			if page.Next != nil {
				ask["after"] = page.Next
			} else {
				ask["offset"] = len(seen)
			}
		}
		slices.Sort(seen)
		if len(seen) != rows || len(slices.Compact(seen)) != rows {
			b, _ := json.Marshal(seen)
			t.Errorf("%s: rows %s", c.columns, b)
		}
	}
	u.post("browse/rows", map[string]any{"schema": "d", "table": "t0", "after": []string{"1 OR 1=1"}}).wants(t, "no key", 400, 1210)
	u.post("browse/rows", map[string]any{"schema": "d", "table": "t0", "limit": 501}).wants(t, "a long page", 400, 1210)
}
