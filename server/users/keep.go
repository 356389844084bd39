package users

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/types"
)

// Session runs statements; *session.Session is one.
type Session interface {
	Query(ctx context.Context, sql string, w session.ResultWriter) error
	Interrupt()
	Close() error
}

// Options say what is kept, and how.
type Options struct {
	Dir string
	// Leads reports whether this node takes writes: only then anything is done.
	Leads func() bool
	// Open opens a session that may make accounts and give privileges.
	Open func() (Session, error)
	Log  *slog.Logger
	// Fault names the rule of the password policy that the password of an account breaks; empty: none. nil: there is no
	// policy.
	Fault func(id priv.ID, password string) (rule string, err error)
	// Lasting is told why root does not have the password of its file, once it has been so for minutes; nil: nobody is.
	Lasting func(ctx context.Context, why string)
}

const (
	// lookEvery is how often the files are read.
	lookEvery = 2 * time.Second
	// compareEvery is how often accounts are compared with files that have not changed.
	compareEvery = time.Minute
	// entryLimit is how long an entry may take: while there is no majority nothing ends.
	entryLimit = 30 * time.Second
)

// fault is Fault, if there is a policy.
func (o *Options) fault(id priv.ID, password string) (rule string, err error) {
	if o.Fault == nil {
		return "", nil
	}
	return o.Fault(id, password)
}

// Keeper keeps accounts. One task uses it, but for Failing.
type Keeper struct {
	opt  Options
	done map[string]*state // by entry
	dir  string            // what was last told of the directory

	failed  atomic.Int64 // entries
	stopped atomic.Bool
}

// Failing is how many entries' accounts are not as their files say, and whether none can be kept: the directory cannot
// be read, or there is no session. Where this node does not lead it is 0 and false. Any task may call it.
func (k *Keeper) Failing() (entries int, all bool) { return int(k.failed.Load()), k.stopped.Load() }

// count makes known what fails.
func (k *Keeper) count() {
	n := int64(0)
	for _, st := range k.done {
		if st.told != "" {
			n++
		}
	}
	k.failed.Store(n)
	k.stopped.Store(k.dir != "")
}

// state is what became of an entry on this leader.
type state struct {
	sum  [32]byte
	next time.Time // when to compare it again, although its files are the same
	told string    // the last error
}

// New returns a keeper.
func New(o Options) *Keeper { return &Keeper{opt: o} }

// Run keeps the accounts until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	tick := env.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		k.Look(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Next()
		}
	}
}

// Look does what is to be done now. What it could not do it tries again the next time.
func (k *Keeper) Look(ctx context.Context, now time.Time) {
	defer k.count()
	if !k.opt.Leads() {
		k.done, k.dir = nil, ""
		return
	}
	if k.done == nil {
		k.done = map[string]*state{}
	}
	list, err := read(k.opt.Dir)
	maps.DeleteFunc(k.done, func(name string, _ *state) bool {
		return err == nil && !slices.ContainsFunc(list, func(e entry) bool { return e.name == name })
	})
	var due []*entry
	for i := range list {
		e := &list[i]
		st := k.done[e.name]
		if st == nil {
			st = &state{}
			k.done[e.name] = st
		}
		if e.err != nil {
			k.tell(e, e.err)
			continue
		}
		if st.sum != e.sum || !now.Before(st.next) {
			due = append(due, e)
		}
	}
	var s *connection
	if err == nil && len(due) > 0 {
		s, err = open(ctx, k.opt.Open)
	}
	k.tellDir(err)
	if s == nil {
		return
	}
	defer s.close()
	for _, e := range due {
		err := k.keep(ctx, s, e)
		if !k.opt.Leads() || ctx.Err() != nil {
			return // the next leader does it
		}
		if k.tell(e, err); err == nil {
			st := k.done[e.name]
			st.sum, st.next = e.sum, now.Add(compareEvery)
		}
	}
}

// tell logs an entry's error, once.
func (k *Keeper) tell(e *entry, err error) {
	st, text := k.done[e.name], ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != st.told {
		k.opt.Log.Error("users_dir: an account is not as its file says", "file", e.file, "account", e.id.Text(), "error", text)
	}
	st.told = text
}

// tellDir logs an error that concerns all entries, once.
func (k *Keeper) tellDir(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != k.dir {
		k.opt.Log.Error("users_dir: accounts are not kept", "dir", k.opt.Dir, "error", text)
	}
	k.dir = text
}

// connection is a session that is used by itself.
type connection struct{ Session }

// open opens a session in which texts mean what quoteText takes them for, and that may write.
func open(ctx context.Context, session func() (Session, error)) (*connection, error) {
	s, err := session()
	if err != nil {
		return nil, err
	}
	c := &connection{s}
	for _, text := range []string{"SET SESSION sql_mode = ''", "SET SESSION lock_wait_timeout = 10", "SET SESSION TRANSACTION READ WRITE"} {
		if _, err := c.run(ctx, text); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *connection) close() { _ = c.Close() } // nothing is left undone in it

// run runs a statement and returns its rows as texts.
func (c *connection) run(ctx context.Context, sql string) (rows [][]string, err error) {
	stop := context.AfterFunc(ctx, c.Interrupt)
	defer stop()
	w := &texts{}
	err = c.Query(ctx, sql, w)
	return w.rows, err
}

// texts is a session.ResultWriter that keeps texts. NULL is an empty one.
type texts struct{ rows [][]string }

func (w *texts) Columns([]session.ResultColumn) error { return nil }

func (w *texts) Rows(b *types.Batch) error {
	for i := range b.Len() {
		var row []string
		for _, v := range b.Row(nil, i) {
			text := ""
			if !v.IsNull() {
				text = string(v.Bytes())
			}
			row = append(row, text)
		}
		w.rows = append(w.rows, row)
	}
	return nil
}

func (w *texts) Done(session.Outcome) error { return nil }

// mark is what the attributes of an account that was made here say of it.
type mark struct {
	Entry string `json:"entry"`
	// Grants are all that entries have given, or were about to.
	Grants []string `json:"grants"`
}

// markKey is the attribute.
const markKey = "users_dir"

// keep makes an account what an entry says.
func (k *Keeper) keep(ctx context.Context, c *connection, e *entry) error {
	ctx, cancel := context.WithTimeout(ctx, entryLimit)
	defer cancel()
	account := quoteName(e.id.Name) + "@" + quoteName(e.id.Host)
	rows, err := c.run(ctx, "SELECT plugin, authentication_string, CAST(ssl_type AS CHAR), CAST(User_attributes AS CHAR) FROM mysql.user WHERE User = "+quoteText(e.id.Name)+
		" AND Host = "+quoteText(e.id.Host))
	if err != nil {
		return err
	}
	m := mark{Entry: e.name}
	for _, g := range e.grants {
		m.Grants = append(m.Grants, g.String())
	}
	if len(rows) == 0 {
		err := k.identify(ctx, c, e, "CREATE USER "+account, " REQUIRE "+requirement(e.tls)+" ATTRIBUTE "+quoteText(m.with(nil)))
		if err != nil {
			return err
		}
		k.opt.Log.Info("users_dir: an account was made", "account", e.id.Text(), "entry", e.name)
		return k.grant(ctx, c, e, account)
	}
	plugin, hash, tls, attributes := rows[0][0], rows[0][1], rows[0][2], rows[0][3]
	before, others, ours := marked(attributes)
	if !ours {
		return errors.New("the account is there, and was not made from users_dir: it is left as it is; drop it, or take another name")
	}
	if plugin != e.plugin || !proves(plugin, hash, e.password) {
		if err := k.identify(ctx, c, e, "ALTER USER "+account, ""); err != nil {
			return err
		}
		k.opt.Log.Info("users_dir: an account has another password", "account", e.id.Text(), "entry", e.name)
	}
	// A certificate that others have required (X509, SPECIFIED) stays: it is more than TLS.
	if e.tls && tls == "" || !e.tls && tls == "ANY" {
		if _, err := c.run(ctx, "ALTER USER "+account+" REQUIRE "+requirement(e.tls)); err != nil {
			return err
		}
	}
	if before.Entry == m.Entry && slices.Equal(before.Grants, m.Grants) {
		return k.grant(ctx, c, e, account)
	}
	return k.change(ctx, c, e, account, before, others)
}

// change gives an account that was made here other privileges. It can be cut short anywhere:
// what may have been given is always in the mark. What was taken leaves the mark before anything is given, which may
// fail for long, as for a table that does not exist: nothing is taken again by then that others may have given since.
func (k *Keeper) change(ctx context.Context, c *connection, e *entry, account string, before mark, others map[string]json.RawMessage) error {
	after := mark{Entry: e.name}
	for _, g := range e.grants {
		after.Grants = append(after.Grants, g.String())
	}
	write := func(m mark) error {
		_, err := c.run(ctx, "ALTER USER "+account+" ATTRIBUTE "+quoteText(m.with(others)))
		return err
	}
	both := mark{e.name, slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(before.Grants), after.Grants...))))}
	if err := write(both); err != nil {
		return err
	}
	for _, text := range before.Grants {
		if slices.Contains(after.Grants, text) {
			continue
		}
		list, err := parseGrant(text)
		if err != nil || len(list) != 1 || e.covers(list[0]) {
			continue // somebody has written into the mark, or ALL takes its place
		}
		if _, err := c.run(ctx, "REVOKE IF EXISTS "+list[0].String()+" FROM "+account); err != nil {
			return err
		}
	}
	if err := write(after); err != nil {
		return err
	}
	if err := k.grant(ctx, c, e, account); err != nil {
		return err
	}
	k.opt.Log.Info("users_dir: an account has other privileges", "account", e.id.Text(), "entry", e.name)
	return nil
}

// covers reports whether a privilege is part of ALL, which the entry gives.
func (e *entry) covers(g grant) bool {
	return g.what != "GRANT OPTION" && slices.Contains(e.grants, grant{"ALL", g.on})
}

// grant gives an account what the entry says. Where it has that nothing is written.
func (k *Keeper) grant(ctx context.Context, c *connection, e *entry, account string) error {
	var errs []error
	for _, g := range e.grants {
		if _, err := c.run(ctx, "GRANT "+g.String()+" TO "+account); err != nil {
			errs = append(errs, fmt.Errorf("GRANT %s: %w", g, err))
		}
	}
	return errors.Join(errs...)
}

// identify runs a statement that sets the password. One that the policy does not take is refused, as by CREATE USER:
// the statement has its hash alone, which says nothing of that.
func (k *Keeper) identify(ctx context.Context, c *connection, e *entry, before, after string) error {
	rule, err := k.opt.fault(e.id, e.password)
	switch {
	case err != nil:
		return err
	case rule != "":
		e.file = filepath.Join(k.opt.Dir, e.name, passwordFile)
		return fmt.Errorf("the password does not satisfy the policy of passwords (%s): the account is left as it is, or "+
			"not made", rule)
	}
	hash, err := priv.HashPassword(e.plugin, e.password, salt)
	if err != nil {
		return err
	}
	_, err = c.run(ctx, before+" IDENTIFIED WITH "+quoteText(e.plugin)+" AS "+quoteText(hash)+after)
	if err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), hash, "…")) // where a message repeats the statement
	}
	return nil
}

// salt is a random letter or digit.
func salt() byte {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz./"
	var b [1]byte
	_, _ = rand.Read(b[:]) // crypto/rand does not fail
	return letters[int(b[0])%len(letters)]
}

// proves reports whether a password is that of a stored hash.
func proves(plugin, hash, password string) bool {
	if plugin == priv.Native {
		return hash == priv.HashNative([]byte(password))
	}
	return priv.CheckSHA2(hash, []byte(password))
}

func requirement(tls bool) string {
	if tls {
		return "SSL"
	}
	return "NONE"
}

// marked reads an account's attributes: the mark, and what else is in them.
func marked(attributes string) (m mark, others map[string]json.RawMessage, ours bool) {
	var a struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal([]byte(attributes), &a) != nil {
		return m, nil, false
	}
	text, ours := a.Metadata[markKey]
	ours = ours && json.Unmarshal(text, &m) == nil
	return m, a.Metadata, ours
}

// with is the attributes with this mark in them.
func (m mark) with(others map[string]json.RawMessage) string {
	all := map[string]any{}
	for key, v := range others {
		all[key] = v
	}
	all[markKey] = m
	b, _ := json.Marshal(all) // texts
	return string(b)
}
