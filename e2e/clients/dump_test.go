//go:build clients

package clients

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/triremedb/trireme/e2e/servers"
)

// side is a server as MariaDB's tools reach it.
type side struct {
	name string
	db   *sql.DB
	args []string
}

// startMariaDB needs Debian's package mariadb-server.
func startMariaDB(t *testing.T) side {
	t.Helper()
	m := servers.TestMariaDB(t)
	return side{"MariaDB", servers.Open(t, m.DSN("", nil)), []string{"--no-defaults", "--socket=" + m.Socket, "--user=root"}}
}

func tool(t *testing.T, stdin string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, said.String())
	}
	return string(out)
}

func (s side) load(t *testing.T, schema, script string) {
	t.Helper()
	servers.Run(t, s.db, "CREATE DATABASE "+schema+" CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
	t.Logf("into %s, schema %s", s.name, schema)
	tool(t, script, "mariadb", append(s.args, "--default-character-set=utf8mb4", schema)...)
}

func (s side) dump(t *testing.T, schema string, more ...string) string {
	t.Helper()
	return tool(t, "", "mariadb-dump", append(append(s.args, "--default-character-set=utf8mb4"), append(more, schema)...)...)
}

// contents is what every table and view holds, keys and constraints by their columns.
func (s side) contents(t *testing.T, schema string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(servers.Text(t, s.db, "SHOW FULL TABLES FROM "+schema)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all["kind of "+name] = kind
		all["rows of "+name] = servers.Text(t, s.db, fmt.Sprintf("SELECT * FROM %s.%s ORDER BY 1", schema, name))
		all["columns of "+name] = servers.Text(t, s.db, "SELECT column_name, data_type, is_nullable, character_maximum_length, numeric_scale, datetime_precision, "+
			"character_set_name, column_comment FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position", schema, name)
		all["keys of "+name] = servers.Text(t, s.db, "SELECT index_name, non_unique, column_name, sub_part FROM information_schema.statistics "+
			"WHERE table_schema = ? AND table_name = ? ORDER BY index_name, seq_in_index", schema, name)
	}
	all["foreign keys"] = servers.Text(t, s.db, "SELECT constraint_name, table_name, referenced_table_name, delete_rule FROM information_schema.referential_constraints "+
		"WHERE constraint_schema = ? ORDER BY 1", schema)
	return all
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for k, w := range want {
		if got[k] != w {
			t.Errorf("%s: %s:\n%.1200s\nbut was:\n%.1200s", what, k, got[k], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d entries, not %d", what, len(got), len(want))
	}
}

// TestDump takes a schema from MariaDB to here, from here to another schema, and back.
func TestDump(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/everything.sql")
	if err != nil {
		t.Fatal(err)
	}
	node := serve(t, 1).Nodes[0]
	us := side{"us", servers.Open(t, node.DSN("", nil)), []string{"--no-defaults", "--host=127.0.0.1", fmt.Sprint("--port=", node.Port), "--user=root", "--password=" + servers.Password}}
	maria := startMariaDB(t)
	maria.load(t, "source", string(script))
	want := maria.contents(t, "source")

	// The definer of the views.
	servers.Run(t, us.db, "CREATE USER root@localhost IDENTIFIED BY 'it''s \\\\ pass'", "GRANT ALL ON *.* TO root@localhost")
	us.load(t, "taken", maria.dump(t, "source", "--single-transaction"))
	same(t, "from MariaDB", us.contents(t, "taken"), want)
	us.load(t, "again", us.dump(t, "taken", "--single-transaction", "--routines", "--triggers", "--hex-blob"))
	same(t, "from here to here", us.contents(t, "again"), us.contents(t, "taken"))
	maria.load(t, "back", us.dump(t, "taken", "--lock-tables"))
	same(t, "back to MariaDB", maria.contents(t, "back"), want)
	if got, want := us.dump(t, "again", "--skip-comments", "--no-create-info"), us.dump(t, "taken", "--skip-comments", "--no-create-info"); got != want {
		t.Error("two dumps differ")
	}
	if got := tool(t, "SELECT 1 AS a\\G\nSTATUS\nUSE taken\nSELECT COUNT(*) FROM made;", "mariadb", us.args...); !strings.Contains(got, "a: 1") || !strings.Contains(got, "Server version:") {
		t.Errorf("the command line says\n%s", got)
	}
}
