//go:build compat

package compat

import (
	"bufio"
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/e2e/servers"
)

var labels = flag.String("compat.django", "", "the parts of Django's suite to run, by their labels; empty: all")

// suite is where the suites lie that `make compat` has fetched.
func suite(t *testing.T, parts ...string) string {
	dir, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "bin", "compat"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// known reads the tests that are known to fail, and why.
func known(t *testing.T, name string) map[string]string {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if test, why, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
			list[test] = why
		}
	}
	return list
}

// compare holds what has failed against what is known to.
func compare(t *testing.T, name string, failed []string) {
	expected := known(t, name)
	for _, test := range failed {
		if expected[test] == "" {
			t.Errorf("%s fails", test)
		}
	}
	for test, why := range expected {
		if !slices.Contains(failed, test) {
			t.Logf("%s does not fail, and is listed: %s", test, why)
		}
	}
}

// run runs a suite's command and returns what it has printed. That some of its tests fail is no error here.
func run(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// find lists what a pattern's first group matches, line by line, each once.
func find(out []byte, pattern string) (list []string) {
	re := regexp.MustCompile(pattern)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if m := re.FindStringSubmatch(lines.Text()); m != nil && !slices.Contains(list, m[1]) {
			list = append(list, m[1])
		}
	}
	return list
}

// last is the last line that matches: a suite's own count.
func last(t *testing.T, out []byte, pattern string) {
	t.Helper()
	found := find(out, "("+pattern+")")
	if len(found) == 0 {
		t.Fatalf("the suite has not ended as it should:\n%s", out[max(0, len(out)-4000):])
	}
	t.Log(found[len(found)-1])
}

// password is root's: one that needs no escape in any language.
const password = "compat"

func serve(t *testing.T, schemas ...string) *servers.Node {
	n := servers.Test(t, servers.Options{Password: password, Settings: []string{"--local-infile=ON"}}).Nodes[0]
	db, err := sql.Open("mysql", n.DSN("", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range schemas {
		if _, err := db.Exec("CREATE DATABASE " + s); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestGoSQLDriver(t *testing.T) {
	n := serve(t, "gotest")
	dir := filepath.Join(t.TempDir(), "driver")
	module := strings.TrimSpace(string(run(t, ".", nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-sql-driver/mysql")))
	if err := os.CopyFS(dir, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	// A test that needs the internet, and ends all that follow if it cannot have it, is left out.
	out := run(t, dir, []string{"MYSQL_TEST_USER=root", "MYSQL_TEST_PASS=" + password, fmt.Sprintf("MYSQL_TEST_ADDR=127.0.0.1:%d", n.Port),
		"MYSQL_TEST_DBNAME=gotest", "MYSQL_TEST_CONCURRENT=1"}, "go", "test", "-v", "-count=1", "-pgo=off", "-skip", "TestConnectorReturnsTimeout", ".")
	last(t, out, `^(?:ok|FAIL)\s.*`)
	t.Logf("%d tests pass", len(find(out, `^--- PASS: (\S+)`)))
	compare(t, "go-sql-driver", find(out, `^--- FAIL: (\S+)`))
}

func TestSQLAlchemy(t *testing.T) {
	n := serve(t, "test CHARACTER SET utf8mb4", "test_schema CHARACTER SET utf8mb4")
	uri := fmt.Sprintf("mysql+pymysql://root:%s@127.0.0.1:%d/test?charset=utf8mb4", password, n.Port)
	var failed []string
	// The suite for dialects comes first: what the other leaves behind where it fails, reflection finds.
	for _, part := range []string{"test/dialect/test_suite.py", "test/dialect/mysql"} {
		out := run(t, suite(t, "sqlalchemy"), nil, suite(t, "python", "bin", "python"), "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", part, "--dburi", uri)
		last(t, out, `=+ .*passed.* =+`)
		for _, test := range find(out, `^(?:FAILED|ERROR) (\S+)`) {
			test, _, _ = strings.Cut(strings.TrimPrefix(test, "test/dialect/"), "[") // all parametrizations are one
			test = regexp.MustCompile(`_mysql\+pymysql_[0-9_]*`).ReplaceAllString(test, "")
			if !slices.Contains(failed, test) {
				failed = append(failed, test)
			}
		}
	}
	compare(t, "sqlalchemy", failed)
}

func TestDjango(t *testing.T) {
	n := serve(t)
	settings := fmt.Sprintf(`
def database(name):
    return {"ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "PORT": "%d", "USER": "root", "PASSWORD": "%s", "NAME": name,
            "TEST": {"CHARSET": "utf8mb4"}}
DATABASES = {"default": database("django"), "other": database("django2")}
SECRET_KEY = "django_tests_secret_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
`, n.Port, password)
	tests := suite(t, "django", "tests")
	if err := os.WriteFile(filepath.Join(tests, "test_trireme.py"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"runtests.py", "--settings=test_trireme", "--parallel=1", "--noinput"}, strings.Fields(*labels)...)
	out := run(t, tests, nil, suite(t, "python", "bin", "python"), args...)
	last(t, out, `^Ran \d+ tests.*`)
	last(t, out, `^(?:OK|FAILED).*`)
	compare(t, "django", find(out, `^(?:ERROR|FAIL): \S+ \((\S+)\)`))
}
