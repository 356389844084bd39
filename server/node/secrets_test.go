package node_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// heardLog keeps what several nodes log.
type heardLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *heardLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *heardLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestNoSecretIsLogged: of passwords, their hashes, what authenticates calls, and the values in
// statements nothing gets into the logs of any node, at any level, nor into the audit log.
func TestNoSecretIsLogged(t *testing.T) {
	var said heardLog
	audit := filepath.Join(t.TempDir(), "audit")
	const root, entry = "Root-Secret-0", "Entry-Secret-1"
	kept := t.TempDir()
	writeEntry(t, kept, "kept", `{"user": "kept", "grants": ["SELECT ON nowhere.t"]}`, entry)
	members := loggedGroup(t, &said, "--initial-root-password="+root, "--audit-log="+audit, "--users-dir="+kept)
	secrets := map[string]string{"root": root, "entry": entry}
	connect := func(addr, user, password, options string) *sql.DB {
		db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/?timeout=%v&readTimeout=%v&%s", user, password, addr, patience, patience, options))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	db := connect(members[0].MainAddr(), "root", root, "tls=skip-verify")
	eventually(t, "log in", db.Ping)
	execAll(t, db, "SET GLOBAL audit_log_events = 'LOGIN,ACCOUNT,ADMIN,DEFINITION,READ,WRITE'")
	eventually(t, "log in by an entry", connect(members[1].MainAddr(), "kept", entry, "tls=skip-verify").Ping)
	secret := func(what string) string {
		secrets[what] = "Secret-" + strings.ReplaceAll(what, " ", "-")
		return secrets[what]
	}
	// hear runs statements, well or with errors.
	hear := func(db *sql.DB, text string, args ...any) {
		if rows, err := db.Query(text, args...); err == nil {
			for rows.Next() {
			}
			_ = rows.Close()
		}
	}
	for _, plugin := range []string{"caching_sha2_password", "mysql_native_password"} {
		execAll(t, db, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED WITH %s BY '%s'", plugin[:6], plugin, secret(plugin)))
	}
	hashes := map[string]string{}
	stored, err := db.Query("SELECT User, HEX(authentication_string) FROM mysql.user WHERE authentication_string <> ''")
	if err != nil {
		t.Fatal(err)
	}
	for stored.Next() {
		var user, hash string
		if err := stored.Scan(&user, &hash); err != nil {
			t.Fatal(err)
		}
		plain, _ := hex.DecodeString(hash)
		hashes[user], hashes[user+" in hex"] = string(plain), hash
	}
	if err := stored.Close(); err != nil || len(hashes) < 8 {
		t.Fatal(err, hashes)
	}
	for _, text := range []string{
		"CREATE USER made IDENTIFIED BY '%s'", "ALTER USER made IDENTIFIED BY '%s'", "SET PASSWORD FOR made = '%s'", "CREATE USER made IDENTIFIED BY '%s'",
		"CREATE USER other IDENTIFIED BY '%s' GARBAGE", "ALTER USER nobody IDENTIFIED BY '%s'", "SET PASSWORD FOR nobody = '%s'", "SELECT '%s' FROM nowhere",
		"CREATE USER hashed IDENTIFIED WITH mysql_native_password AS '%s'", "SET @v = '%s'", "KILL '%s'", "SET GLOBAL init_connect = 'SELECT ''%s'''",
	} {
		hear(db, fmt.Sprintf(text, secret(fmt.Sprintf("statement %d", len(secrets)))))
	}
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (s VARCHAR(100) PRIMARY KEY, n INT CHECK (n > 0))")
	for range 2 { // the second time it is there
		hear(db, "INSERT INTO shop.t VALUES (?, 1)", secret("parameter"))
	}
	hear(db, "INSERT INTO shop.t VALUES (?, -1)", secret("refused parameter"))
	hear(db, "INSERT INTO shop.t (n) VALUES (?)", secret("parameter of another type"))
	for _, m := range members {
		for user, plugin := range map[string]string{"cachin": "caching_sha2_password", "mysql_": "mysql_native_password"} {
			for _, options := range []string{"tls=skip-verify", "tls=false&allowNativePasswords=true"} {
				if err := connect(m.MainAddr(), user, secrets[plugin], options).Ping(); err != nil {
					t.Errorf("%s, %s: %v", user, options, err)
				}
				if err := connect(m.MainAddr(), user, secret("wrong password"), options).Ping(); err == nil {
					t.Errorf("%s came in with a wrong password", user)
				}
			}
		}
		hear(connect(m.ReadAddr(), "root", root, "tls=skip-verify"), "INSERT INTO shop.t VALUES (?, 2)", secret("parameter of a reader"))
		programs := dial(t, m.GRPCAddr())
		for _, password := range []string{root, secret("wrong password of a program")} {
			for _, text := range []string{"SELECT ?", "INSERT INTO shop.t VALUES (?, 0)", "SELECT ? FROM nowhere", "SYNTAX ?"} {
				_, _ = programs.Execute(as("root", password), &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: text,
					Params: []*pb.SqlValue{{Kind: &pb.SqlValue_Text{Text: secret("argument of a program")}}}}})
			}
			for name, call := range calls(adminOf(t, m), signedIn("root", password)) {
				if password == root || name == "Status" || name == "SetSetting" { // who guesses is slowed down
					_ = call()
				}
			}
		}
		// A handshake that is nonsense, and one that is cut short.
		for _, junk := range []string{secret("bytes that are no handshake") + strings.Repeat("x", 100), ""} {
			if c, err := net.Dial("tcp", m.MainAddr()); err == nil {
				_, _ = io.WriteString(c, junk)
				_ = c.Close()
			}
		}
	}
	eventually(t, "handshakes that ended", func() error {
		if n := strings.Count(said.String(), "a connection ended in its handshake"); n < len(members) {
			return fmt.Errorf("%d at level debug", n)
		}
		return nil
	})
	for _, m := range members {
		m.stop()
	}
	lines, err := os.ReadFile(audit)
	if err != nil || !bytes.Contains(lines, []byte("SetSetting")) {
		t.Fatalf("%v in the audit log: %s", err, lines)
	}
	text := said.String() + string(lines)
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	lower := strings.ToLower(text)
	leaks := func(what, value string) {
		if i := strings.Index(lower, strings.ToLower(value)); i >= 0 {
			t.Errorf("%s is in a log: …%s…", what, text[max(0, i-200):min(len(text), i+200)])
		}
	}
	for what, hash := range hashes {
		quoted, _ := json.Marshal(hash)
		leaks("the stored hash of "+what, strings.Trim(string(quoted), `"`))
	}
	for what, s := range secrets {
		one, two := sha1.Sum([]byte(s)), sha256.Sum256([]byte(s))
		again := sha1.Sum(one[:])
		for form, value := range map[string]string{"plain": s, "hex": hex.EncodeToString([]byte(s)), "base64": base64.StdEncoding.EncodeToString([]byte(s)),
			"metadata": base64.StdEncoding.EncodeToString([]byte("root:" + s)), "SHA-1": hex.EncodeToString(one[:]), "SHA-1 twice": hex.EncodeToString(again[:]),
			"SHA-256": hex.EncodeToString(two[:])} {
			leaks(what+", "+form+",", value)
		}
	}
}

// loggedGroup starts three nodes that log everything as JSON.
func loggedGroup(t *testing.T, log io.Writer, settings ...string) []*member {
	t.Helper()
	var addrs []string
	for range 3 {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	}
	members := make([]*member, len(addrs))
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var starting sync.WaitGroup
	for i, addr := range addrs {
		all := append(args(t, t.TempDir(), addrs, addr), settings...)
		starting.Go(func() {
			cfg, err := config.Load(config.Sources{Args: all})
			if err != nil {
				t.Error(err)
				return
			}
			n, err := node.Open(cfg, logger)
			if err != nil {
				t.Error(err)
				return
			}
			members[i] = &member{n, all, t}
		})
	}
	starting.Wait()
	for _, m := range members {
		if m == nil {
			t.FailNow()
		}
		t.Cleanup(m.stop)
	}
	return members
}
