package lock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
)

// TestScripts runs testdata/*.txt. A file has one lock table and virtual clock;
// its blocks are:
//
//	new [fifo] [nodetect] [memory=N]     a fresh table
//	run                                  a statement per line, see script.exec
//
// The output has a line for each statement that answers or has effects, and an
// indented one for each wait that ended because of it.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		sim := simenv.New(1)
		sim.Run(func() {
			s := &script{env: sim, t: t}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "new":
					s.reset(d)
					return "ok"
				case "run":
					return s.run(d.Input)
				}
				t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
				return ""
			})
		})
	})
}

type script struct {
	t      *testing.T
	env    env.Env
	table  *Table
	owners map[string]*Owner
	events []string
}

func (s *script) reset(d *datadriven.TestData) {
	o := Options{Env: s.env, Shards: 8, FIFO: d.HasArg("fifo"), NoDeadlockDetect: d.HasArg("nodetect")}
	if d.HasArg("memory") {
		var n int
		d.ScanArgs(s.t, "memory", &n)
		o.MemoryMax = int64(n)
	}
	s.table = New(o)
	s.owners = map[string]*Owner{}
	s.events = nil
}

func (s *script) run(input string) string {
	if s.table == nil {
		s.table = New(Options{Env: s.env, Shards: 8})
		s.owners = map[string]*Owner{}
	}
	var out strings.Builder
	for _, line := range strings.Split(input, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		answer := s.exec(f)
		env.Sleep(s.env, time.Nanosecond) // everybody runs until he waits
		switch {
		case strings.HasPrefix(answer, "\n"):
			fmt.Fprintf(&out, "%s:%s\n", strings.Join(f, " "), answer)
		case answer != "":
			fmt.Fprintf(&out, "%s -> %s\n", strings.Join(f, " "), answer)
		case len(s.events) > 0:
			fmt.Fprintf(&out, "%s\n", strings.Join(f, " "))
		}
		for _, e := range s.events {
			fmt.Fprintf(&out, "    %s\n", e)
		}
		s.events = nil
	}
	if out.Len() == 0 {
		return "ok"
	}
	return out.String()
}

// exec runs one statement: a session's, or one of the table.
func (s *script) exec(f []string) string {
	t := s.table
	switch f[0] {
	case "locks":
		return s.locks()
	case "waits":
		return s.waits()
	case "sleep":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			return err.Error()
		}
		env.Sleep(s.env, d)
		return ""
	case "insert": // insert index newKey successor
		t.InheritOnInsert(nil, number(f[1]), key(f[2]), key(f[3]))
		return ""
	case "remove": // remove index key successor
		t.InheritOnRemove(nil, number(f[1]), key(f[2]), key(f[3]))
		return ""
	case "deadlock":
		if d := t.LastDeadlock(); d != nil {
			return "\n" + strings.TrimSuffix(d.String(), "\n")
		}
		return "none"
	case "stats":
		st := t.Stats()
		return fmt.Sprintf("waits=%d now=%d deadlocks=%d timeouts=%d", st.Waits, st.WaitsNow, st.Deadlocks, st.Timeouts)
	case "ranges":
		st := t.Stats()
		return fmt.Sprintf("now=%d locks=%d splits=%d", st.Ranges, st.RangeLocks, st.RangeSplits)
	case "memory":
		return fmt.Sprint(t.Memory())
	}
	return s.session(f[0], f[1], f[2:])
}

func (s *script) session(name, verb string, args []string) string {
	t := s.table
	o := s.owners[name]
	if o == nil {
		o = &Owner{}
		s.owners[name] = o
		t.Begin(o, number(name[1:]), TxnOptions{})
	}
	if o.state != ownerActive && (verb == "lock" || verb == "scan" || verb == "many" || verb == "implicit") {
		t.Begin(o, number(name[1:]), TxnOptions{})
	}
	switch verb {
	case "begin": // [rc] [high]
		t.ReleaseAll(o, 0)
		var opt TxnOptions
		for _, a := range args {
			opt.ReadCommitted = opt.ReadCommitted || a == "rc"
			opt.HighPriority = opt.HighPriority || a == "high"
		}
		t.Begin(o, number(name[1:]), opt)
	case "lock": // index key mode [nowait|skip|timeout] , or tN mode
		return s.lock(name, o, args)
	case "scan": // index k1,k2,... mode: locks entries that are neighbours, in ranges
		return s.scan(o, number(args[0]), strings.Split(args[1], ","), modeOf(args[2], false))
	case "wrote": // index key
		if k := key(args[1]); t.Wrote(o, number(args[0]), k) {
			area, _ := Single(nil, k)
			t.DropAlone(o, number(args[0]), k, area)
		}
	case "unlock":
		if !t.Unlock(o, number(args[0]), key(args[1]), modeOf(args[2], false), Area{}) {
			return "not held"
		}
	case "commit": // [sequence]
		var seq uint64
		if len(args) > 0 {
			seq = number(args[0])
		}
		t.ReleaseAll(o, seq)
	case "many": // index n: n X locks on new keys
		n := int(number(args[1]))
		for i := range n {
			k := fmt.Appendf(nil, "many%08d", i)
			if _, err := t.Acquire(o, Request{Index: number(args[0]), Key: k, Mode: NextKeyX}); err != nil {
				return fmt.Sprintf("%s after %d", codeOf(err), i)
			}
		}
		return fmt.Sprintf("%d granted", n)
	case "autoinc-end":
		t.ReleaseAutoInc(o)
	case "weight":
		o.SetWeight(number(args[0]))
	case "kill":
		t.Interrupt(o)
	case "revive":
		o.ResetInterrupt()
	case "implicit": // T1 implicit holder index key: T1 finds a record written by holder
		h := s.owners[args[0]]
		how, sequence := t.ConvertImplicit(h, number(args[0][1:]), number(args[1]), key(args[2]))
		answer := [...]string{"held", "released", "unknown", "broken"}[how]
		if sequence != 0 {
			answer += fmt.Sprint(" early, at ", sequence)
		}
		return answer
	case "changed":
		return fmt.Sprint(o.AppendChanged(nil))
	default:
		return "unknown verb " + verb
	}
	return ""
}

func (s *script) lock(name string, o *Owner, args []string) string {
	r := Request{}
	if id, ok := strings.CutPrefix(args[0], "t"); ok {
		r.Index, r.Mode = number(id), modeOf(args[1], true)
		args = args[2:]
	} else {
		r.Index, r.Key, r.Mode = number(args[0]), key(args[1]), modeOf(args[2], false)
		args = args[3:]
	}
	for _, a := range args {
		switch a {
		case "nowait":
			r.Policy = NoWait
		case "skip":
			r.Policy = SkipLocked
		default:
			d, err := time.ParseDuration(a)
			if err != nil {
				return err.Error()
			}
			r.Timeout = d
		}
	}
	res, err := s.table.Acquire(o, r)
	switch {
	case err != nil:
		return codeOf(err)
	case res != MustWait:
		return res.String()
	}
	s.env.Go(name, func() {
		answer := "granted"
		if err := s.table.Wait(o); err != nil {
			answer = codeOf(err)
		}
		s.events = append(s.events, name+": "+answer)
	})
	return "waits"
}

func (s *script) scan(o *Owner, index uint64, keys []string, mode Mode) string {
	for i, k := range keys {
		area, _ := Single(nil, key(k))
		if i > 0 && keys[i-1] < k {
			area.From = []byte(keys[i-1] + "\x00")
		} else if i > 0 {
			area.To = []byte(keys[i-1])
		}
		res, err := s.table.AcquireHinted(o, Request{Index: index, Key: key(k), Mode: mode, Policy: NoWait}, &Hint{Area: area})
		if err != nil {
			return fmt.Sprintf("%s at %s", codeOf(err), k)
		}
		if res == Held {
			s.events = append(s.events, k+" held")
		}
	}
	return "granted"
}

func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return fmt.Sprintf("error %d (%s)", e.Code, e.State)
	}
	return err.Error()
}

func (s *script) locks() string {
	var b strings.Builder
	for _, l := range s.table.Snapshot(0).Locks {
		status := "WAITING"
		if l.Granted {
			status = "GRANTED"
		}
		where := placeName(l.Table, l.Index, l.Key)
		if l.Range {
			where = strings.ReplaceAll(fmt.Sprintf("%d [%s, %s)", l.Index, l.Key, l.End), "\x00", "+")
		}
		fmt.Fprintf(&b, "\n%d %s %s %s", l.Trx, where, l.Mode, status)
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

func (s *script) waits() string {
	var b strings.Builder
	for _, w := range s.table.Snapshot(0).Waits {
		fmt.Fprintf(&b, "\n%d %s %s behind %d %s", w.Requesting, placeName(w.Table, w.Index, w.Key), w.RequestingMode, w.Blocking, w.BlockingMode)
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

func placeName(table bool, index uint64, key []byte) string {
	switch {
	case table:
		return fmt.Sprintf("t%d", index)
	case len(key) == 0:
		return fmt.Sprintf("%d sup", index)
	}
	return fmt.Sprintf("%d %s", index, key)
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func key(s string) []byte {
	if s == "sup" {
		return Supremum
	}
	return []byte(s)
}

func modeOf(s string, table bool) Mode {
	for m := range modeCount {
		if m.IsTable() == table && (m.String() == s || m == InsertIntention && s == "II") {
			return m
		}
	}
	panic("unknown mode " + s)
}
