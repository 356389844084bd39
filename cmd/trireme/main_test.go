package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/internal/trace"
)

// quiet runs the program with its output thrown away, and returns what it wrote.
func quiet(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	stdout, stderr := os.Stdout, os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout, os.Stderr = w, w
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		text <- string(b)
	}()
	code = run(args)
	_ = w.Close()
	return code, <-text
}

func TestExitCodes(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	empty := t.TempDir()
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "Usage: trireme"},
		{"help", 0, "Usage: trireme"},
		{"--help", 0, "demo"},
		{"version", 0, "trireme 0."},
		{"--version", 0, "trireme 0."},
		{"sevrer", 2, "no subcommand"},
		{"server --help", 0, "--innodb-buffer-pool-size"},
		{"server --print-config --port=7", 0, "port = 7  # from --port"},
		{"server --prot=7", 2, "is port meant?"},
		{"server --sql-mode=nonsense", 2, "sql_mode"},
		{"server --print-config --sql-mode=ANSI", 0, "sql_mode = ANSI"},
		{"demo --nodes=0", 2, "1 to 9"},
		{"demo --nodes=3 stray", 2, "stray"},
		{"demo --help", 0, "-mysql-port"},
		{"sql --tls=maybe", 2, "preferred"},
		{"sql --ssl-mode=DISABLED --ssl-cert=x --ssl-key=y", 2, "cannot be switched off"},
		{"sql --ssl-cert=/no/such --ssl-key=/no/such --password x", 1, "no such file"},
		{"sql a b", 2, "one schema"},
		{"sql --port 1 --password x -e SELECT", 1, "refused"},
		{"status --http 127.0.0.1:1", 1, "refused"},
		{"status x", 2, "unexpected"},
		{"binlog", 2, "what to do"},
		{"binlog eat", 2, "no \"eat\""},
		{"binlog list stray", 2, "no file of a log"},
		{"binlog --datadir=" + empty + " list", 1, "not the directory of a node"},
		{"binlog list --datadir=" + empty, 1, "not the directory of a node"},
		{"binlog list 1 --datadir " + empty + " 2", 1, "not the directory of a node"},
		{"binlog list -- --datadir", 2, "no file of a log"},
		{"sql a --port 1 b", 2, "one schema"},
		{"check --datadir=" + empty, 1, "not the directory of a node"},
		{"check --datadir=/no/such", 1, "no such file"},
		{"check --nonsense", 2, "not defined"},
	} {
		code, out := quiet(t, strings.Fields(tc.args)...)
		if code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("trireme %s: %d, not %d: %s", tc.args, code, tc.code, out)
		}
	}
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"a; b;c":                           {"a", "b", "|c"},
		"select 'a;b', \"c;\", `d;`;":      {"select 'a;b', \"c;\", `d;`"},
		`select 'it''s;', 'a\';', "\\";x`:  {`select 'it''s;', 'a\';', "\\"`, "|x"},
		"a -- no; \n b; # c;\n;":           {"a -- no; \n b"},
		"a /* ; */ b;/* only */;/*! c */;": {"a /* ; */ b", "/*! c */"},
		"a--b;":                            {"a--b"},
		"select 1\\G select 2\\g":          {"select 1+G", "select 2"},
		" ;;  ":                            nil,
		"'open;":                           {"|'open;"},
	} {
		var got []string
		var s splitter
		add := func(sts []statement) {
			for _, st := range sts {
				if st.vertical {
					st.text += "+G"
				}
				got = append(got, st.text)
			}
		}
		add(s.add(text))
		if st, ok := s.rest(); ok {
			got = append(got, "|"+st.text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func TestSinks(t *testing.T) {
	var b bytes.Buffer
	for _, tc := range []struct {
		s        shell
		vertical bool
		want     string
	}{
		{shell{out: &b, table: true}, false, "+----+------+\n| id | name |\n+----+------+\n| 1  | ä    |\n| 2  | a\tb  |\n+----+------+\n"},
		{shell{out: &b}, false, "id\tname\n1\tä\n2\ta\\tb\n"},
		{shell{out: &b}, true, "*************************** 1. row ***************************\n  id: 1\nname: ä\n" +
			"*************************** 2. row ***************************\n  id: 2\nname: a\tb\n"},
	} {
		b.Reset()
		sink := tc.s.sink([]string{"id", "name"}, tc.vertical)
		for _, row := range [][]string{{"1", "ä"}, {"2", "a\tb"}} {
			if err := sink.row(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := sink.end(); err != nil || b.String() != tc.want {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
}

func TestHistory(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	h := openHistory()
	for _, line := range []string{"a", "a", " ", "create user x identified by 'secret'", "b"} {
		h.Add(line)
	}
	h.save()
	h = openHistory()
	if h.Len() != 2 || h.At(0) != "b" || h.At(1) != "a" {
		t.Error(h.lines)
	}
}

func TestStatus(t *testing.T) {
	body := `{"version":"0.1.0","cluster":"c","group":"g","member":1,"status":{},"members":[
		{"id":1,"addr":"a:1","state":"ONLINE","mysql":"a:3306","status":{"id":1,"writable":true,"number":7}},
		{"id":2,"addr":"b:1","state":"UNREACHABLE","status":{"id":2,"lag":-1,"error":"no answer"}}]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }))
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	code, out := quiet(t, "status", "--http", "127.0.0.1:1,"+addr)
	if code != 1 || !strings.Contains(out, "leader") || !strings.Contains(out, "no answer") || !strings.Contains(out, "a:3306") {
		t.Error(code, out)
	}
}

// TestBinlog looks into a log with nothing but an empty transaction; others are tested with
// a whole node.
func TestBinlog(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data.3")
	l, err := log.Create(log.Options{FS: file.OS(data), Env: env.Real(), Group: [16]byte{7}, Preallocate: 1 << 20}, log.Start{})
	if err != nil {
		t.Fatal(err)
	}
	traced := entry.Txn{Number: 1, Time: 1, Flags: entry.TraceFlag, Trace: trace.Context{Trace: [16]byte{15: 5}, Span: [8]byte{7: 6}}}
	body := entry.AppendTxn(make([]byte, entry.EnvelopeSize), &traced, 1)
	e := entry.Envelope{Kind: entry.Transactions, RawLength: uint32(len(body) - entry.EnvelopeSize), Term: 1, First: 1, Count: 1, Time: 1}
	e.Put(body)
	if err := l.Append([]log.Entry{{Index: 1, Term: 1}, {Index: 2, Term: 1}, {Index: 3, Term: 1, Data: body}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ do, want string }{{"list", "1-3"}, {"list", "FORMAT"}, {"verify", "good, 3 entries"},
		{"print", "entry 2, term 1: empty"}, {"print", "after 0, trace 00-00000000000000000000000000000005-0000000000000006-01"}} {
		code, out := quiet(t, "binlog", "--datadir", dir, tc.do)
		if code != 0 || !strings.Contains(out, tc.want) {
			t.Error(tc.do, code, out)
		}
	}
	out := filepath.Join(t.TempDir(), "new", "out")
	if code, text := quiet(t, "binlog", "--datadir", dir, "--out", out, "export"); code != 0 {
		t.Error(text)
	}
	for name, want := range map[string]os.FileMode{filepath.Dir(out): 0o700, out: 0o700, filepath.Join(out, "binlog.000001"): 0o600} {
		if i, err := os.Stat(name); err != nil || i.Mode().Perm() != want {
			t.Errorf("%s is for others, too: %v, %v", name, i.Mode(), err)
		}
	}
	b, err := os.ReadFile(filepath.Join(out, "binlog.000001"))
	if err != nil || !bytes.HasPrefix(b, []byte("\xfebin")) {
		t.Errorf("%q %v", b, err)
	}
	if code, _ := quiet(t, "binlog", "--datadir", dir, "--out", out, "export"); code != 1 {
		t.Error("an existing file was written over")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "#tmp*")); len(names) != 0 {
		t.Error("a copy was left behind", names)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("select 'a' /* b */; -- c\n`d`\\G")
	f.Fuzz(func(t *testing.T, text string) {
		var s splitter
		s.add(text)
		s.rest()
	})
}
