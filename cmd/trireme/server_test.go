package main

import (
	"net"
	"os"
	"strings"
	"testing"
)

// TestCheckConfig: what a start refuses is refused with the same words, and nothing is opened.
func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 0, "the configuration is right"},
		{"--port=" + taken, 0, "is right"}, // somebody else's: no port is opened
		{"--datadir=/proc/nowhere", 0, "is right"},
		{"--bogus-setting=1", 2, "there is no setting or variable bogus_setting"},
		{"--max-connections=abc", 2, `max_connections cannot be "abc"`},
		{"--innodb-buffer-pool-size=1G --memory-limit=1G", 2, "innodb_buffer_pool_size is 1G, but all memory"},
		{"--ssl-cert=/no/such --ssl-key=/no/key", 2, "/no/such: no such file"},
		{"--peer-tls-cert=/no/such --peer-tls-key=/no/key --peer-tls-ca=/no/ca", 2, "/no/such: no such file"},
		{"--caching-sha2-password-private-key-path=/no/such", 2, "/no/such"},
		{"--founders=a:1,b:1", 2, "how members prove who they are"},
		{"--founders=a,b --peer-allow-plaintext", 2, "discovery"},
		{"--http-port=3306", 2, "port and http_port are both 3306"},
		{"--trace-endpoint=x", 2, "trace_endpoint cannot be"},
		{"--audit-log=/no/such/file", 2, "audit_log"},
		{"--kubernetes-statefulset=db", 2, "no pod of db"},
		{"--heartbeat-interval=x --port=x", 2, "whole number"},
	} {
		if code, out := quiet(t, append([]string{"server", "--check-config"}, strings.Fields(c.args)...)...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d\n%s", c.args, code, out)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
