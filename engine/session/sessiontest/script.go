package sessiontest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/storage/file"
)

// The commands of scripts. A session is made when it is first named; all begin in the
// schema test.
//
//	sql [s=name] [sort] [types]    runs the text; "blocked" if it waits for somebody. What
//	                               a semicolon at a line's end separates is sent by itself.
//	                               $files is the directory of secure_file_priv.
//	wait s=name                    what came of a statement that was blocked, once it is over
//	prepared [s=name] args=(1,'x') prepares the text and runs it
//	close s=name                   ends the session
//	reset s=name                   COM_RESET_CONNECTION; with user: COM_CHANGE_USER to the same user, without a schema
//	kill s=name [query]            KILL from outside
//	sleep 5s                       lets time pass
//	restart                        ends the node and starts it again; sessions are new
//	demote                         the node stops leading; readonly: open sessions as of the port for reads
//	status [s=name]                status flags and tracked changes

// Scripts runs the scripts of a directory, each on a node of its own.
func Scripts(t *testing.T, dir string) {
	datadriven.Walk(t, dir, Script)
}

// Script runs a script.
func Script(t *testing.T, path string) {
	sim := simenv.New(1)
	sim.Run(func() {
		x := &script{t: t, sim: sim, sessions: map[string]*client{}}
		x.files = t.TempDir()
		files, err := file.Confine(x.files)
		if err != nil {
			t.Fatal(err)
		}
		x.r = Start(t, Options{Env: sim, Files: files})
		x.r.CreateSchema("test")
		defer func() {
			if !t.Failed() {
				x.r.Close()
			}
		}()
		datadriven.RunTest(t, path, x.run)
	})
}

type script struct {
	t        *testing.T
	sim      *simenv.Sim
	r        *Rig
	sessions map[string]*client
	files    string // the directory of secure_file_priv
	readOnly bool
}

// client is a session of a script with the statement that it runs.
type client struct {
	s    *session.Session
	busy bool
	text string
}

func (x *script) client(d *datadriven.TestData) *client {
	name := "main"
	if d.HasArg("s") {
		d.ScanArgs(x.t, "s", &name)
	}
	c := x.sessions[name]
	if c == nil {
		c = &client{s: x.r.Open(session.ConnectionInfo{Schema: "test", MultiStatements: true, ReadOnly: x.readOnly})}
		x.sessions[name] = c
	}
	return c
}

func (x *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "sql":
		f := Format{Sort: d.HasArg("sort"), Types: d.HasArg("types")}
		c := x.client(d)
		return x.start(c, func() string {
			var out strings.Builder
			for _, text := range strings.Split(strings.ReplaceAll(d.Input, "$files", x.files), ";\n") {
				out.WriteString(x.r.Formatted(c.s, text, f))
			}
			return strings.ReplaceAll(out.String(), x.files, "$files")
		})
	case "prepared":
		c := x.client(d)
		args := scriptArgs(d)
		return x.start(c, func() string { return x.r.Prepared(c.s, d.Input, args...) })
	case "wait":
		return x.await(x.client(d))
	case "close":
		c := x.client(d)
		x.r.must(c.s.Close())
		for name, o := range x.sessions {
			if o == c {
				delete(x.sessions, name)
			}
		}
		return ""
	case "reset":
		c := x.client(d)
		if d.HasArg("user") {
			info := c.s.Info()
			info.Schema = ""
			x.r.must(c.s.ChangeUser(info))
		} else {
			x.r.must(c.s.Reset())
		}
		return ""
	case "kill":
		c := x.client(d)
		if d.HasArg("query") {
			c.s.Interrupt()
		} else {
			x.r.must(x.r.Manager.Kill(c.s.ID(), true))
		}
		return ""
	case "sleep":
		pause, err := time.ParseDuration(d.CmdArgs[0].Key)
		x.r.must(err)
		env.Sleep(x.sim, pause)
		return ""
	case "restart":
		x.r.Restart()
		x.sessions = map[string]*client{}
		return ""
	case "demote":
		x.r.must(x.r.Demote())
		return ""
	case "readonly":
		x.readOnly = true
		return ""
	case "status":
		return x.status(x.client(d))
	}
	t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return ""
}

// scriptArgs are the arguments of a prepared statement.
func scriptArgs(d *datadriven.TestData) []any {
	var args []any
	for _, a := range d.CmdArgs {
		if a.Key != "args" {
			continue
		}
		for _, text := range a.Vals {
			var n int
			switch {
			case text == "NULL":
				args = append(args, nil)
			case strings.HasPrefix(text, "'"):
				args = append(args, strings.Trim(text, "'"))
			default:
				if _, err := fmt.Sscanf(text, "%d", &n); err == nil {
					args = append(args, n)
				} else {
					args = append(args, text)
				}
			}
		}
	}
	return args
}

// patience is how long a statement may take before it counts as blocked.
const patience = 100 * time.Millisecond

// start runs something in a session and returns what came of it, or that it waits.
func (x *script) start(c *client, fn func() string) string {
	if c.busy {
		return "the session is still blocked\n"
	}
	c.busy = true
	x.sim.Go("client", func() {
		c.text = fn()
		c.busy = false
	})
	return x.pause(c, patience)
}

// pause lets a session work for a while.
func (x *script) pause(c *client, d time.Duration) string {
	for step := time.Duration(0); step < d && c.busy; step += time.Millisecond {
		env.Sleep(x.sim, time.Millisecond)
	}
	if c.busy {
		return "blocked\n"
	}
	return c.text
}

// await waits until a blocked statement is over: for longer than any timeout.
func (x *script) await(c *client) string {
	for range 1000 {
		if !c.busy {
			return c.text
		}
		env.Sleep(x.sim, 100*time.Millisecond)
	}
	return "blocked for good\n"
}

func (x *script) status(c *client) string {
	var b strings.Builder
	flags := c.s.Status()
	for _, f := range []struct {
		flag session.StatusFlags
		name string
	}{{session.StatusAutocommit, "autocommit"}, {session.StatusInTransaction, "transaction"}, {session.StatusInTransReadOnly, "read-only"},
		{session.StatusNoBackslashEscapes, "no-backslash-escapes"}, {session.StatusStateChanged, "changed"}} {
		if flags&f.flag != 0 {
			b.WriteString(f.name + " ")
		}
	}
	out := strings.TrimSpace(b.String()) + "\n"
	for _, ch := range c.s.TrackedChanges() {
		out += fmt.Sprintf("%d %s %s\n", ch.Kind, ch.Name, ch.Value)
	}
	if c.s.Gone() {
		out += "gone\n"
	}
	return out
}
