package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// Options configure a log. Log is required.
type Options struct {
	File       string // empty: lines go to Log
	RotateSize int64  // bytes after which a file is renamed
	Files      int    // renamed files that are kept: File.1 is the newest
	Buffer     int    // bytes of lines that may wait for the disk
	// Waits reports whether lines of statements wait for room in the buffer, and the sessions with them, rather than being dropped;
	// nil: they do not. Others never wait: who comes in may have come to mend it.
	Waits func() bool
	// Logins reports whether those of an account are to be told, and those who were refused; nil: all are.
	Logins func(user, host string, refused bool) bool
	Log    *slog.Logger // the node's
}

// Log is a node's audit log. Methods are safe for concurrent use; Login and Logout of a nil Log do nothing.
type Log struct {
	opt    Options
	w      *writer // nil: there is no file
	lines  *slog.Logger
	waits  *slog.Logger // the same, for lines that may wait for room
	admins *slog.Logger

	known, strangers refusals
}

// Open opens a log. Error: its file cannot be opened.
func Open(opt Options) (*Log, error) {
	if opt.Waits == nil {
		opt.Waits = func() bool { return false }
	}
	if opt.Logins == nil {
		opt.Logins = func(string, string, bool) bool { return true }
	}
	l := &Log{opt: opt, lines: opt.Log, waits: opt.Log, known: refusals{known: true}}
	l.admins = slog.New(bounded{opt.Log.Handler(), l})
	if opt.File == "" {
		return l, nil
	}
	w, err := openWriter(opt)
	if err != nil {
		return nil, err
	}
	l.w, l.lines, l.waits = w, slog.New(slog.NewJSONHandler(w, nil)), slog.New(slog.NewJSONHandler(patient{w}, nil))
	l.admins = slog.New(bounded{slog.NewMultiHandler(l.lines.Handler(), opt.Log.Handler()), l})
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
	if l.w == nil {
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
	Known                    bool   // of who was refused: there is an account for the user that he names
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
	if !l.opt.Logins(e.AccountUser, e.AccountHost, e.Err != nil) {
		return
	}
	level := slog.LevelInfo
	if e.Err != nil {
		level = slog.LevelWarn
		r := &l.strangers
		if e.Known {
			r = &l.known
		}
		if !r.tell(time.Now(), l.lines) {
			return
		}
	}
	l.lines.LogAttrs(context.Background(), level, "login", slog.Group("audit", "door", door(e.Door, e.ReadOnly), "session", e.Session, "account", account,
		"user", named(e.User), "address", e.Address, "tls", e.TLS, "program", named(e.Program), "outcome", outcome(e.Err)))
}

// Logout adds the line of somebody who had come in.
func (l *Log) Logout(e Login, stayed time.Duration) {
	if l == nil || !l.opt.Logins(e.AccountUser, e.AccountHost, false) {
		return
	}
	l.lines.LogAttrs(context.Background(), slog.LevelInfo, "logout", slog.Group("audit", "door", door(e.Door, e.ReadOnly), "session", e.Session,
		"account", priv.ID{Name: e.AccountUser, Host: e.AccountHost}.Text(), "user", named(e.User), "address", e.Address, "stayed", stayed.Round(time.Millisecond).String()))
}

// Statement adds the line of a statement.
func (l *Log) Statement(e session.AuditedStatement) {
	level, told := slog.LevelInfo, "done"
	if e.Error != 0 {
		level, told = slog.LevelWarn, fmt.Sprintf("error %d (%s)", e.Error, e.State)
	}
	l.waits.LogAttrs(context.Background(), level, "statement", slog.Group("audit", "class", strings.ToLower(e.Class.String()), "door", door(e.Door, e.ReadOnly), "session", e.Session,
		"account", priv.ID{Name: e.AccountUser, Host: e.AccountHost}.Text(), "user", valid(e.User), "host", e.Host, "schema", e.Schema, "text", valid(e.Text),
		"tables", e.Tables, "accounts", e.Accounts, "variables", e.Variables, "killed", e.Killed, "rows_sent", e.RowsSent, "rows_affected", e.RowsAffected,
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
	var told *sqlerr.Error
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &told):
		return valid(fmt.Sprintf("error %d (%s): %s", told.Number, told.State, told.Message))
	}
	return valid(err.Error())
}

const (
	textMax = 1024 // bytes that are kept of a text
	nameMax = 128  // and of a name that a client has chosen
)

// valid is a text as JSON has it in about its length: a stranger may send what takes six bytes for each of his.
func valid(text string) string { return cleaned(text, textMax) }

// named is valid for a name.
func named(text string) string { return cleaned(text, nameMax) }

func cleaned(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// refusals bounds the lines about who was refused: anybody can cause as many as he likes, and they are not to push out others.
type refusals struct {
	known bool // of users that there are

	mu     sync.Mutex
	tokens float64
	last   time.Time // zero: none was told yet
	untold uint64
	since  time.Time // when the first of these was refused
}

const (
	refusalsAtOnce  = 100 // lines that may come at once
	refusalsEach    = time.Second
	refusalsSummary = time.Minute // between two lines about those that have none
)

// tell reports whether a refusal is to have a line. Once in a while it adds one about those that had none.
func (r *refusals) tell(now time.Time, lines *slog.Logger) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.IsZero() {
		r.tokens = refusalsAtOnce
	} else {
		r.tokens = min(refusalsAtOnce, r.tokens+float64(now.Sub(r.last))/float64(refusalsEach))
	}
	r.last = now
	if r.untold > 0 && now.Sub(r.since) >= refusalsSummary {
		lines.LogAttrs(context.Background(), slog.LevelWarn, "refused", slog.Group("audit", "logins", r.untold, "known_user", r.known, "since", r.since))
		r.untold = 0
	}
	if r.tokens >= 1 {
		r.tokens--
		return true
	}
	if r.untold++; r.untold == 1 {
		r.since = now
	}
	return false
}

// bounded bounds the lines about operators who could not prove who they are, which are warnings.
type bounded struct {
	slog.Handler
	l *Log
}

// Handle implements slog.Handler.
func (b bounded) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && !b.l.strangers.tell(r.Time, b.l.lines) {
		return nil
	}
	return b.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (b bounded) WithAttrs(list []slog.Attr) slog.Handler {
	return bounded{b.Handler.WithAttrs(list), b.l}
}

// WithGroup implements slog.Handler.
func (b bounded) WithGroup(name string) slog.Handler {
	return bounded{b.Handler.WithGroup(name), b.l}
}
