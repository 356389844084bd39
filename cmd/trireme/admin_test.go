package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

func TestAdminMisuse(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "what to do is missing"},
		{"--help", 0, "members replace <id> <id>"},
		{"dance", 2, `no command "dance"`},
		{"members", 2, `no command "members"`},
		{"members add 1", 2, "members add <id> <host:port>"},
		{"status x", 2, "it is: trireme admin status"},
		{"status -force", 2, "status does not know -force"},
		{"status -o xml", 2, "table or json"},
		{"status -tls maybe", 2, "preferred"},
		{"status -ssl-mode MAYBE", 2, "VERIFY_IDENTITY"},
		{"status -ssl-mode REQUIRED -tls off", 2, "say the same"},
		{"status -ssl-cert x", 2, "belong together"},
		{"status -password p -ssl-ca /no/such", 1, "no such file"},
		{"watch -interval 1ms", 2, "100ms"},
		{"kill x -grpc 127.0.0.1:1 -password p", 1, "whole number"},
		{"status -grpc 127.0.0.1:1 -password p", 1, "grpc_port"},
		{"status -password-file /no/such", 1, "no such file"},
	} {
		code, out := quiet(t, append([]string{"admin"}, strings.Fields(tc.args)...)...)
		if code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("trireme admin %s: %d, not %d: %s", tc.args, code, tc.code, out)
		}
	}
}

// alone starts a node that is a group of its own, and says where its directory and the file of root's password are.
func alone(t *testing.T, settings ...string) (n *node.Node, dir, password string) {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	cfg, err := config.Load(config.Sources{Args: append([]string{"--datadir=" + filepath.Join(dir, "data"), "--bind-address=127.0.0.1", "--port=0", "--read-only-port=-1",
		"--http-port=-1", "--grpc-port=0", "--report-host=127.0.0.1", fmt.Sprintf("--peer-port=%d", port), "--initial-root-password=secret", "--innodb-buffer-pool-size=16M"}, settings...)})
	if err != nil {
		t.Fatal(err)
	}
	if n, err = node.Open(cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	password = filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return n, dir, password
}

// TestAdminCommands runs every command against a node.
func TestAdminCommands(t *testing.T) {
	n, dir, password := alone(t)
	ask := func(args string) (int, string) {
		return quiet(t, append([]string{"admin", "--grpc", "127.0.0.1:1," + n.GRPCAddr(), "--password-file", password}, strings.Fields(args)...)...)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if code, out := ask("status"); code == 0 {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(out)
		}
	}
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"status", 0, "leader"},
		{"members add 1 nowhere", 1, "ERROR 1210 (HY000)"},
		{"members promote 77", 1, "there is no member 77"},
		{"members remove 77", 1, "there is no member 77"},
		{"members replace 77 78", 1, "there is no member 77"},
		{"transfer", 1, "add another member first"},
		{"drain", 1, "the whole group"},
		{"drain -undo", 0, "not drained any more"},
		{"settings", 0, "initial_root_password"},
		{"settings max_bin%", 0, "max_binlog_size"},
		{"settings -changed", 0, "--grpc_port"},
		{"settings set wait_timeout 99", 0, "set_global"},
		{"settings set nothing 1", 1, "there is no setting"},
		{"sessions", 0, "SESSION"},
		{"kill 4711", 1, "ERROR 1094"},
		{"kill -statement 4711", 1, "ERROR 1094"},
		{"transactions", 0, "ISOLATION"},
		{"large", 0, "APPLIER WAITS FOR"},
		{"large -limit 257", 1, "the most is 256"},
		{"locks", 0, "WAITING SESSION"},
		{"statements", 0, "SET GLOBAL `wait_timeout` = ?"},
		{"statements -order errors -limit 1", 0, "AVERAGE"},
		{"statements -order age", 1, "time, count"},
		{"tables mysql", 0, "mysql.user"},
		{"binlog list", 0, "binlog.000001"},
		{"binlog purge binlog.000001", 0, "0 files removed"},
		{"binlog purge binlog.000009", 1, "ERROR 1373"},
		{"backup " + filepath.Join(dir, "copy"), 0, "can be restored to"},
		{"backup " + filepath.Join(dir, "copy"), 1, "is not empty"},
		{"backup -rate 1 -o json " + filepath.Join(dir, "other"), 0, "snapshot_number"},
		{"backup -into " + filepath.Join(dir, "shelf") + " -keep 1", 0, "it is what was sent"},
		{"backup -into " + filepath.Join(dir, "shelf") + " -keep 1 -keep-days 0", 0, "removed"},
		{"backup -keep 1 " + filepath.Join(dir, "third"), 2, "go with --into"},
		{"backup -into " + filepath.Join(dir, "shelf") + " third", 2, "one of them"},
		{"backup -into " + filepath.Join(dir, "shelf") + " -keep 100000", 2, "the most"},
		{"backup", 2, "one of them"},
		{"status -user nobody", 1, "ERROR 1045"},
		{"status -tls required", 0, "leader"},
		{"status -tls verify", 1, "certificate"},
	} {
		if code, out := ask(tc.args); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("trireme admin %s: %d, not %d: %s", tc.args, code, tc.code, out)
		}
	}
	for _, c := range []string{"status", "settings", "sessions", "transactions", "large", "locks", "statements", "tables", "binlog list", "drain -undo"} {
		code, out := ask(c + " -o json")
		if code != 0 || !json.Valid([]byte(out)) {
			t.Errorf("trireme admin %s -o json: %d: %s", c, code, out)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, out := quiet(t, "completion", shell)
		if code != 0 {
			t.Errorf("%s: %d: %s", shell, code, out)
		}
		for _, word := range []string{"server", "admin", "transactions", "large", "promote", "purge", "password-file"} {
			if !strings.Contains(out, word) {
				t.Errorf("%s: no %s", shell, word)
			}
		}
	}
	if code, out := quiet(t, "completion", "tcsh"); code != 2 || !strings.Contains(out, "bash, zsh or fish") {
		t.Errorf("%d: %s", code, out)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return // nothing here completes
	}
	_, script := quiet(t, "completion", "bash")
	for words, want := range map[string]string{"tri ad": "admin", "trireme admin members pr": "promote", "trireme admin -o json --force bin": "binlog", "trireme admin status -pass": "-password -password-file"} {
		list := strings.Fields(words)
		text := fmt.Sprintf("%s\nCOMP_WORDS=(%s); COMP_CWORD=%d; _trireme; echo ${COMPREPLY[@]}", script, words, len(list)-1)
		out, err := exec.Command(bash, "-c", text).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %q %v", words, out, err)
		}
	}
}
