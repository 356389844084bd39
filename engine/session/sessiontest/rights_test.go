package sessiontest_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/internal/race"
)

// What MySQL answers is recorded, so that the comparison needs no MySQL. To record it anew, with an empty MySQL 9.7 in
// which root@% has no password and everything:
//
//	go test ./engine/session/sessiontest -run TestRights -count=1 -args -rights.mysql='root@tcp(127.0.0.1:3306)/'
var (
	rightsMySQL = flag.String("rights.mysql", "", "record the answers of the MySQL with this data source name, not to compare with them")
	rightsOnly  = flag.String("rights.only", "", "compare only statements that contain this")
)

const (
	rightsAnswers     = "testdata/rights/answers"
	rightsDifferences = "testdata/rights/differences"
)

// rightsServer is what is asked.
type rightsServer interface {
	// root runs a statement that must not fail.
	root(text string)
	// as tries a statement as an account, in a session of its own. It returns the error's number; 0: there is none.
	as(actor string, c rightsCase) int
}

// askRights tries all statements as all actors.
func askRights(s rightsServer, actors []rightsActor, each func(c rightsCase, actor string, number int)) {
	run := func(list []string) {
		for _, text := range list {
			s.root(text)
		}
	}
	makeActor := func(a rightsActor) {
		s.root("DROP USER IF EXISTS " + a.name)
		s.root("CREATE USER " + a.name)
		for _, g := range a.grants {
			s.root(strings.ReplaceAll(g, "@", a.name))
		}
	}
	run(rightsTables)
	run(rightsAccounts)
	for _, a := range actors {
		makeActor(a)
		for _, c := range rightsCases() {
			if !strings.Contains(c.text, *rightsOnly) {
				continue
			}
			number := s.as(a.name, c)
			each(c, a.name, number)
			if number != 0 || c.prepares {
				continue
			}
			switch c.undo {
			case "rows":
				run(rightsRows)
			case "tables":
				run(rightsTables)
			case "accounts":
				own := strings.Contains(c.text, "CURRENT_USER") || strings.Contains(c.text, "PASSWORD = ''")
				switch words := strings.FieldsFunc(c.text, func(r rune) bool { return strings.ContainsRune(" ,;'", r) }); {
				case slices.ContainsFunc(words, func(w string) bool {
					return strings.HasPrefix(w, "r_") || strings.HasPrefix(w, "sys") || strings.HasSuffix(w, "role")
				}):
					run(rightsAccounts)
					own = true
				case !own:
					run(rightsPlain)
				}
				if own {
					makeActor(a)
				}
			}
		}
		s.root("DROP USER " + a.name)
	}
}

func (c rightsCase) String() string {
	if c.prepares {
		return "PREPARE: " + c.text
	}
	return c.text
}

// TestRights compares who may do what, and with what errors it is refused, with what MySQL answers to the same.
// The file of differences lists where it is to be otherwise, and why:
//
//	reason
//	  number | actors | statement        patterns of path.Match, for what is there and not in MySQL
func TestRights(t *testing.T) {
	if *rightsMySQL != "" {
		recordRights(t)
		return
	}
	answers, differences := readRights(t), readDifferences(t)
	type answer struct {
		statement  string
		here, want int
	}
	wrong := map[answer][]string{}
	actors := rightsActors()
	actors = actors[:race.Fewer(len(actors), 6)]
	askRights(newOwnServer(t), actors, func(c rightsCase, actor string, number int) {
		want, ok := answers[c.String()][actor]
		if !ok {
			t.Fatalf("no answer is recorded for %q as %s", c, actor)
		}
		if number == want {
			return
		}
		for _, d := range differences {
			if d.number == number && d.of(actor, c.String()) {
				d.used = true
				return
			}
		}
		a := answer{c.String(), number, want}
		wrong[a] = append(wrong[a], actor)
	})
	for a, actors := range wrong {
		t.Errorf("%s: %d, in MySQL %d, as %s", a.statement, a.here, a.want, strings.Join(actors, " "))
	}
	for _, d := range differences {
		if !d.used && *rightsOnly == "" && len(actors) == len(rightsActors()) {
			t.Errorf("differences, line %d: there is none", d.line)
		}
	}
}

// ownServer is a session manager of this process.
type ownServer struct {
	t *testing.T
	r *sessiontest.Rig
	s *session.Session
}

func newOwnServer(t *testing.T) *ownServer {
	r := sessiontest.New(t, sessiontest.Options{Discard: true})
	if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	return &ownServer{t, r, r.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%"})}
}

func (o *ownServer) root(text string) { o.r.Exec(o.s, text) }

func (o *ownServer) as(actor string, c rightsCase) int {
	s, err := o.r.Manager.Open(session.ConnectionInfo{User: actor, Host: "10.0.0.1", AccountUser: actor, AccountHost: "%"})
	if err != nil {
		o.t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	if c.prepares {
		var p *session.Prepared
		if p, err = s.Prepare(ctx, c.text); err == nil {
			p.Close()
		}
	} else {
		err = s.Query(ctx, c.text, sessiontest.Discard)
	}
	if err == nil {
		return 0
	}
	var e *sqlerr.Error
	if !errors.As(err, &e) {
		o.t.Fatalf("%s: %v", c, err)
	}
	return int(e.Number)
}

// otherServer is a MySQL.
type otherServer struct {
	t   *testing.T
	dsn *mysql.Config
	db  *sql.DB
}

func (o *otherServer) root(text string) {
	o.t.Helper()
	if _, err := o.db.Exec(text); err != nil {
		o.t.Fatalf("%s: %v", text, err)
	}
}

func (o *otherServer) as(actor string, c rightsCase) int {
	dsn := o.dsn.Clone()
	dsn.User = actor
	db, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		o.t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		o.t.Fatalf("%s: %v", actor, err)
	}
	defer conn.Close()
	if c.prepares {
		var st *sql.Stmt
		if st, err = conn.PrepareContext(context.Background(), c.text); err == nil {
			st.Close()
		}
	} else {
		var rows *sql.Rows
		if rows, err = conn.QueryContext(context.Background(), c.text); err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
	}
	if err == nil {
		return 0
	}
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		o.t.Fatalf("%s: %v", c, err)
	}
	return int(e.Number)
}

// recordRights writes what MySQL answers: for each statement the actors by the error's number.
func recordRights(t *testing.T) {
	dsn, err := mysql.ParseDSN(*rightsMySQL)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	blocks := map[string]string{}
	if *rightsOnly != "" { // the others stay
		eachLine(t, rightsAnswers, func(_ int, line string) { // a block's first line is the statement
			if !strings.HasPrefix(line, "  ") {
				blocks[""] = line
			}
			blocks[blocks[""]] += line + "\n"
		})
	}
	all := map[string]map[int][]string{}
	askRights(&otherServer{t, dsn, db}, rightsActors(), func(c rightsCase, actor string, number int) {
		if all[c.String()] == nil {
			all[c.String()] = map[int][]string{}
		}
		all[c.String()][number] = append(all[c.String()][number], actor)
	})
	for last, by := range all {
		var out strings.Builder
		fmt.Fprintf(&out, "%s\n", last)
		numbers := make([]int, 0, len(by))
		for n := range by {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		most := numbers[0]
		for _, n := range numbers {
			if len(by[n]) > len(by[most]) {
				most = n
			}
		}
		for _, n := range numbers {
			who := strings.Join(by[n], " ")
			if n == most {
				who = "*"
			}
			fmt.Fprintf(&out, "  %d %s\n", n, who)
		}
		blocks[last] = out.String()
	}
	var out strings.Builder
	for _, c := range rightsCases() {
		out.WriteString(blocks[c.String()])
	}
	if err := os.WriteFile(rightsAnswers, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readRights reads what was recorded: the numbers by statement and actor.
func readRights(t *testing.T) map[string]map[string]int {
	all := map[string]map[string]int{}
	var of map[string]int
	eachLine(t, rightsAnswers, func(_ int, line string) {
		rest, ok := strings.CutPrefix(line, "  ")
		if !ok {
			of = map[string]int{}
			all[line] = of
			return
		}
		f := strings.Fields(rest)
		n, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if f[1] != "*" {
			for _, actor := range f[1:] {
				of[actor] = n
			}
			return
		}
		of["*"] = n
	})
	for _, of := range all {
		for _, a := range rightsActors() {
			if _, ok := of[a.name]; !ok {
				of[a.name] = of["*"]
			}
		}
	}
	return all
}

type rightsDifference struct {
	line       int
	number     int
	actors     []string
	statements string
	used       bool
}

func (d *rightsDifference) of(actor, statement string) bool {
	clean := strings.NewReplacer("*", "+", "[", "(", "\\", "|", "/", "|") // path.Match knows these
	ok, _ := path.Match(d.statements, clean.Replace(statement))
	return ok && slices.ContainsFunc(d.actors, func(p string) bool {
		ok, _ := path.Match(p, actor)
		return ok
	})
}

func readDifferences(t *testing.T) []*rightsDifference {
	var list []*rightsDifference
	eachLine(t, rightsDifferences, func(i int, line string) {
		rest, ok := strings.CutPrefix(line, "  ")
		if !ok {
			return
		}
		f := strings.SplitN(rest, " | ", 3)
		n, err := strconv.Atoi(strings.TrimSpace(f[0]))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, &rightsDifference{line: i, number: n, actors: strings.Fields(f[1]), statements: f[2]})
	})
	return list
}

func eachLine(t *testing.T, name string, fn func(i int, line string)) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for i := 1; in.Scan(); i++ {
		if in.Text() != "" {
			fn(i, in.Text())
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
}
