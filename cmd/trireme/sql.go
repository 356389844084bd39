package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/term"
)

// shell is a connection and how its answers are shown.
type shell struct {
	db    *sql.DB
	conn  *sql.Conn
	out   io.Writer
	table bool // results as tables
	force bool // go on after errors
	last  error
}

func runSQL(args []string) error {
	f := flags("sql [options] [schema]", "A shell for SQL. Statements end with ; or \\G (a line for each column). Input that is no terminal\n"+
		"is run as a script, which ends at the first error. The shell's own words: help, use, quit.")
	var execute, password, passwordFile, format string
	var ssl sslFlags
	host := f.String("host", "127.0.0.1", "`address` of a node")
	port := f.Int("port", 13306, "its MySQL port")
	user := f.String("user", "root", "who you are")
	f.StringVar(&password, "password", os.Getenv("MYSQL_PWD"), "your `password`; it is asked for if there is none (also MYSQL_PWD)")
	f.StringVar(&passwordFile, "password-file", "", "`file` whose first line is the password")
	f.StringVar(&execute, "e", "", "run these `statements` and end")
	f.StringVar(&format, "format", "", "table or tab; table is what a terminal gets")
	ssl.add(f, "")
	force := f.Bool("force", false, "go on after an error of a script")
	if err := parse(f, args); err != nil {
		return err
	}
	if f.NArg() > 1 {
		return misuse(f, "one schema at most, not %q", f.Args())
	}
	terminal := term.IsTerminal(int(os.Stdin.Fd()))
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = *user, "tcp", net.JoinHostPort(*host, strconv.Itoa(*port)), f.Arg(0)
	c.ConnectionAttributes = "program_name:trireme-sql"
	c.InterpolateParams = true
	mode, err := ssl.resolve()
	if err != nil {
		return misuse(f, "%v", err)
	}
	if c.AllowFallbackToPlaintext = mode == sslPreferred; mode != sslDisabled {
		if c.TLS, err = ssl.config(mode, *host); err != nil {
			return err
		}
	}
	if c.Passwd, err = findPassword(password, passwordFile, terminal && execute == "", *user); err != nil {
		return err
	}
	if format == "" && (terminal && execute == "" || term.IsTerminal(int(os.Stdout.Fd()))) {
		format = "table"
	}
	sh := &shell{out: os.Stdout, table: format == "table", force: *force}
	if err := sh.connect(c); err != nil {
		return err
	}
	defer sh.close()
	switch {
	case execute != "":
		return sh.script(strings.NewReader(execute))
	case terminal:
		return sh.interact(c.Addr)
	}
	return sh.script(os.Stdin)
}

func findPassword(given, file string, ask bool, user string) (string, error) {
	if file != "" {
		b, err := os.ReadFile(file)
		line, _, _ := strings.Cut(string(b), "\n")
		return strings.TrimSpace(line), err
	}
	if given != "" || !ask {
		return given, nil
	}
	fmt.Fprintf(os.Stderr, "Password of %s: ", user)
	b, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(b), err
}

// noLog silences the driver: what it has to say it returns.
type noLog struct{}

func (noLog) Print(...any) {}

func (s *shell) connect(c *mysql.Config) error {
	c.Logger = noLog{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(connector)
	return s.reconnect()
}

// reconnect takes a connection; the session's state is a new one.
func (s *shell) reconnect() (err error) {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	if s.conn, err = s.db.Conn(context.Background()); err == nil {
		err = s.conn.PingContext(context.Background())
	}
	return err
}

func (s *shell) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	_ = s.db.Close()
}

// script runs all statements of a text.
func (s *shell) script(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var sp splitter
	for {
		line, err := in.ReadString('\n')
		for _, st := range sp.add(line) {
			if e := s.run(st); e != nil {
				return e
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if st, ok := sp.rest(); ok {
		if err := s.run(st); err != nil {
			return err
		}
	}
	if s.last != nil {
		return errFailed
	}
	return nil
}

// run runs a statement of a script. With force errors are only told.
func (s *shell) run(st statement) error {
	err := s.statement(st)
	if err == nil {
		return nil
	}
	fmt.Fprintln(os.Stderr, errorText(err))
	s.last = err
	if s.force {
		return nil
	}
	return errFailed
}

func errorText(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return fmt.Sprintf("ERROR %d (%s): %s", e.Number, string(e.SQLState[:]), e.Message)
	}
	return "ERROR: " + err.Error()
}

// statement runs one statement and shows what it gives. An interrupt ends it.
func (s *shell) statement(st statement) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	rows, err := s.conn.QueryContext(ctx, st.text)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for {
		if err := s.show(rows, st.vertical); err != nil {
			return err
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

const help = `Statements end with ; or \G. Words of the shell:
  help          this
  use <schema>  change the schema
  quit          end
The keys are those of a line editor: arrows for history, ^C drops the line, ^D ends.`
