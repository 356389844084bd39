package kubectl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/internal/race"
)

// fakeCluster names the directory with the answers of the kubectl that this program is then.
const fakeCluster = "TRIREME_TEST_CLUSTER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(fakeCluster); dir != "" {
		os.Exit(fake(dir, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fake answers as kubectl, and adds what it was called with to calls.
func fake(dir string, args []string) int {
	in := ""
	if i := slices.Index(args, "-f"); i > 0 && args[i+1] == "-" {
		b, _ := io.ReadAll(os.Stdin)
		in = " <<" + string(b)
	}
	calls, err := os.OpenFile(os.Getenv(fakeCluster+"_CALLS"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(calls, "kubectl %s%s\n", strings.Join(args, " "), in)
	_ = calls.Close()
	args = slices.DeleteFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--namespace=") || strings.HasPrefix(a, "--context=")
	})
	switch args[0] {
	case "get":
		if b, err := os.ReadFile(filepath.Join(dir, args[1]+".json")); err == nil {
			fmt.Println(times.ReplaceAllStringFunc(string(b), func(text string) string {
				ago, _ := time.ParseDuration(strings.Trim(text, `"NOW-`))
				return `"` + time.Now().Add(-ago).UTC().Format(time.RFC3339) + `"`
			}))
			return 0
		}
		if args[1] == "--raw" || strings.Contains(args[1], ",") {
			fmt.Println("answer to", args[1])
			return 0
		}
		fmt.Fprintf(os.Stderr, "E1123 20:17:18.582182 of no interest\nError from server (NotFound): no %s\n", args[1])
		return 1
	case "exec":
		if slices.Contains(args, "--json") {
			fmt.Println(`{"member": 7}`)
			return 0
		}
		fmt.Println("inside:", strings.Join(args[slices.Index(args, "--")+1:], " "))
		if slices.Contains(args, "fail") {
			return 1
		}
		return 0
	case "logs":
		fmt.Println("a log with etcd_password = hush and \"token\": \"sh\\\"h\", and secret:x")
		return 0
	case "top":
		fmt.Fprintln(os.Stderr, "error: Metrics API not available")
		return 1
	}
	return 0
}

// times are those of objects: now, or so long ago.
var times = regexp.MustCompile(`"NOW(-[0-9a-z]+)?"`)

var stamps = regexp.MustCompile(`-[0-9]{8}-[0-9]{6}|-list-[0-9]{6}|[0-9]+s ago`)

// run does what the words say against a fake cluster, and returns what it said, and its calls.
func run(t *testing.T, cluster string, args []string) (said, calls string) {
	t.Helper()
	dir, err := filepath.Abs("testdata/cluster/" + cluster)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "calls")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakeCluster, dir)
	t.Setenv(fakeCluster+"_CALLS", file)
	defer func() { _ = os.Unsetenv(fakeCluster) }()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := Plugin{Kubectl: self, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
	err = p.Run(args)
	switch {
	case errors.Is(err, ErrUsage):
		said, _, _ = strings.Cut(out.String(), "\n\n")
		said += "\n(usage)\n"
	case err != nil:
		said = out.String() + "error: " + err.Error() + "\n"
	default:
		said = out.String()
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return stamps.ReplaceAllString(said, "(now)"), stamps.ReplaceAllString(string(b), "(now)")
}

// TestScripts runs commands against the clusters of testdata/cluster: what is said, and behind
// a line what kubectl was called for.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			said, calls := run(t, d.Cmd, strings.Fields(d.Input))
			return said + "-\n" + calls
		})
	})
}

// TestBundle looks into a bundle: it has no secrets, tells what could not be had, and takes
// nobody's file.
func TestBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	said, _ := run(t, "sick", []string{"support-bundle", file})
	if !strings.Contains(said, file) || !strings.Contains(said, "top.txt: error: Metrics API not available") {
		t.Errorf("it says %s", said)
	}
	files := unpack(t, file)
	for _, name := range []string{"objects.yaml", "events.txt", "missing.txt", "db-trireme-1/log.txt", "db-trireme-1/log-previous.txt",
		"db-trireme-1/status.json", "db-trireme-1/metrics.txt", "db-trireme-0/log.txt"} {
		if _, ok := files[name]; !ok {
			t.Errorf("it has no %s", name)
		}
	}
	if want := "a log with etcd_password = (removed) and \"token\": (removed), and secret:(removed)\n"; files["db-trireme-1/log.txt"] != want {
		t.Errorf("the log is %q", files["db-trireme-1/log.txt"])
	}
	if !strings.Contains(files["events.txt"], "StopWaits") || strings.Contains(files["events.txt"], "another release") {
		t.Errorf("the events are %s", files["events.txt"])
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if said, _ := run(t, "sick", []string{"support-bundle", file}); !strings.Contains(said, "exists") {
		t.Errorf("of a file that is there it says %s", said)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a file that was there has changed (%v)", err)
	}
}

// TestUnsecret: whatever form a secret has of those in which kubectl shows it, no part of it stays, and what stands around it does.
func TestUnsecret(t *testing.T) {
	for what, c := range map[string]struct{ text, want string }{
		"a variable": {"    - name: DB_PASSWORD\n      value: hush hush\n    - name: LEVEL\n      value: \"7\"\n",
			"    - name: DB_PASSWORD\n      value: (removed)\n    - name: LEVEL\n      value: \"7\"\n"},
		"a quoted one": {"- name: 'api_token'\n  value: \"hush:\n    hush\"\n- name: A\n", "- name: 'api_token'\n  value: (removed)\n- name: A\n"},
		"a text of lines": {"- name: CLIENT_SECRET\n  value: |-\n    hush\n\n    hush\n  more: 1\n- name: CLIENT_ID\n  value: me\n",
			"- name: CLIENT_SECRET\n  value: (removed)\n  more: 1\n- name: CLIENT_ID\n  value: me\n"},
		"one that is elsewhere": {"- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      key: k\n      name: n\n", "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      key: k\n      name: n\n"},
		"a volume":              {"- name: a\n  secret:\n    defaultMode: 288\n", "- name: a\n  secret:\n    defaultMode: 288\n"},
		"a description":         {"    Environment:\n      DB_PASSWORD:  hush hush\n                    hush\n      LEVEL:  7\n", "    Environment:\n      DB_PASSWORD: (removed)\n      LEVEL:  7\n"},
		"what was applied":      {`x: '{"env":[{"name":"DB_PASSWORD","value":"hu\"sh"},{"name":"A","value":"b"}]}'`, `x: '{"env":[{"name":"DB_PASSWORD","value":(removed)},{"name":"A","value":"b"}]}'`},
		"what was applied, as JSON": {`"x": "{\"env\":[{\"name\":\"DB_PASSWORD\",\"value\":\"hush\"},{\"name\":\"A\"}]}"`,
			`"x": "{\"env\":[{\"name\":\"DB_PASSWORD\",\"value\":(removed)},{\"name\":\"A\"}]}"`},
		"a header":      {"value: authorization=Bearer hush,a=b\n", "value: authorization=(removed),a=b\n"},
		"a file's name": {"root_password_file = /etc/p\n", "root_password_file = /etc/p\n"},
		"a line's end":  {"a: b\r\nlast", "a: b\r\nlast"},
	} {
		if got := string(unsecret([]byte(c.text))); got != c.want {
			t.Errorf("%s:\n%s\nand not\n%s", what, got, c.want)
		}
	}
}

// TestUnsecretIsQuick: of a log of the size that is taken nearly no line has a secret, and it is looked through within seconds, however slow the machine.
func TestUnsecretIsQuick(t *testing.T) {
	line := "2026-11-26T15:50:33.267292946Z level=INFO msg=\"something has come about\" member=123456789 address=db-0.peers:17100 waited=1.2s\n"
	text := []byte(strings.Repeat(line, race.Fewer(logBytes/len(line), 20)) + "token=hush\n")
	began := time.Now()
	if got := unsecret(text); !bytes.HasSuffix(got, []byte("\ntoken=(removed)\n")) {
		t.Errorf("%s", got[len(got)-100:])
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		files[name] = string(text)
	}
}
