package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/types"
)

// Options configure a log. Log is required.
type Options struct {
	File       string // empty: lines go to Log
	RotateSize int64  // bytes after which a file is renamed
	Files      int    // renamed files that are kept: File.1 is the newest
	Buffer     int    // bytes of lines that may wait for the disk
	// Waits reports whether lines wait for room in the buffer, and who has caused them with them, rather than being dropped; nil: they do
	// not.
	Waits func() bool
	// Logins reports whether those of an account are to be told; nil: all are.
	Logins func(user, host string) bool
	Log    *slog.Logger // the node's
}

// Log is a node's audit log. Methods are safe for concurrent use; those of a nil Log do nothing.
type Log struct {
	opt    Options
	w      *writer // nil: there is no file
	lines  *slog.Logger
	admins *slog.Logger
}

// Open opens a log. Error: its file cannot be opened.
func Open(opt Options) (*Log, error) {
	if opt.Waits == nil {
		opt.Waits = func() bool { return false }
	}
	if opt.Logins == nil {
		opt.Logins = func(string, string) bool { return true }
	}
	l := &Log{opt: opt, lines: opt.Log, admins: opt.Log}
	if opt.File == "" {
		return l, nil
	}
	w, err := openWriter(opt)
	if err != nil {
		return nil, err
	}
	l.w, l.lines = w, slog.New(slog.NewJSONHandler(w, nil))
	l.admins = slog.New(slog.NewMultiHandler(l.lines.Handler(), opt.Log.Handler()))
	return l, nil
}

// Operators is where lines about operators go: to the log, and to the node's as well.
func (l *Log) Operators() *slog.Logger { return l.admins }

// Stats are numbers of lines since the log was opened.
type Stats struct {
	Written, Lost uint64
	Failing       bool // the file could not be written when that was last tried
}

// Stats counts the lines of the file.
func (l *Log) Stats() Stats {
	if l == nil || l.w == nil {
		return Stats{}
	}
	return Stats{l.w.written.Load(), l.w.dropped.Load(), l.w.failing.Load()}
}

// Close writes what waits, for as long as the disk answers soon.
func (l *Log) Close() {
	if l != nil && l.w != nil {
		l.w.close()
	}
}

// Login tells of somebody who came in, or was refused.
type Login struct {
	Door                     string // mysql, grpc, ..
	ReadOnly                 bool   // by the port for reads
	Session                  uint64
	User                     string // as the client named itself
	AccountUser, AccountHost string // empty: it is not known, or not proved
	Address                  string // of the client
	TLS                      string // version; empty: none
	Program                  string // as the client names it
	Err                      error  // why it was refused; nil: it came in
}

// Login adds a line, unless a client that was refused has not even named a user.
func (l *Log) Login(e Login) {
	if l == nil || e.Err != nil && e.User == "" {
		return
	}
	account := ""
	if e.AccountUser != "" || e.AccountHost != "" {
		account = priv.ID{Name: e.AccountUser, Host: e.AccountHost}.Text()
	}
	user, host := e.AccountUser, e.AccountHost
	if account == "" {
		user = e.User
	}
	if !l.opt.Logins(user, host) {
		return
	}
	level := slog.LevelInfo
	if e.Err != nil {
		level = slog.LevelWarn
	}
	l.lines.LogAttrs(context.Background(), level, "login", slog.Group("audit", "door", door(e.Door, e.ReadOnly), "session", e.Session, "account", account,
		"user", valid(e.User), "address", e.Address, "tls", e.TLS, "program", valid(e.Program), "outcome", outcome(e.Err)))
}

// Logout adds the line of somebody who had come in.
func (l *Log) Logout(e Login, stayed time.Duration) {
	if l == nil || !l.opt.Logins(e.AccountUser, e.AccountHost) {
		return
	}
	l.lines.LogAttrs(context.Background(), slog.LevelInfo, "logout", slog.Group("audit", "door", door(e.Door, e.ReadOnly), "session", e.Session,
		"account", priv.ID{Name: e.AccountUser, Host: e.AccountHost}.Text(), "user", valid(e.User), "address", e.Address, "stayed", stayed.Round(time.Millisecond).String()))
}

// Statement adds the line of a statement.
func (l *Log) Statement(e session.AuditedStatement) {
	level, told := slog.LevelInfo, "done"
	if e.Error != 0 {
		level, told = slog.LevelWarn, fmt.Sprintf("error %d (%s)", e.Error, e.State)
	}
	l.lines.LogAttrs(context.Background(), level, "statement", slog.Group("audit", "class", strings.ToLower(e.Class.String()), "door", door(e.Door, e.ReadOnly), "session", e.Session,
		"account", priv.ID{Name: e.AccountUser, Host: e.AccountHost}.Text(), "user", valid(e.User), "host", e.Host, "schema", e.Schema, "text", valid(e.Text),
		"tables", e.Tables, "accounts", e.Accounts, "variables", e.Variables, "rows_sent", e.RowsSent, "rows_affected", e.RowsAffected,
		"took", e.Took.Round(time.Microsecond).String(), "outcome", told))
}

func door(name string, readOnly bool) string {
	if readOnly {
		return name + " read-only"
	}
	return name
}

// outcome is "done", or what the client was told.
func outcome(err error) string {
	var told *types.Error
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &told):
		return valid(fmt.Sprintf("error %d (%s): %s", told.Number, told.State, told.Message))
	}
	return valid(err.Error())
}

// nameMax is how much of a text that a client has chosen is kept, in bytes.
const nameMax = 1024

// valid is a text of a client, as JSON can have it.
func valid(text string) string {
	if len(text) > nameMax {
		text = text[:nameMax]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return text
}
